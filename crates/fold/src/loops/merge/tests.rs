use super::*;

/// `a (b c) d`: letters are events, brackets loops.
fn tree(text: &str) -> Loops {
    let mut nodes = Vec::new();
    let mut open = Vec::new();
    for letter in text.chars() {
        match letter {
            '(' => {
                open.push(nodes.len());
                nodes.push(Node::Loop { inside: 0 });
            }
            ')' => {
                let at: usize = open.pop().unwrap();
                nodes[at] = Node::Loop { inside: (nodes.len() - at - 1) as u32 };
            }
            ' ' => {}
            letter => nodes.push(Node::Event(letter as u32)),
        }
    }
    let loops = Loops { nodes };
    loops.validate().unwrap();
    loops
}

fn text(loops: &Loops) -> String {
    let mut text = String::new();
    let mut ends = Vec::new();
    for (at, node) in loops.nodes.iter().enumerate() {
        while ends.last() == Some(&at) {
            ends.pop();
            text.push(')');
        }
        match node {
            Node::Event(symbol) => text.push(char::from_u32(*symbol).unwrap()),
            Node::Loop { inside } => {
                text.push('(');
                ends.push(at + 1 + *inside as usize);
            }
        }
    }
    ends.iter().for_each(|_| text.push(')'));
    text
}

/// The tree that comes back for one side.
fn own(merged: &Merged, sources: &[Source]) -> Loops {
    let mut keep = Vec::new();
    let mut ends: Vec<(usize, Option<usize>)> = Vec::new();
    let close = |keep: &mut Vec<Node>, opened: Option<usize>| {
        if let Some(opened) = opened {
            keep[opened] = Node::Loop { inside: (keep.len() - opened - 1) as u32 };
        }
    };
    for (at, (node, source)) in merged.loops.nodes.iter().zip(sources).enumerate() {
        while ends.last().is_some_and(|end| end.0 == at) {
            close(&mut keep, ends.pop().unwrap().1);
        }
        let kept = matches!(source, Source::Node(_));
        if let Node::Loop { inside } = node {
            ends.push((at + 1 + *inside as usize, kept.then_some(keep.len())));
        }
        if kept {
            keep.push(*node);
        }
    }
    while let Some((_, opened)) = ends.pop() {
        close(&mut keep, opened);
    }
    Loops { nodes: keep }
}

/// One kind of rank has it all.
fn one_kind(loops: &Loops) -> Vec<Kinds> {
    vec![vec![1]; loops.nodes.len()]
}

fn merged(a: &str, b: &str) -> String {
    let (a, b) = (tree(a), tree(b));
    let merged = merge(&a, &b, &one_kind(&a));
    merged.loops.validate().unwrap();
    assert_eq!(own(&merged, &merged.first), a, "the first of {}", text(&merged.loops));
    assert_eq!(own(&merged, &merged.second), b, "the second of {}", text(&merged.loops));
    text(&merged.loops)
}

#[test]
fn equal_trees_stay_as_they_are() {
    assert_eq!(merged("a(bc(d))e", "a(bc(d))e"), "a(bc(d))e");
    assert_eq!(merged("", ""), "");
    assert_eq!(merged("ab", ""), "ab");
}

#[test]
fn what_one_side_lacks_is_put_between_its_neighbours() {
    assert_eq!(merged("acd", "abcd"), "abcd");
    assert_eq!(merged("a(bd)e", "a(bcd)fe"), "a(bcd)fe");
}

#[test]
fn a_loop_meets_nodes_that_have_none() {
    assert_eq!(merged("a(bc)d", "abcd"), "a(bc)d");
    assert_eq!(merged("abc", "(b)"), "a(b)c");
    // 004, figure 4: five times Isend, Irecv, then once more and a wait; against six times all three.
    assert_eq!(merged("(ab)cdw", "(abw)"), "((ab)cdw)");
}

#[test]
fn loops_that_cross_keep_copies() {
    // b is in a loop with a on one side, with c on the other.
    assert_eq!(merged("(ab)c", "a(bc)"), "(a(bc))c");
}

#[test]
fn other_orders_keep_copies() {
    assert_eq!(merged("abc", "acb").len(), 4);
}

#[test]
fn nodes_that_no_rank_has_both_of_change_places() {
    let (a, b) = (tree("ab"), tree("ba"));
    let apart = merge(&a, &b, &[vec![1], vec![2]]);
    assert_eq!(text(&apart.loops), "ba");
    assert_eq!(apart.first, [Source::Node(1), Source::Node(0)]);
    let bound = merge(&a, &b, &one_kind(&a));
    assert_eq!(bound.loops.nodes.len(), 3);
}

/// A rank has the last event of a loop and what stands behind the loop, but not the loop's first event.
#[test]
fn a_loop_stays_before_what_any_rank_of_it_has_behind_it() {
    let (a, b) = (tree("(ab)c"), tree("c(ab)"));
    let behind = merge(&a, &b, &[vec![3], vec![1], vec![2], vec![2]]);
    let kept: Vec<&Source> = behind.first.iter().filter(|own| matches!(own, Source::Node(_))).collect();
    assert_eq!(kept, [0, 1, 2, 3].map(Source::Node).iter().collect::<Vec<_>>());
    let apart = merge(&a, &b, &[vec![3], vec![1], vec![2], vec![4]]);
    assert_eq!(text(&apart.loops), "c(ab)");
}

/// Whatever changes places: of the events that a kind of rank has, each stays behind the one before.
#[test]
fn no_kind_of_rank_gets_another_order() {
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..3000 {
        let mut some = || {
            let (mut text, mut letters): (String, Vec<char>) = (String::new(), ('a'..='j').collect());
            random.shuffle(&mut letters);
            for chunk in letters.chunks(2) {
                let inside: String = chunk.iter().collect();
                text += &if random.bool() { format!("({inside})") } else { inside };
            }
            text
        };
        let (a, b) = (tree(&some()), tree(&some()));
        let who: Vec<Kinds> = a.nodes.iter().map(|_| vec![1 << random.u32(..3)]).collect();
        let merged = merge(&a, &b, &who);
        for kind in 0..3 {
            let has = |node: &u32| {
                matches!(a.nodes[*node as usize], Node::Event(_)) && who[*node as usize] == [1 << kind]
            };
            let order = merged.first.iter().filter_map(|source| match source {
                Source::Node(node) => Some(*node).filter(has),
                _ => None,
            });
            assert!(
                order.is_sorted(),
                "kind {kind} of {} and {}: {}",
                text(&a),
                text(&b),
                text(&merged.loops)
            );
        }
    }
}

#[test]
fn hidden_nodes_are_absent() {
    let merged = merge(&tree("a(b(c))"), &tree("a"), &one_kind(&tree("a(b(c))")));
    assert_eq!(
        merged.second,
        [Source::Node(0), Source::Never, Source::Absent, Source::Absent, Source::Absent]
    );
}

#[test]
fn any_two_trees_come_back() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut some = |symbols: u32| {
        let mut text = String::new();
        let mut open = 0;
        for _ in 0..random.u64(..24) {
            match random.u64(..8) {
                0 => {
                    text.push('(');
                    text.push(char::from(b'a' + random.u32(..symbols) as u8));
                    open += 1;
                }
                1 if open > 0 => {
                    text.push(')');
                    open -= 1;
                }
                _ => text.push(char::from(b'a' + random.u32(..symbols) as u8)),
            }
        }
        (0..open).for_each(|_| text.push(')'));
        text
    };
    for round in 0..4000 {
        let symbols = 3 + round % 20;
        merged(&some(symbols), &some(symbols));
    }
}

/// What no loop was found in: every symbol stands everywhere.
#[test]
fn long_sequences_of_few_symbols() {
    let mut random = fastrand::Rng::with_seed(6);
    let mut any =
        |length| Loops { nodes: (0..length).map(|_| Node::Event(random.u64(..3) as u32)).collect() };
    let (a, b) = (any(20_000), any(30_000));
    let pairs: usize = shared(&trees(&a), &trees(&b)).iter().map(Vec::len).sum();
    assert!(pairs <= MOST_PLACES * a.nodes.len(), "{pairs}");
    let merged = merge(&a, &b, &one_kind(&a));
    assert_eq!(own(&merged, &merged.first), a);
    assert_eq!(own(&merged, &merged.second), b);
    // Two thirds and more of two such sequences are in order.
    assert!(merged.loops.nodes.len() < 38_000, "{}", merged.loops.nodes.len());
}

/// By looking at all pairs.
fn in_order_slowly(wish: &[usize], who: &[Kinds]) -> Vec<usize> {
    let together = |i: usize, j: usize| who[i].iter().zip(&who[j]).any(|(i, j)| i & j != 0);
    let mut order: Vec<usize> = Vec::new();
    while order.len() < wish.len() {
        let free = (0..wish.len())
            .filter(|j| !order.contains(j) && (0..*j).all(|i| order.contains(&i) || !together(i, *j)));
        order.extend(free.min_by_key(|&j| (wish[j], j)));
    }
    order
}

#[test]
fn what_no_rank_has_both_of_is_in_the_order_that_is_wished() {
    let mut random = fastrand::Rng::with_seed(8);
    for round in 0..500 {
        let kinds = 1 + random.u64(..if round % 2 == 0 { 4 } else { 130 });
        let who: Vec<Kinds> = (0..random.u64(..30))
            .map(|_| {
                let mut kinds_of = vec![0; kinds.div_ceil(64) as usize];
                (0..1 + random.u64(..2)).map(|_| random.u64(..kinds)).for_each(|kind| {
                    kinds_of[kind as usize / 64] |= 1 << (kind % 64);
                });
                kinds_of
            })
            .collect();
        let wish: Vec<usize> = who.iter().map(|_| random.u64(..10) as usize).collect();
        assert_eq!(in_order(&wish, &before(&who)), in_order_slowly(&wish, &who));
    }
}

#[test]
fn long_bodies_are_put_in_order_without_looking_at_all_pairs() {
    let n = 50_000;
    let who: Vec<Kinds> = (0..n).map(|i| vec![1 << (i % 3) | 1 << (i % 7)]).collect();
    let after = before(&who);
    assert!(after.iter().map(Vec::len).sum::<usize>() <= 2 * n);
    let order = in_order(&(0..n).rev().collect::<Vec<_>>(), &after);
    assert_eq!(order.len(), n);
    // Two kinds that have nothing in common, in turn; the other side has first the one and then the other.
    let a = Loops { nodes: (0..n as u32).map(Node::Event).collect() };
    let b = Loops {
        nodes: (0..2).flat_map(|odd| (0..n as u32 / 2).map(move |i| Node::Event(2 * i + odd))).collect(),
    };
    let who: Vec<Kinds> = (0..n).map(|i| vec![1 << (i % 2)]).collect();
    assert_eq!(merge(&a, &b, &who).loops, b);
}

#[test]
fn many_loops_against_nodes_that_have_none() {
    let n = 20_000u32;
    let a = (0..n).flat_map(|i| [Node::Loop { inside: 2 }, Node::Event(2 * i), Node::Event(2 * i + 1)]);
    let (a, b) = (Loops { nodes: a.collect() }, Loops { nodes: (0..2 * n).map(Node::Event).collect() });
    assert_eq!(merge(&a, &b, &one_kind(&a)).loops, a);
    assert_eq!(merge(&b, &a, &one_kind(&b)).loops, a);
}
