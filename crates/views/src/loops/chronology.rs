//! When calls were first made, from how they are folded: in an iteration the order is that of the nodes, but what is there
//! first in a later iteration came later.

use std::borrow::Cow;
use std::collections::HashMap;

use refrain_fold::loops::Loops;
use refrain_fold::stream::Stream;

use super::tree::Branch;

/// Kinds of ranks that are looked at, and numbers of a node: later ones are all as late.
const KINDS: usize = 8;
const FAR: usize = 1 << 12;

/// From the outermost loop in: which of its runs, and which node in that.
type Moment = Vec<(usize, usize)>;

/// By symbol, as a place in the order in which they came. `kinds`: of ranks, the times of the nodes.
pub fn came<'k>(
    loops: &Loops,
    nodes: &[Branch],
    kinds: impl Iterator<Item = &'k [Option<Cow<'k, Stream>>]>,
) -> HashMap<u32, usize> {
    let mut moments: Vec<Option<Moment>> = vec![None; nodes.len()];
    for times in kinds.take(KINDS) {
        let kind = Kind::new(loops, times);
        for (node, known) in moments.iter_mut().enumerate().filter(|(_, known)| known.is_none()) {
            *known = nodes[node].symbol().and_then(|_| kind.moment(nodes, node));
        }
    }
    let mut order: Vec<(Option<Moment>, usize)> =
        moments.into_iter().enumerate().map(|(node, moment)| (moment, node)).collect();
    // What no kind that was looked at did comes last.
    order.sort_by(|(a, one), (b, other)| (a.is_none(), a, one).cmp(&(b.is_none(), b, other)));
    let mut came = HashMap::new();
    for (at, (_, node)) in order.into_iter().enumerate() {
        if let Some(symbol) = nodes[node].symbol() {
            came.entry(symbol).or_insert(at);
        }
    }
    came
}

/// What ranks of one kind did.
struct Kind {
    /// By node, in which of the runs of what is around it it first runs; none if it never does.
    first: Vec<Option<usize>>,
    /// By node, how often it ran after so many of the runs of what is around it.
    runs: Vec<Vec<u64>>,
}

impl Kind {
    fn new(loops: &Loops, times: &[Option<Cow<Stream>>]) -> Kind {
        let stream = |node: usize| times.get(node)?.as_deref();
        let (mut first, mut runs) = (Vec::new(), Vec::new());
        for (node, (reached, all)) in loops.totals(stream).into_iter().enumerate() {
            let length = usize::try_from(reached).unwrap_or(FAR).min(FAR);
            let numbers =
                stream(node).filter(|_| all > 0).into_iter().flat_map(|times| times.iter().take(length));
            let sums: Vec<u64> = numbers
                .scan(0u64, |sum, times| {
                    *sum = sum.saturating_add(times.max(0) as u64);
                    Some(*sum)
                })
                .collect();
            first.push((all > 0).then(|| sums.partition_point(|sum| *sum == 0)));
            runs.push(sums);
        }
        Kind { first, runs }
    }

    fn moment(&self, nodes: &[Branch], node: usize) -> Option<Moment> {
        let (mut at, mut run) = (node, self.first[node]?);
        let mut moment = vec![(run, at)];
        while let Some(around) = nodes[at].parent {
            // The run of what is around that, in which this run of it is.
            run = self.runs[around].partition_point(|sum| *sum <= run as u64);
            at = around;
            moment.push((run, at));
        }
        moment.reverse();
        Some(moment)
    }
}
