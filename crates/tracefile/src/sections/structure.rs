//! Section `structure`: all structures as one forest, every rule written where it is first met and referred to from
//! then on, also by other structures.

use std::collections::HashMap;

use refrain_fold::bundle::preorder;
use refrain_fold::grammar::{Grammar, Item, Symbol};

use crate::get::{Bad, Get};
use crate::token::{Field, Put};

// Steps. Known terminals and rules take turns from `KNOWN` on.
const END: u64 = 0;
const NEW_TERMINAL: u64 = 1;
const NEW_RULE: u64 = 2;
const KNOWN: u64 = 3;

/// Structures that share rules are bigger taken apart than together. Up to here a reader goes along.
fn most_items(in_forest: usize) -> usize {
    in_forest.saturating_mul(8).saturating_add(1 << 22)
}

pub fn write(put: &mut Put, structures: &[Grammar]) {
    let structures: Vec<Grammar> = structures.iter().map(preorder).collect();
    let shared = Interned::new(&structures);
    let apart: usize = structures.iter().flat_map(|s| &s.rules).map(|r| r.len() + 1).sum();
    let share = apart <= most_items(shared.items);
    put.put(Field::Count, 3, structures.len() as u64);
    let mut numbers: HashMap<u32, u64> = HashMap::new();
    let mut rules = 0;
    let mut terminals = 0u64;
    for (structure, ids) in structures.iter().zip(&shared.ids) {
        if !share {
            numbers.clear();
        }
        // (rule, next item): rules may nest deeper than the stack of the thread allows.
        let mut open = vec![(0usize, 0usize)];
        while let Some((rule, at)) = open.last_mut() {
            let hint = open_hint(*rule == 0, *at);
            let Some(item) = structure.rules.get(*rule).and_then(|r| r.get(*at)) else {
                put.put(Field::Item, hint, END);
                open.pop();
                continue;
            };
            *at += 1;
            let mut inner = None;
            let step = match item.symbol {
                Symbol::Terminal(t) if u64::from(t) == terminals => {
                    terminals += 1;
                    NEW_TERMINAL
                }
                Symbol::Terminal(t) => {
                    terminals = terminals.max(u64::from(t) + 1);
                    KNOWN + 2 * u64::from(t)
                }
                Symbol::Rule(r) => match numbers.get(&ids[r as usize]) {
                    Some(number) => KNOWN + 1 + 2 * number,
                    None => {
                        numbers.insert(ids[r as usize], rules);
                        rules += 1;
                        inner = Some(r as usize);
                        NEW_RULE
                    }
                },
            };
            put.put(Field::Item, hint, step);
            put.put(Field::ItemCount, step.min(u64::from(u32::MAX)), item.count.wrapping_sub(1));
            if let Some(rule) = inner {
                open.push((rule, 0));
            }
        }
    }
}

pub fn read(get: &mut Get, symbols: usize) -> Result<Vec<Grammar>, Bad> {
    let count = get.count(Field::Count, 3)?;
    // Rules by number, and whether they are read to their end.
    let mut rules: Vec<(Vec<Item>, bool)> = Vec::new();
    let mut starts: Vec<Vec<Item>> = Vec::new();
    let mut terminals = 0u64;
    let mut items = 0usize;
    for _ in 0..count {
        let mut start = Vec::new();
        // None is the start rule.
        let mut open: Vec<Option<usize>> = vec![None];
        while let Some(&rule) = open.last() {
            let so_far = rule.map_or(start.len(), |r| rules[r].0.len());
            let step = get.get(Field::Item, open_hint(rule.is_none(), so_far))?;
            items += 1;
            if step == END {
                if let Some(rule) = rule {
                    rules[rule].1 = true;
                }
                open.pop();
                continue;
            }
            let count = get.get(Field::ItemCount, step.min(u64::from(u32::MAX)))?.wrapping_add(1);
            let symbol = match step {
                NEW_RULE => {
                    rules.push((Vec::new(), false));
                    open.push(Some(rules.len() - 1));
                    Symbol::Rule(rules.len() as u32 - 1)
                }
                step if step >= KNOWN && (step - KNOWN) % 2 == 1 => {
                    let number = (step - KNOWN) / 2;
                    match usize::try_from(number).ok().and_then(|n| rules.get(n)) {
                        Some((_, true)) => Symbol::Rule(number as u32),
                        _ => return Err(Bad(format!("rule {number} is used before it is there"))),
                    }
                }
                step => {
                    let terminal = if step == NEW_TERMINAL { terminals } else { (step - KNOWN) / 2 };
                    if terminal >= symbols as u64 {
                        return Err(Bad(format!("symbol {terminal} of {symbols} does not exist")));
                    }
                    terminals = terminals.max(terminal + 1);
                    Symbol::Terminal(terminal as u32)
                }
            };
            let item = Item { symbol, count };
            match rule {
                Some(rule) => rules[rule].0.push(item),
                None => start.push(item),
            }
        }
        starts.push(start);
    }
    let mut budget = most_items(items);
    starts.into_iter().map(|start| extract(start, &rules, &mut budget)).collect()
}

/// Start rules look different from loop bodies, and beginnings from what follows.
fn open_hint(start: bool, at: usize) -> u64 {
    u64::from(start) << 1 | u64::from(at == 0)
}

/// One structure with the rules it needs, numbered as they are met.
fn extract(start: Vec<Item>, rules: &[(Vec<Item>, bool)], budget: &mut usize) -> Result<Grammar, Bad> {
    let mut local: HashMap<u32, u32> = HashMap::new();
    let mut out: Vec<Vec<Item>> = vec![Vec::new()];
    let mut open: Vec<(&[Item], usize, usize)> = vec![(&start, 0, 0)];
    while let Some((from, to, at)) = open.last_mut() {
        let spent = budget.checked_sub(1);
        *budget = spent.ok_or_else(|| Bad::new("its structures are larger than the file could hold"))?;
        let Some(item) = from.get(*at) else {
            open.pop();
            continue;
        };
        *at += 1;
        let to = *to;
        let symbol = match item.symbol {
            Symbol::Terminal(t) => Symbol::Terminal(t),
            Symbol::Rule(r) => Symbol::Rule(match local.get(&r) {
                Some(&known) => known,
                None => {
                    let new = out.len();
                    local.insert(r, new as u32);
                    out.push(Vec::new());
                    open.push((&rules[r as usize].0, new, 0));
                    new as u32
                }
            }),
        };
        out[to].push(Item { symbol, count: item.count });
    }
    Ok(Grammar { rules: out })
}

/// Which rules of all structures say the same.
struct Interned {
    /// By structure, by rule.
    ids: Vec<Vec<u32>>,
    /// Steps of all distinct rules together.
    items: usize,
}

impl Interned {
    fn new(structures: &[Grammar]) -> Interned {
        let mut known: HashMap<Vec<Item>, u32> = HashMap::new();
        let mut items = 0;
        let mut ids = Vec::new();
        for structure in structures {
            let mut id_of: Vec<Option<u32>> = vec![None; structure.rules.len()];
            let mut open: Vec<usize> = (0..structure.rules.len()).collect();
            while let Some(&rule) = open.last() {
                if id_of[rule].is_some() {
                    open.pop();
                    continue;
                }
                let mut waiting = false;
                let mut content = Vec::with_capacity(structure.rules[rule].len());
                for item in &structure.rules[rule] {
                    let symbol = match item.symbol {
                        Symbol::Terminal(t) => Symbol::Terminal(t),
                        Symbol::Rule(r) => match id_of[r as usize] {
                            Some(id) => Symbol::Rule(id),
                            None => {
                                open.push(r as usize);
                                waiting = true;
                                continue;
                            }
                        },
                    };
                    content.push(Item { symbol, count: item.count });
                }
                if !waiting {
                    let next = known.len() as u32;
                    let len = content.len() + 1;
                    id_of[rule] = Some(*known.entry(content).or_insert_with(|| {
                        items += len;
                        next
                    }));
                    open.pop();
                }
            }
            ids.push(id_of.into_iter().map(|id| id.unwrap_or(0)).collect());
        }
        Interned { ids, items }
    }
}
