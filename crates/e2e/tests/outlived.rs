//! Objects that are used after they were freed, as MPI allows: each use has the name of the object that is meant. Ignored in a
//! plain `cargo test`: needs the MPI libraries and the built command.

use std::collections::BTreeMap;

use refrain_e2e::{Library, Program, run};

/// What `outlived.c` does with its keys, twice for each kind: what, and with the first key or the second.
const STEPS: [(&str, usize); 9] = [
    ("create", 0),
    ("set", 0),
    ("free", 0),
    ("create", 1),
    ("set", 1),
    ("get", 0),
    ("delete", 0),
    ("delete", 1),
    ("free", 1),
];

fn keys_keep_their_names_until_their_attributes_are_gone(library: Library) {
    let program = Program::unwitnessed("outlived.c");
    let traced = run::traced_with(library, &program, 2, &[]);
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    for calls in traced.dump() {
        let mut steps = Vec::new();
        for call in &calls {
            let name = call.get("call").text().unwrap_or_default();
            let Some((_, what)) = name.strip_prefix("MPI_").and_then(|name| name.split_once('_')) else {
                continue;
            };
            let args = call.get("args").members();
            let Some((_, key)) = args.iter().find(|(name, _)| name.ends_with("_keyval")) else { continue };
            steps.push((
                what.split('_').next().unwrap_or_default(),
                key.text().unwrap_or_default().to_owned(),
            ));
        }
        assert_eq!(steps.len(), 3 * 2 * STEPS.len(), "{steps:?}");
        for round in steps.chunks(STEPS.len()) {
            let mut named: BTreeMap<usize, &str> = BTreeMap::new();
            for ((what, name), (wanted, key)) in round.iter().zip(STEPS) {
                assert_eq!(*what, wanted, "{round:?}");
                assert_eq!(*named.entry(key).or_insert(name), name, "{}: {round:?}", library.suffix());
            }
            assert_ne!(named[&0], named[&1], "{}: {round:?}", library.suffix());
        }
    }
}

on_both!(keys_keep_their_names_until_their_attributes_are_gone);
