//! Red flags: what grows with the number of ranks keeps a program from growing (001, section 2).

use refrain_fold::bundle::Bundle;
use refrain_fold::ranks::RankList;
use refrain_model::{Class, Kind, Len};
use refrain_sites::Names;
use serde::Serialize;

use super::params::{Is, Numbers, Param, Pattern, on};
use super::place::call_site;
use super::tree::Tree;
use crate::human::thousands;

/// With fewer ranks than these any number may be theirs, such as that of the neighbours on a grid.
const FEWEST: u32 = 8;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flag {
    pub node: usize,
    /// Which call it is.
    #[serde(skip)]
    pub who: String,
    /// All of it, as a sentence.
    pub text: String,
}

/// `of` are the parameters of a symbol's calls.
pub fn flags(
    bundle: &Bundle,
    names: &dyn Names,
    tree: &Tree,
    ranks: u32,
    of: &dyn Fn(u32) -> Vec<Param>,
) -> Vec<Flag> {
    let mut found = Vec::new();
    if ranks < FEWEST {
        return found;
    }
    for node in 0..tree.nodes.len() {
        let Some(symbol) = tree.nodes[node].symbol().filter(|_| tree.nodes[node].runs() > 0) else {
            continue;
        };
        let flag = flag(bundle, names, tree, ranks, node, symbol, of);
        found.extend(flag.filter(|flag| found.iter().all(|known: &Flag| known.who != flag.who)));
    }
    found
}

fn flag(
    bundle: &Bundle,
    names: &dyn Names,
    tree: &Tree,
    ranks: u32,
    node: usize,
    symbol: u32,
    of: &dyn Fn(u32) -> Vec<Param>,
) -> Option<Flag> {
    let function = tree.function(symbol)?;
    let site = call_site(bundle, names, symbol).and_then(|places| places.last().map(|p| format!(" at {p}")));
    let who = format!("{}{}", function.name, site.unwrap_or_default());
    let flag = |what: String| Some(Flag { node, who: who.clone(), text: format!("{who} {what}") });
    let params = of(symbol);
    // Arrays of requests, as long as one of the parameters says.
    let handles =
        function.params.iter().find(|p| p.kind == Kind::Handle(Class::Request) && !p.len.is_empty());
    if let Some([Len::Param(count)]) = handles.map(|p| p.len)
        && let Some(Param { is: Is::Numbers(numbers), .. }) =
            params.iter().find(|p| p.name == function.params[usize::from(*count)].name)
        && let Some((number, some)) = suspicious(numbers, ranks)
    {
        let some = if some == tree.ranks { String::new() } else { format!(" (on {})", on(&some)) };
        return flag(format!(
            "has {} requests{some}, {}: consider a collective",
            thousands(number),
            as_many(number, ranks)
        ));
    }
    // A message for each of the others, one after the other.
    let peer = function.params.iter().find(|p| matches!(p.kind, Kind::Peer(_)));
    if let Some(Param { is: Is::Numbers(peers), .. }) =
        peer.and_then(|peer| params.iter().find(|p| p.name == peer.name))
    {
        let to_all = |rank: u32| {
            let all = (-i64::from(rank), i64::from(ranks - 1 - rank));
            // A rank's own place may be left out at either end.
            let (low, high) =
                peers.iter().find(|(_, some)| some.contains(rank)).map_or((0, 0), |(p, _)| p.range());
            let near = |a: i64, b: i64| a == b || b == 0 && a.abs() == 1;
            near(low, all.0) && near(high, all.1)
        };
        // The event itself, or the loop it is in.
        for here in [Some(node), tree.nodes[node].parent].into_iter().flatten() {
            let turns = tree.nodes[here].turns.iter().find(|turns| {
                let so_many = turns.low == turns.high && is_theirs(turns.high, ranks);
                so_many && turns.ranks.iter().all(to_all)
            });
            if let Some(turns) = turns {
                let all = turns.ranks == tree.ranks;
                let some = if all { String::new() } else { format!(" (on {})", on(&turns.ranks)) };
                return flag(format!(
                    "is made {} times in a row{some}, {}: consider a collective",
                    thousands(turns.high),
                    as_many(turns.high, ranks)
                ));
            }
        }
    }
    // An entry for every rank.
    let sized =
        |p: &&refrain_model::Param| matches!(p.len, [Len::Size(_)]) && !matches!(p.kind, Kind::Buffer);
    let array = function.params.iter().find(sized)?;
    let array = params.iter().find(|p| p.name == array.name)?;
    let Is::Array { length: Some(length), .. } = &array.is else { return None };
    let (number, _) = suspicious(length, ranks).filter(|(number, _)| *number == u64::from(ranks))?;
    flag(format!("takes arrays of {} entries, as many as there are ranks", thousands(number)))
}

/// A number that all calls of some ranks have, and that is the number of ranks or nearly so.
fn suspicious(numbers: &Numbers, ranks: u32) -> Option<(u64, RankList)> {
    numbers.iter().find_map(|(pattern, some)| match pattern {
        Pattern::Constant(value) => {
            let value = u64::try_from(*value).ok().filter(|n| is_theirs(*n, ranks) || twice(*n, ranks))?;
            Some((value, some.clone()))
        }
        _ => None,
    })
}

fn is_theirs(number: u64, ranks: u32) -> bool {
    number == u64::from(ranks) || number + 1 == u64::from(ranks)
}

/// One to send and one to receive.
fn twice(number: u64, ranks: u32) -> bool {
    number == 2 * u64::from(ranks) || number + 2 == 2 * u64::from(ranks)
}

fn as_many(number: u64, ranks: u32) -> &'static str {
    match number {
        n if n == u64::from(ranks) => "as many as there are ranks",
        n if n + 1 == u64::from(ranks) => "one less than there are ranks",
        n if n == 2 * u64::from(ranks) => "two for each rank",
        _ => "two for each other rank",
    }
}
