//! Section `streams`: the distinct streams, terms where they are first met in the shape.

use refrain_fold::bundle::{Bundle, Cohort, SymbolEntry, normal};
use refrain_fold::grammar::{Grammar, Item, Symbol};
use refrain_fold::stream::{Stream, Term};

use crate::get::{Bad, Get};
use crate::sections::groups::layouts;
use crate::sections::symbols::head;
use crate::token::{Field, Put, pair, two};

// Steps. Known terms and rules take turns from `KNOWN` on.
const END: u64 = 0;
const NEW_VALUE: u64 = 1;
const NEW_STRIDE: u64 = 2;
const NEW_RULE: u64 = 3;
const KNOWN: u64 = 4;

/// For each stream, what it is: a hint made of the first place that uses it.
fn uses(count: usize, cohorts: &[Cohort], structures: &[Grammar], symbols: &[SymbolEntry]) -> Vec<u64> {
    let layouts = layouts(structures, symbols);
    let mut uses = vec![0; count];
    for cohort in cohorts {
        let layout = layouts.get(cohort.structure as usize).map_or(&[][..], Vec::as_slice);
        for (&(symbol, lane), streams) in layout.iter().zip(&cohort.lanes) {
            for stream in streams.streams() {
                if let Some(slot) = uses.get_mut(stream as usize).filter(|slot| **slot == 0) {
                    let head = head(&symbols[symbol as usize].bytes);
                    *slot = two(pair(head, lane.into()), head);
                }
            }
        }
    }
    uses
}

pub fn write(put: &mut Put, bundle: &Bundle) {
    put.put(Field::Count, 5, bundle.streams.len() as u64);
    let uses = uses(bundle.streams.len(), &bundle.cohorts, &bundle.structures, &bundle.symbols);
    for (stream, hint) in bundle.streams.iter().zip(uses) {
        write_one(put, &normal(stream), hint);
    }
}

pub fn read(
    get: &mut Get,
    cohorts: &[Cohort],
    structures: &[Grammar],
    symbols: &[SymbolEntry],
) -> Result<Vec<Stream>, Bad> {
    let count = get.count(Field::Count, 5)?;
    let uses = uses(count, cohorts, structures, symbols);
    uses.into_iter().map(|hint| read_one(get, hint)).collect()
}

fn write_one(put: &mut Put, stream: &Stream, hint: u64) {
    let (mut terms, mut rules) = (0, 1);
    let mut open = vec![(0usize, 0usize)];
    while let Some((rule, at)) = open.last_mut() {
        let Some(item) = stream.shape.rules.get(*rule).and_then(|r| r.get(*at)) else {
            put.put(Field::Shape, hint, END);
            open.pop();
            continue;
        };
        *at += 1;
        let mut inner = None;
        match item.symbol {
            Symbol::Terminal(t) if t == terms => {
                terms += 1;
                match stream.terms[t as usize] {
                    Term::Value(value) => {
                        put.put(Field::Shape, hint, NEW_VALUE);
                        put.signed(Field::Value, hint, value);
                    }
                    Term::Stride { start, step, count } => {
                        put.put(Field::Shape, hint, NEW_STRIDE);
                        put.signed(Field::Value, hint, start);
                        put.signed(Field::Step, hint, step);
                        put.put(Field::StrideCount, hint, count);
                    }
                }
            }
            Symbol::Terminal(t) => put.put(Field::Shape, hint, KNOWN + 2 * u64::from(t)),
            Symbol::Rule(r) if r == rules => {
                rules += 1;
                put.put(Field::Shape, hint, NEW_RULE);
                inner = Some(r as usize);
            }
            Symbol::Rule(r) => put.put(Field::Shape, hint, KNOWN + 1 + 2 * u64::from(r)),
        }
        put.put(Field::ShapeCount, hint, item.count.wrapping_sub(1));
        if let Some(rule) = inner {
            open.push((rule, 0));
        }
    }
}

fn read_one(get: &mut Get, hint: u64) -> Result<Stream, Bad> {
    let mut terms = Vec::new();
    let mut rules: Vec<Vec<Item>> = vec![Vec::new()];
    let mut open = vec![0usize];
    while let Some(&rule) = open.last() {
        let symbol = match get.get(Field::Shape, hint)? {
            END => {
                open.pop();
                continue;
            }
            NEW_VALUE => {
                terms.push(Term::Value(get.signed(Field::Value, hint)?));
                Symbol::Terminal(terms.len() as u32 - 1)
            }
            NEW_STRIDE => {
                terms.push(Term::Stride {
                    start: get.signed(Field::Value, hint)?,
                    step: get.signed(Field::Step, hint)?,
                    count: get.get(Field::StrideCount, hint)?,
                });
                Symbol::Terminal(terms.len() as u32 - 1)
            }
            NEW_RULE => {
                rules.push(Vec::new());
                open.push(rules.len() - 1);
                Symbol::Rule(rules.len() as u32 - 1)
            }
            step => {
                let number = (step - KNOWN) / 2;
                let (list, symbol) = match (step - KNOWN) % 2 {
                    0 => (terms.len(), Symbol::Terminal(number as u32)),
                    _ => (rules.len(), Symbol::Rule(number as u32)),
                };
                if number >= list as u64 {
                    return Err(Bad::new("a stream uses a term or rule before it is there"));
                }
                symbol
            }
        };
        let count = get.get(Field::ShapeCount, hint)?.wrapping_add(1);
        rules[rule].push(Item { symbol, count });
    }
    Ok(Stream { terms, shape: Grammar { rules } })
}
