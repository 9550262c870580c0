//! Loops as the machine sees them: which instructions of a function can be reached from each other.

use std::collections::BTreeMap;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use crate::ends::{Back, Callee};

/// Longer functions are not looked into.
const MOST_INSTRUCTIONS: usize = 1 << 20;
/// Nor are those with more ways from indirect jumps to where they may go.
const MOST_WAYS: usize = 1 << 22;

/// The blocks of a function: runs of instructions that are entered at the first and left after the last.
#[derive(Debug, Default)]
pub struct Code {
    /// In the order of addresses.
    blocks: Vec<Block>,
    /// The block that the function begins with.
    entry: usize,
    /// Addresses of its calls.
    calls: Vec<u64>,
}

#[derive(Debug)]
struct Block {
    addresses: Range<u64>,
    next: Vec<usize>,
}

/// What an instruction does to the order of things.
enum Flow {
    On,
    /// On, and there is nothing to it.
    Padding,
    Call(Callee),
    Branch(u64),
    Jump(u64),
    /// To where only the data know.
    Anywhere,
    End,
}

fn flow(instruction: &Instruction) -> Flow {
    match instruction.flow_control() {
        FlowControl::ConditionalBranch => Flow::Branch(instruction.near_branch_target()),
        FlowControl::UnconditionalBranch => Flow::Jump(instruction.near_branch_target()),
        FlowControl::IndirectBranch => Flow::Anywhere,
        FlowControl::Return | FlowControl::Exception => Flow::End,
        _ if instruction.mnemonic() == Mnemonic::Hlt => Flow::End,
        _ if instruction.mnemonic() == Mnemonic::Nop => Flow::Padding,
        _ => Callee::of(instruction).map_or(Flow::On, Flow::Call),
    }
}

/// The instructions of a piece of code, which goes on nowhere.
fn decode(bytes: &[u8], start: u64, most: usize) -> Vec<(Range<u64>, Flow)> {
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut flows: Vec<(Range<u64>, Flow)> = Vec::new();
    while decoder.can_decode() && flows.len() < most {
        let instruction = decoder.decode();
        flows.push((instruction.ip()..instruction.next_ip(), flow(&instruction)));
    }
    if let Some((_, last)) = flows.last_mut() {
        *last = match std::mem::replace(last, Flow::End) {
            Flow::On | Flow::Padding | Flow::Call(_) => Flow::End,
            Flow::Branch(target) => Flow::Jump(target),
            other => other,
        };
    }
    flows
}

/// Calls become the end where nothing comes back from them, and else go on, as padding does.
fn settle(flows: &mut [(Range<u64>, Flow)], back: &dyn Fn(Callee) -> Back) {
    let target = |(_, flow): &(_, Flow)| match flow {
        Flow::Branch(target) | Flow::Jump(target) => Some(*target),
        _ => None,
    };
    let mut targets: Vec<u64> = flows.iter().filter_map(target).collect();
    targets.sort_unstable();
    // Backwards: whether what comes next, apart from padding, is jumped to.
    let mut told = false;
    for (range, flow) in flows.iter_mut().rev() {
        let is_padding = matches!(flow, Flow::Padding);
        match flow {
            Flow::Call(callee) => {
                let ends = match back(*callee) {
                    Back::Returns => false,
                    // Code that nothing jumps to may be where the exception is caught, so the way is kept.
                    Back::Throws => told,
                    Back::Never => true,
                };
                *flow = if ends { Flow::End } else { Flow::On };
            }
            Flow::Padding => *flow = Flow::On,
            _ => {}
        }
        told = targets.binary_search(&range.start).is_ok() || is_padding && told;
    }
}

/// Where a piece of code of x86-64 jumps to, outside of it.
pub fn jumps(bytes: &[u8], start: u64) -> Vec<u64> {
    let own = start..start.saturating_add(bytes.len() as u64);
    let target = |(_, flow): (_, Flow)| match flow {
        Flow::Branch(target) | Flow::Jump(target) => (!own.contains(&target)).then_some(target),
        _ => None,
    };
    let mut found: Vec<u64> =
        decode(bytes, start, MOST_INSTRUCTIONS).into_iter().filter_map(target).collect();
    found.sort_unstable();
    found.dedup();
    found
}

impl Code {
    /// Of the pieces of one function of x86-64, in the order of their addresses: the bytes of each, and where it begins.
    /// `back`: what comes after calls.
    pub fn x86_64(pieces: &[(Vec<u8>, u64)], entry: u64, back: &dyn Fn(Callee) -> Back) -> Code {
        let mut flows = Vec::new();
        for (bytes, start) in pieces {
            flows.extend(decode(bytes, *start, MOST_INSTRUCTIONS.saturating_sub(flows.len())));
        }
        let is_call =
            |(range, flow): &(Range<u64>, Flow)| matches!(flow, Flow::Call(_)).then_some(range.start);
        let calls = flows.iter().filter_map(is_call).collect();
        settle(&mut flows, back);
        let code = Code::of(&flows, &pieces.iter().map(|(_, start)| *start).collect::<Vec<_>>(), entry);
        Code { calls, ..code }
    }

    fn of(flows: &[(Range<u64>, Flow)], pieces: &[u64], entry: u64) -> Code {
        let known = |address: u64| flows.binary_search_by_key(&address, |(range, _)| range.start).is_ok();
        // Where blocks begin, and whether a jump leads there.
        let mut leaders: BTreeMap<u64, bool> = pieces.iter().map(|&start| (start, start == entry)).collect();
        for (range, flow) in flows {
            match flow {
                Flow::On | Flow::Padding | Flow::Call(_) => continue,
                Flow::Branch(target) | Flow::Jump(target) if known(*target) => {
                    leaders.insert(*target, true);
                }
                _ => {}
            }
            let after_branch = matches!(flow, Flow::Branch(_));
            *leaders.entry(range.end).or_insert(after_branch) |= after_branch;
        }
        leaders.retain(|&address, _| known(address));
        let starts: Vec<u64> = leaders.keys().copied().collect();
        let block_at = |address: u64| starts.binary_search(&address).ok();
        // What nothing else leads to is where an indirect jump may go: the cases of a switch.
        let cases: Vec<usize> =
            leaders.values().enumerate().filter(|(_, told)| !**told).map(|(at, _)| at).collect();
        let indirect = flows.iter().filter(|(_, flow)| matches!(flow, Flow::Anywhere)).count();
        if indirect.saturating_mul(cases.len()) > MOST_WAYS {
            return Code::default();
        }
        let mut blocks: Vec<Block> = Vec::with_capacity(starts.len());
        let mut rest = flows.iter().peekable();
        for (at, &start) in starts.iter().enumerate() {
            let end = starts.get(at + 1).copied().unwrap_or(u64::MAX);
            let mut last = None;
            while let Some(instruction) = rest.next_if(|(range, _)| range.start < end) {
                last = Some(instruction);
            }
            let Some((range, flow)) = last else { continue };
            let on = block_at(range.end);
            let next: Vec<usize> = match flow {
                Flow::On | Flow::Padding | Flow::Call(_) => on.into_iter().collect(),
                Flow::Branch(target) => on.into_iter().chain(block_at(*target)).collect(),
                Flow::Jump(target) => block_at(*target).into_iter().collect(),
                Flow::Anywhere => cases.clone(),
                Flow::End => Vec::new(),
            };
            blocks.push(Block { addresses: start..range.end, next });
        }
        Code { entry: block_at(entry).unwrap_or(0), blocks, calls: Vec::new() }
    }

    /// The loops that all these addresses are in, the innermost first: the addresses of each.
    pub fn loops(&self, addresses: &[u64]) -> Vec<Vec<Range<u64>>> {
        let block_of = |&address: &u64| self.blocks.iter().position(|b| b.addresses.contains(&address));
        let Some(wanted) = addresses.iter().map(block_of).collect::<Option<Vec<usize>>>() else {
            return Vec::new();
        };
        let Some(&first) = wanted.first() else { return Vec::new() };
        let mut found = Vec::new();
        let mut inside = vec![true; self.blocks.len()];
        // Padding leads on to what follows it, but nothing ever comes from there.
        let mut alive = self.reached(self.entry, &inside, &vec![false; self.blocks.len()], false);
        alive[self.entry] = true;
        // Ways back to where the loops around are entered: without them only inner loops are left.
        let mut entries = vec![false; self.blocks.len()];
        loop {
            let forward = self.reached(first, &inside, &entries, false);
            let backward = self.reached(first, &inside, &entries, true);
            let round: Vec<bool> = forward.iter().zip(&backward).map(|(f, b)| *f && *b).collect();
            // `first` itself is only in the round if some way leads back to it.
            if !wanted.iter().all(|&block| round[block]) {
                break;
            }
            let within = (0..self.blocks.len()).filter(|&b| round[b]);
            found.push(within.map(|b| self.blocks[b].addresses.clone()).collect());
            let mut from_outside = vec![false; self.blocks.len()];
            from_outside[self.entry] = true;
            for block in (0..self.blocks.len()).filter(|&block| alive[block] && !round[block]) {
                self.blocks[block].next.iter().for_each(|&to| from_outside[to] = true);
            }
            let mut more = false;
            for block in 0..self.blocks.len() {
                if round[block] && from_outside[block] {
                    more |= !std::mem::replace(&mut entries[block], true);
                }
            }
            inside = round;
            if !more {
                break;
            }
        }
        found.reverse();
        found
    }

    /// The calls in loops that have nothing in common with this one. What is only left behind by a loop is not in one.
    pub fn in_other_loops(&self, code: &[Range<u64>]) -> Vec<u64> {
        let is_in = |block: &Block| code.iter().any(|range| range.contains(&block.addresses.start));
        let mut left: Vec<bool> = self.blocks.iter().map(|block| !is_in(block)).collect();
        // What nothing leads to any more, or what leads nowhere, is in no loop.
        let mut from: Vec<Vec<usize>> = vec![Vec::new(); self.blocks.len()];
        let (mut ins, mut outs) = (vec![0usize; self.blocks.len()], vec![0usize; self.blocks.len()]);
        for at in (0..self.blocks.len()).filter(|&at| left[at]) {
            for &next in self.blocks[at].next.iter().filter(|&&next| left[next]) {
                from[next].push(at);
                ins[next] += 1;
                outs[at] += 1;
            }
        }
        let mut open: Vec<usize> =
            (0..self.blocks.len()).filter(|&at| left[at] && (ins[at] == 0 || outs[at] == 0)).collect();
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut left[at], false) {
                continue;
            }
            for &next in &self.blocks[at].next {
                ins[next] = ins[next].saturating_sub(1);
                open.extend((left[next] && ins[next] == 0).then_some(next));
            }
            for &before in &from[at] {
                outs[before] = outs[before].saturating_sub(1);
                open.extend((left[before] && outs[before] == 0).then_some(before));
            }
        }
        let block_of = |address: u64| {
            let behind = self.blocks.partition_point(|block| block.addresses.start <= address);
            behind.checked_sub(1).filter(|&at| self.blocks[at].addresses.contains(&address))
        };
        self.calls.iter().copied().filter(|&call| block_of(call).is_some_and(|block| left[block])).collect()
    }

    /// How calls at these addresses follow each other within a part of the code: a loop, or all of the function.
    pub fn order(&self, addresses: &[u64], within: Option<&[Range<u64>]>) -> Order {
        let whole = self.blocks.first().map(|first| first.addresses.start);
        let is_in = |block: &Block| match within {
            None => true,
            Some(ranges) => ranges.iter().any(|range| range.contains(&block.addresses.start)),
        };
        let inside: Vec<bool> = self.blocks.iter().map(is_in).collect();
        let none = vec![false; self.blocks.len()];
        let mut entries = none.clone();
        if whole.is_some() {
            let mut alive = self.reached(self.entry, &vec![true; self.blocks.len()], &none, false);
            alive[self.entry] = true;
            entries[self.entry] = inside[self.entry];
            for block in (0..self.blocks.len()).filter(|&block| alive[block] && !inside[block]) {
                self.blocks[block].next.iter().for_each(|&to| entries[to] |= inside[to]);
            }
        }
        let block_of = |&address: &u64| self.blocks.iter().position(|b| b.addresses.contains(&address));
        let blocks: Vec<Option<usize>> = addresses.iter().map(block_of).collect();
        // Without the ways back to the beginning.
        let ahead: Vec<Vec<bool>> = blocks
            .iter()
            .map(|block| block.map_or(Vec::new(), |block| self.reached(block, &inside, &entries, false)))
            .collect();
        let leads = |i: usize, j: usize| match (blocks[i], blocks[j]) {
            (Some(a), Some(b)) => a == b || ahead[i][b],
            _ => true,
        };
        let all = 0..addresses.len();
        Order {
            in_loop: all.clone().map(|i| blocks[i].is_none_or(|block| ahead[i][block])).collect(),
            leads: all.clone().map(|i| all.clone().map(|j| leads(i, j)).collect()).collect(),
            addresses: addresses.to_vec(),
            ways: Ways { next: self.ways(&inside, &entries, within.is_some()), blocks },
        }
    }

    /// By block within, where it leads to within; to nowhere is the end: of an iteration, or of the function.
    fn ways(&self, inside: &[bool], entries: &[bool], is_loop: bool) -> Vec<Option<Step>> {
        let step = |at: usize| {
            let block = &self.blocks[at];
            let within = block.next.iter().filter(|&&next| inside[next] && !entries[next]).copied().collect();
            let ends = match is_loop {
                true => block.next.iter().any(|&next| entries[next]),
                false => block.next.is_empty(),
            };
            let leaves = is_loop && block.next.iter().any(|&next| !inside[next]);
            Step { within, ends, leaves, begins: entries[at] }
        };
        (0..self.blocks.len()).map(|at| inside[at].then(|| step(at))).collect()
    }

    /// Blocks to which a way of at least one step leads from a block, or from which one leads to it.
    fn reached(&self, from: usize, inside: &[bool], entries: &[bool], backward: bool) -> Vec<bool> {
        let mut edges: Vec<Vec<usize>> = vec![Vec::new(); self.blocks.len()];
        for (at, block) in self.blocks.iter().enumerate().filter(|(at, _)| inside[*at]) {
            for &next in block.next.iter().filter(|&&next| inside[next] && !entries[next]) {
                match backward {
                    false => edges[at].push(next),
                    true => edges[next].push(at),
                }
            }
        }
        let mut seen = vec![false; self.blocks.len()];
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            for &next in &edges[at] {
                if !std::mem::replace(&mut seen[next], true) {
                    open.push(next);
                }
            }
        }
        seen
    }
}

/// What [`Code::order`] found, by the addresses it was asked for.
#[derive(Debug)]
pub struct Order {
    /// It may come again before the end.
    pub in_loop: Vec<bool>,
    /// `leads[i][j]`: after the first the second may come.
    pub leads: Vec<Vec<bool>>,
    addresses: Vec<u64>,
    ways: Ways,
}

#[derive(Debug)]
struct Ways {
    next: Vec<Option<Step>>,
    blocks: Vec<Option<usize>>,
}

#[derive(Debug)]
struct Step {
    within: Vec<usize>,
    ends: bool,
    leaves: bool,
    begins: bool,
}

impl Order {
    /// Whether the second may come after the first before the end. Within a block all is done in its order.
    pub fn may_follow(&self, first: usize, second: usize) -> bool {
        let blocks = &self.ways.blocks;
        match first == second || blocks[first].is_some() && blocks[first] == blocks[second] {
            true => self.in_loop[first] || self.addresses[first] < self.addresses[second],
            false => self.leads[first][second],
        }
    }

    /// Whether every way from the beginning to the end passes one of these (by index).
    pub fn must_pass(&self, some: &[usize]) -> bool {
        self.all_ways_pass(some, false)
    }

    /// Also every way out of the loop: the last turn, which ends there, makes them too.
    pub fn must_pass_to_leave(&self, some: &[usize]) -> bool {
        self.all_ways_pass(some, true)
    }

    fn all_ways_pass(&self, some: &[usize], also_out: bool) -> bool {
        let closed: Vec<usize> = some.iter().filter_map(|&at| self.ways.blocks[at]).collect();
        let next = &self.ways.next;
        let begins = |at: &usize| next[*at].as_ref().is_some_and(|step| step.begins) && !closed.contains(at);
        let mut open: Vec<usize> = (0..next.len()).filter(begins).collect();
        let mut seen = vec![false; next.len()];
        while let Some(at) = open.pop() {
            let Some(step) = &next[at] else { continue };
            if step.ends || also_out && step.leaves {
                return false;
            }
            for &to in step.within.iter().filter(|to| !closed.contains(to)) {
                if !std::mem::replace(&mut seen[to], true) {
                    open.push(to);
                }
            }
        }
        !closed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each letter is an instruction of a byte: `.` goes on, `<n` may go back to n, `>n` may go on to n, `^n` jumps to n,
    /// `*` jumps anywhere, `!` ends.
    fn code(text: &str) -> Code {
        let mut flows = Vec::new();
        for (at, word) in (0u64..).zip(text.split_whitespace()) {
            let target = word.get(1..).and_then(|t| t.parse().ok()).unwrap_or(0);
            let flow = match word.as_bytes()[0] {
                b'.' => Flow::On,
                b'<' | b'>' => Flow::Branch(target),
                b'^' => Flow::Jump(target),
                b'*' => Flow::Anywhere,
                _ => Flow::End,
            };
            flows.push((at..at + 1, flow));
        }
        Code::of(&flows, &[0], 0)
    }

    fn returns(_: Callee) -> Back {
        Back::Returns
    }

    #[track_caller]
    fn check(text: &str, calls: &[u64], loops: &[&[u64]]) {
        let found = code(text).loops(calls);
        let addresses: Vec<Vec<u64>> =
            found.into_iter().map(|ranges| ranges.into_iter().flatten().collect()).collect();
        assert_eq!(addresses, loops, "{text}");
    }

    #[test]
    fn loops_within_loops() {
        check(". . . !", &[1], &[]);
        check(". . . <1 !", &[2], &[&[1, 2, 3]]);
        check(". . . <1 . !", &[2, 4], &[]);
        // An inner one from 2 to 3, an outer one from 1 to 5.
        check(". . . <2 . <1 !", &[3], &[&[2, 3], &[1, 2, 3, 4, 5]]);
        check(". . . <2 . <1 !", &[3, 4], &[&[1, 2, 3, 4, 5]]);
        check(". . . <2 . <1 !", &[0], &[]);
    }

    #[test]
    fn a_loop_that_is_entered_in_the_middle() {
        // As compilers do: jump to the test at 5, body from 2.
        check(". ^5 . . . . <2 !", &[3], &[&[2, 3, 4, 5, 6]]);
    }

    #[test]
    fn parts_that_were_moved_away() {
        // 3 jumps out to 6, from where 7 jumps back.
        check(". . . >6 <1 ! . ^4", &[2, 6], &[&[1, 2, 3, 4, 6, 7]]);
    }

    #[test]
    fn padding_is_no_way_in() {
        // An outer loop from 1 to 5; the inner one goes on at 8, before which there is padding.
        check(". . . >8 . <1 ! . . ^2", &[2], &[&[2, 3, 8, 9], &[1, 2, 3, 4, 5, 8, 9]]);
    }

    #[test]
    fn cases_of_a_switch() {
        check(". . * . ^7 . ^7 . <1 !", &[3, 5], &[&[1, 2, 3, 4, 5, 6, 7, 8]]);
    }

    #[test]
    fn what_every_iteration_does() {
        // Of the loop from 1 to 8: either 2 or 4, then an inner loop at 6, then 7.
        let code = code(". >4 . ^5 . . <6 . <1 !");
        let whole = code.loops(&[7]).pop().unwrap();
        let order = code.order(&[2, 4, 6, 7], Some(&whole));
        assert_eq!(order.in_loop, [false, false, true, false]);
        assert_eq!(order.leads[0], [true, false, true, true]);
        assert_eq!(order.leads[3], [false, false, false, true]);
        let passes = |some: &[usize]| order.must_pass(some);
        assert_eq!([passes(&[0]), passes(&[0, 1]), passes(&[3]), passes(&[])], [false, true, true, false]);
        // In one block: 7 and 8 come in this order, unless it is in a loop.
        let order = code.order(&[6, 7, 8], Some(&whole));
        assert!(order.may_follow(1, 2) && !order.may_follow(2, 1) && !order.may_follow(1, 1));
        assert!(order.may_follow(0, 0) && order.may_follow(0, 1) && !order.may_follow(1, 0));
        // Of all of it: 0 and what is after the loop.
        let order = code.order(&[0, 2, 9], None);
        assert_eq!(order.in_loop, [false, true, false]);
        assert!(order.must_pass(&[2]) && !order.must_pass(&[1]));
    }

    #[test]
    fn calls_in_other_loops() {
        // Loops from 1 to 2, from 4 to 7 and, on the way out of that, nothing but 9 and 10.
        let mut code = code(". . <1 . . >9 . <4 ! . ^8");
        code.calls = vec![0, 1, 3, 6, 9];
        let inner = code.loops(&[6]).remove(0);
        assert_eq!(code.in_other_loops(&inner), [1]);
        let first = code.loops(&[1]).remove(0);
        assert_eq!(code.in_other_loops(&first), [6]);
        assert_eq!(code.in_other_loops(&[]), [1, 3, 6]);
    }

    #[test]
    fn real_instructions() {
        // push rbx; mov ebx,10; (call +0); (sub ebx,1; jne to the call); pop rbx; ret
        let bytes = [0x53, 0xbb, 10, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x83, 0xeb, 1, 0x75, 0xf6, 0x5b, 0xc3];
        let code = Code::x86_64(&[(bytes.to_vec(), 0x1000)], 0x1000, &returns);
        let around = 0x1006..0x1010;
        assert_eq!(code.loops(&[0x100a]), [[around]]);
        assert!(code.loops(&[0x1001]).is_empty());
        assert!(Code::x86_64(&[], 0, &returns).loops(&[0]).is_empty());
        // Nothing but `jmp rax`, each of which may go to all others.
        assert!(Code::x86_64(&[([0xff, 0xe0].repeat(1 << 18), 0)], 0, &returns).loops(&[0]).is_empty());
    }

    #[test]
    fn calls_that_do_not_come_back() {
        // je to the loop; (call 0x2000; ja to the other call); ret; (call 0x3000; nop);
        // the loop: (sub ebx,1; jne to the loop); jmp to the first call
        let mut bytes = vec![0x74, 0x0e, 0xe8, 0xf9, 0x0f, 0, 0, 0x77, 1, 0xc3, 0xe8, 0xf1, 0x1f, 0, 0, 0x90];
        bytes.extend([0x83, 0xeb, 1, 0x75, 0xfb, 0xeb, 0xeb]);
        let check = |bytes: &[u8], back: Back, call: usize, inner: usize| {
            let after = |callee| if callee == Callee::At(0x3000) { back } else { Back::Returns };
            let code = Code::x86_64(&[(bytes.to_vec(), 0x1000)], 0x1000, &after);
            assert_eq!(code.loops(&[0x1002]).len(), call, "{back:?} {code:?}");
            assert_eq!(code.loops(&[0x1010]).len(), inner, "{back:?} {code:?}");
        };
        check(&bytes, Back::Returns, 1, 1);
        check(&bytes, Back::Throws, 0, 1);
        check(&bytes, Back::Never, 0, 1);
        // Nothing jumps to what stands behind the call: it may be where an exception is caught.
        bytes[0] = 0x90;
        bytes[1] = 0x90;
        bytes[0x14] = 0;
        check(&bytes, Back::Returns, 1, 1);
        check(&bytes, Back::Throws, 1, 1);
        check(&bytes, Back::Never, 0, 0);
    }

    #[test]
    fn pieces_of_a_function() {
        // je into the other piece, which calls and jumps back; (sub ebx,1; jne to the je); ret
        let hot = [0x74, 0xf7, 0x83, 0xeb, 1, 0x75, 0xf9, 0xc3];
        // call +0; jmp to behind the je. Then one that ends with the call, right before the first piece.
        for (back, loops) in [(&[0xeb, 2][..], 1), (&[], 0)] {
            let cold = [&[0xe8, 0, 0, 0, 0][..], back].concat();
            let start = 0x1007 - cold.len() as u64;
            let mut hot = hot.to_vec();
            hot[1] = (start as i64 - 0x1009) as u8;
            assert_eq!(jumps(&hot, 0x1007), [start]);
            assert_eq!(jumps(&cold, start).len(), loops);
            let code = Code::x86_64(&[(cold, start), (hot, 0x1007)], 0x1007, &returns);
            assert_eq!(code.loops(&[start]).len(), loops, "{code:?}");
            assert_eq!(code.loops(&[0x1009]).len(), 1);
            let whole = code.order(&[start, 0x100e], None);
            assert!(!whole.must_pass(&[0]) && whole.leads[0][1] == (loops == 1));
        }
    }
}
