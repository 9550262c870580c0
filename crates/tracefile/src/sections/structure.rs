//! Section `structure`: all structures as one forest, every rule written where it is first met and referred to from
//! then on, also by other structures. Trees of loops, where there are any, are written as they stand.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use refrain_fold::bundle::{Rules, Structure, preordered};
use refrain_fold::grammar::{Grammar, Item, Symbol};
use refrain_fold::loops::{Loops, Node};

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

// What a structure is, where not all are rules.
const RULES: u64 = 0;
const LOOPS: u64 = 1;

pub fn write(put: &mut Put, structures: &[Structure]) {
    let rules: Vec<&Rules> = structures.iter().filter_map(Structure::rules).collect();
    if rules.len() == structures.len() && !rules.is_empty() {
        return write_rules(put, &rules, MOST_KNOWN);
    }
    put.put(Field::Count, 3, 0);
    put.put(Field::Count, 9, structures.len() as u64);
    let mut symbols = 0;
    for structure in structures {
        match structure {
            Structure::Rules(_) => put.put(Field::Item, 4, RULES),
            Structure::Loops(loops) => {
                put.put(Field::Item, 4, LOOPS);
                write_loops(put, loops, &mut symbols);
            }
        }
    }
    if !rules.is_empty() {
        write_rules(put, &rules, MOST_KNOWN);
    }
}

/// `symbols`: how many were there already.
fn write_loops(put: &mut Put, loops: &Loops, symbols: &mut u64) {
    let mut open = vec![(0, loops.nodes.len())];
    let mut at = 0;
    while let Some(&(start, end)) = open.last() {
        let hint = loop_hint(open.len(), at == start);
        if at == end {
            put.put(Field::Item, hint, END);
            open.pop();
            continue;
        }
        match loops.nodes[at] {
            Node::Event(symbol) if u64::from(symbol) == *symbols => {
                *symbols += 1;
                put.put(Field::Item, hint, NEW_TERMINAL);
            }
            Node::Event(symbol) => {
                *symbols = (*symbols).max(u64::from(symbol) + 1);
                put.put(Field::Item, hint, KNOWN + u64::from(symbol));
            }
            Node::Loop { inside } => {
                put.put(Field::Item, hint, NEW_RULE);
                open.push((at + 1, at + 1 + inside as usize));
            }
        }
        at += 1;
    }
}

/// The outermost body looks different from loops, and beginnings from what follows.
fn loop_hint(depth: usize, first: bool) -> u64 {
    8 + (depth.min(4) as u64) * 2 + u64::from(first)
}

/// Long ones are sealed: each is open only while it is written. Rules are known up to a number: see [`MOST_KNOWN`].
fn write_rules(put: &mut Put, structures: &[&Rules], most: usize) {
    let share = may_share(structures, most);
    put.put(Field::Count, 3, structures.len() as u64);
    let mut interned = Interned::default();
    // By id.
    let mut numbers: Vec<Option<u64>> = Vec::new();
    let mut rules = 0;
    let mut terminals = 0u64;
    for structure in structures {
        let structure = structure.open();
        let structure = preordered(&structure);
        if !share || interned.known.len() >= most {
            interned = Interned::default();
            numbers.clear();
        }
        let ids = interned.ids(&structure);
        numbers.resize(interned.known.len(), None);
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
                Symbol::Rule(r) => match numbers[ids[r as usize] as usize] {
                    Some(number) => KNOWN + 1 + 2 * number,
                    None => {
                        numbers[ids[r as usize] as usize] = Some(rules);
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

pub fn read(get: &mut Get, symbols: usize) -> Result<Vec<Structure>, Bad> {
    let count = get.count(Field::Count, 3)?;
    if count > 0 {
        return Ok(read_rules(get, count, symbols)?.into_iter().map(Structure::from).collect());
    }
    let mut structures = Vec::new();
    let mut rules = 0;
    let mut known = 0;
    for _ in 0..get.count(Field::Count, 9)? {
        structures.push(match get.get(Field::Item, 4)? {
            RULES => {
                rules += 1;
                Grammar::default().into()
            }
            LOOPS => Structure::Loops(read_loops(get, symbols, &mut known)?),
            other => return Err(Bad(format!("unknown kind of structure {other}"))),
        });
    }
    if rules > 0 {
        let count = get.count(Field::Count, 3)?;
        if count != rules {
            return Err(Bad::new("not as many grammars as announced"));
        }
        let mut grammars = read_rules(get, count, symbols)?.into_iter();
        for structure in &mut structures {
            if let Structure::Rules(grammar) = structure {
                *grammar = grammars.next().unwrap_or_default().into();
            }
        }
    }
    Ok(structures)
}

fn read_loops(get: &mut Get, symbols: usize, known: &mut u64) -> Result<Loops, Bad> {
    let mut nodes = Vec::new();
    // Where each open loop is; the first is the outermost body.
    let mut open: Vec<usize> = vec![0];
    let mut first = true;
    while let Some(&start) = open.last() {
        let step = get.get(Field::Item, loop_hint(open.len(), first))?;
        first = step == NEW_RULE;
        match step {
            END => {
                open.pop();
                if !open.is_empty() {
                    let inside = u32::try_from(nodes.len() - start - 1);
                    let inside = inside.map_err(|_| Bad::new("a loop of too many nodes"))?;
                    nodes[start] = Node::Loop { inside };
                }
            }
            NEW_RULE => {
                open.push(nodes.len());
                nodes.push(Node::Loop { inside: 0 });
            }
            step => {
                let symbol = if step == NEW_TERMINAL { *known } else { step - KNOWN };
                if symbol >= symbols as u64 {
                    return Err(Bad(format!("symbol {symbol} of {symbols} does not exist")));
                }
                *known = (*known).max(symbol + 1);
                nodes.push(Node::Event(symbol as u32));
            }
        }
    }
    Ok(Loops { nodes })
}

fn read_rules(get: &mut Get, count: usize, symbols: usize) -> Result<Vec<Grammar>, Bad> {
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

/// Whether what structures have in common may be written once: a reader takes them apart again.
fn may_share(structures: &[&Rules], most: usize) -> bool {
    let apart = |grammar: &Grammar| grammar.rules.iter().map(|rule| rule.len() + 1).sum::<usize>();
    let all = structures.iter().map(|rules| apart(&rules.open())).sum::<usize>();
    if all <= most_items(0) {
        return true;
    }
    let mut interned = Interned::default();
    let mut together = 0usize;
    for structure in structures {
        if interned.known.len() >= most {
            together += interned.items;
            interned = Interned::default();
        }
        interned.ids(&preordered(&structure.open()));
    }
    all <= most_items(together + interned.items)
}

/// So many rules are known at once. Of more, which only ranks have that are all different, those before are forgotten, and
/// written again where they are met again.
const MOST_KNOWN: usize = 1 << 20;

/// Which rules of several structures say the same.
#[derive(Default)]
struct Interned {
    /// By content, as a hash of 128 bits: to keep the rules would take more than all the rest.
    known: HashMap<[u64; 2], u32>,
    /// Steps of all of them together.
    items: usize,
}

impl Interned {
    /// The ids of a structure's rules.
    fn ids(&mut self, structure: &Grammar) -> Vec<u32> {
        let mut id_of: Vec<Option<u32>> = vec![None; structure.rules.len()];
        let mut open: Vec<usize> = (0..structure.rules.len()).collect();
        while let Some(&rule) = open.last() {
            if id_of[rule].is_some() {
                open.pop();
                continue;
            }
            let body = &structure.rules[rule];
            let rules = body.iter().filter_map(|item| match item.symbol {
                Symbol::Rule(r) => Some(r as usize),
                Symbol::Terminal(_) => None,
            });
            let before = open.len();
            open.extend(rules.filter(|r| id_of[*r].is_none()));
            if open.len() > before {
                continue;
            }
            let content = body.iter().map(|item| match item.symbol {
                Symbol::Terminal(t) => (false, t, item.count),
                Symbol::Rule(r) => (true, id_of[r as usize].unwrap_or(0), item.count),
            });
            let next = self.known.len() as u32;
            let id = *self.known.entry(hash_of(content)).or_insert(next);
            if id == next {
                self.items += body.len() + 1;
            }
            id_of[rule] = Some(id);
            open.pop();
        }
        id_of.into_iter().map(|id| id.unwrap_or(0)).collect()
    }
}

fn hash_of(content: impl Iterator<Item = (bool, u32, u64)>) -> [u64; 2] {
    let mut hashers = [DefaultHasher::new(), DefaultHasher::new()];
    1.hash(&mut hashers[1]);
    for item in content {
        hashers.iter_mut().for_each(|hasher| item.hash(hasher));
    }
    hashers.map(|hasher| hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of 1,000 calls that hardly repeat.
    fn calls(seed: u64) -> Rules {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..1000).map(|_| random.u32(..4)).collect::<Grammar>().into()
    }

    #[test]
    fn forgotten_rules_are_written_again() {
        let structures = [calls(1), calls(2), calls(1), calls(3)];
        let refs: Vec<&Rules> = structures.iter().collect();
        let written = |most: usize| {
            let mut put = Put::plain();
            write_rules(&mut put, &refs, most);
            put.finish()
        };
        let (shared, apart) = (written(MOST_KNOWN), written(1));
        assert!(shared.len() < apart.len(), "{} {}", shared.len(), apart.len());
        for bytes in [shared, apart] {
            let read = read(&mut Get::plain(&bytes), 4).unwrap();
            assert!(read.iter().zip(&structures).all(|(read, rules)| read.rules() == Some(rules)));
            assert_eq!(read.len(), structures.len());
        }
    }
}
