//! Every JSON document is as its schema in `schemas/` says. A change of form changes the schema too, and its number.

use crate::common;
use crate::made;
use crate::recorded;
use crate::unique;

use std::path::{Path, PathBuf};

use serde_json::Value;

use common::Scratch;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema(name: &str) -> Value {
    let text = std::fs::read_to_string(root().join("schemas").join(format!("{name}.json"))).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(schema["$id"], format!("refrain-{name}-1"));
    schema
}

/// As much of JSON Schema as ours use. A word that is not known here is a mistake in the schema.
fn check(whole: &Value, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    let fail = |what: String| Err(format!("{place}: {what}"));
    for (word, says) in schema.as_object().expect("a schema is an object") {
        match word.as_str() {
            "$schema" | "$id" | "$defs" | "title" => {}
            "$ref" => {
                let name = says.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                check(whole, &whole["$defs"][name], value, place)?;
            }
            "const" if value == says => {}
            "const" => return fail(format!("{value} is not {says}")),
            "enum" if says.as_array().unwrap().contains(value) => {}
            "enum" => return fail(format!("{value} is none of {says}")),
            "type" => {
                let is = |name: &Value| match name.as_str().unwrap() {
                    "null" => value.is_null(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    "string" => value.is_string(),
                    "array" => value.is_array(),
                    "object" => value.is_object(),
                    other => panic!("no type {other}"),
                };
                let fits = says.as_array().map_or_else(|| is(says), |names| names.iter().any(is));
                if !fits {
                    return fail(format!("{value} is no {says}"));
                }
            }
            "anyOf" => {
                let tries = says.as_array().unwrap().iter().map(|one| check(whole, one, value, place));
                let failed: Vec<String> = tries.map_while(Result::err).collect();
                if failed.len() == says.as_array().unwrap().len() {
                    return fail(failed.join("; or "));
                }
            }
            "items" => {
                for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(whole, says, item, &format!("{place}[{at}]"))?;
                }
            }
            "required" => {
                let missing =
                    says.as_array().unwrap().iter().find(|key| value.get(key.as_str().unwrap()).is_none());
                if let Some(key) = missing {
                    return fail(format!("{key} is missing"));
                }
            }
            "properties" => {
                for (key, says) in says.as_object().unwrap() {
                    if let Some(member) = value.get(key) {
                        check(whole, says, member, &format!("{place}.{key}"))?;
                    }
                }
            }
            "additionalProperties" => {
                for (key, member) in value.as_object().into_iter().flatten() {
                    let known = schema.get("properties").is_some_and(|known| known.get(key).is_some());
                    match says {
                        _ if known => {}
                        Value::Bool(false) => return fail(format!("{key} is not in the schema")),
                        says => check(whole, says, member, &format!("{place}.{key}"))?,
                    }
                }
            }
            other => panic!("{place}: {other} is not known here"),
        }
    }
    Ok(())
}

#[track_caller]
fn fits(name: &str, text: &str, what: &str) {
    let schema = schema(name);
    unique::check(text).unwrap_or_else(|e| panic!("{what}: {e}\n{text}"));
    let value: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{what}: {e}\n{text}"));
    check(&schema, &schema, &value, name).unwrap_or_else(|e| panic!("{what}: {e}"));
}

/// The traces of real programs that are kept for other tests: with loops, stacks, blocks, objects of all kinds.
fn seeds() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("crates/views/tests/seeds")).unwrap();
    let mut seeds: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    seeds.retain(|path| path.extension().is_some_and(|extension| extension == "rfn"));
    seeds.sort();
    assert!(seeds.len() >= 8, "{seeds:?}");
    seeds
}

#[test]
fn what_is_said_of_calls() {
    let place = Scratch::new("schemas");
    let (mut calls, mut with_sites, mut with_classes, mut with_paths, mut with_signatures) = (0, 0, 0, 0, 0);
    for seed in seeds() {
        let seed = seed.to_str().unwrap();
        let said = |words: &[&str]| {
            let done = place.refrain(&[&words[..1], &[seed], &words[1..], &["--json"]].concat());
            (done.code == Some(0)).then_some(done.out)
        };
        let told = |words: &[&str]| said(words).unwrap_or_else(|| panic!("{words:?} of {seed}"));
        fits("info", &told(&["info"]), seed);
        fits("stats", &told(&["stats"]), seed);
        fits("loops", &told(&["loops"]), seed);
        for by in ["size", "peer"] {
            if let Some(classes) = said(&["stats", "--per", by]) {
                fits("classes", &classes, seed);
                with_classes += usize::from(classes.contains("\"mean_ns\""));
            }
        }
        fits("loops", &told(&["loops", "--folded", "--ranks", "0"]), seed);
        for line in told(&["dump", "--calls", "..300"]).lines() {
            fits("dump", line, seed);
            calls += 1;
        }
        if let Some(paths) = said(&["stats", "--per", "path"]) {
            fits("paths", &paths, seed);
            with_paths += 1;
        }
        if let Some(signatures) = said(&["stats", "--per", "signature"]) {
            fits("signatures", &signatures, seed);
            with_signatures += 1;
        }
        if let Some(sites) = said(&["stats", "--per", "site"]) {
            fits("sites", &sites, seed);
            told(&["dump", "--stacks", "--calls", "..20"]).lines().for_each(|line| fits("dump", line, seed));
            with_sites += 1;
        }
    }
    assert!(calls > 1000 && with_sites > 0 && with_classes > 4, "{calls} {with_sites} {with_classes}");
    assert!(with_paths > 0 && with_signatures > 0);
}

#[test]
fn what_is_said_of_two_traces() {
    let place = Scratch::new("schemas-diff");
    let seeds = seeds();
    let (mut different, mut timed) = (0, 0);
    for (a, b) in seeds.iter().zip(seeds.iter().cycle().skip(1)) {
        let [a, b] = [a, b].map(|path| path.to_str().unwrap());
        for (other, more) in [(a, &[][..]), (b, &[]), (b, &["--time"])] {
            let done = place.refrain(&[&["diff", a, other, "--json"], more].concat());
            // Some have no times.
            if done.code == Some(2) && !more.is_empty() {
                done.check(2, "has no times to compare");
                continue;
            }
            assert_eq!(done.code, Some(i32::from(a != other)), "{a} {other}: {}", done.err);
            fits("diff", &done.out, a);
            different += usize::from(done.out.contains(r#""changes":[{"#));
            timed += usize::from(done.out.contains(r#""within_noise""#));
        }
    }
    assert!(different > 0 && timed > 0, "{different} {timed}");
}

/// A rank that sends late, and one that waits for it: of traces with times of calls.
#[test]
fn what_is_said_of_times() {
    let place = Scratch::new("schemas-times");
    let message = |name: &str, peer: i64| {
        made::call(name).buffer().number(1).object("MPI_INT").tagged(peer).tagged(9).object("MPI_COMM_WORLD")
    };
    let barrier = || made::call("MPI_Barrier").object("MPI_COMM_WORLD");
    let receive = message("MPI_Recv", 1).named("MPI_STATUS_IGNORE").from(&[7]);
    let ranks = [
        vec![vec![(receive, 0, 9_000_000), (barrier(), 9_100_000, 9_200_000)]],
        vec![vec![(message("MPI_Send", -1), 8_900_000, 8_950_000), (barrier(), 9_150_000, 9_200_000)]],
    ];
    for time in ["exact", "binned=1.2"] {
        place.file("t.rfn", made::timed_file(&ranks, time));
        let said =
            |words: &[&str]| place.refrain(&[words, &["t.rfn", "--json"]].concat()).check(0, "").out.clone();
        let waits = said(&["stats", "--waits"]);
        fits("waits", &waits, time);
        assert!(waits.contains(r#""pattern":"late_sender""#), "{waits}");
        let calls = said(&["dump", "--merged"]);
        assert_eq!(calls.matches(r#""start""#).count(), 4, "{calls}");
        assert_eq!(calls.contains("start_error"), time != "exact", "{calls}");
        calls.lines().for_each(|line| fits("dump", line, time));
        let early = said(&["dump", "--between", "..0.001"]);
        assert_eq!(early.lines().count(), 1, "{early}");
    }
    place.file("u.rfn", refrain_tracefile::write(&made::alike(2, &[barrier()])));
    for words in [&["stats", "--waits"][..], &["dump", "--merged"], &["dump", "--between", "1..2"]] {
        place.refrain(&[words, &["u.rfn"]].concat()).check(2, "refrain run --time exact");
    }
    place.file("a.din", "0 1000\n1 2000\n");
    place.refrain("stats --waits a.din").check(2, "--waits is for traces of MPI calls");
}

/// Ranks of a run that died: one in a receive, one by an error, one by a signal, and one while it polled.
#[test]
fn what_is_said_of_calls_in_flight() {
    let place = Scratch::new("schemas-flight");
    let asks = made::call("MPI_Iprobe").tagged(1).tagged(0).object("MPI_COMM_WORLD").tagged(0).no_status();
    let calls = [made::call("MPI_Barrier").object("MPI_COMM_WORLD"), asks.number(7)];
    let mut trace = made::alike(4, &calls);
    let constant = |name| refrain_tracefile::Arg::Constant(refrain_model::constant(name).unwrap().id);
    let number = refrain_tracefile::Arg::Number;
    let unknown = refrain_tracefile::Arg::Unknown;
    let receive = |rank: u32| refrain_tracefile::InFlight {
        rank,
        inside: true,
        function: Some(refrain_model::function("MPI_Recv").unwrap().id),
        args: vec![
            unknown,
            number(4),
            constant("MPI_INT"),
            constant("MPI_ANY_SOURCE"),
            number(7),
            constant("MPI_COMM_WORLD"),
            unknown,
        ],
        ns: Some(41_000_000_000),
        place: Some(refrain_tracefile::CodeAddress { module: made::program(), offset: 0x1234 }),
        ..Default::default()
    };
    let error = Some((refrain_model::constant("MPI_ERR_TRUNCATE").unwrap().id, "Message truncated".into()));
    let mut waits = receive(2);
    (waits.waits_for, waits.requests) = (2, vec![refrain_tracefile::Waited { thread: 0, back: 0 }]);
    trace.meta.flight = vec![
        receive(0),
        refrain_tracefile::InFlight { error, ..receive(1) },
        refrain_tracefile::InFlight { fault: Some(11), fault_place: waits.place.clone(), ..waits },
        refrain_tracefile::InFlight {
            rank: 3,
            function: Some(refrain_model::function("MPI_Iprobe").unwrap().id),
            ..Default::default()
        },
    ];
    place.file("t.rfn", refrain_tracefile::write(&trace));
    let said = |command| place.refrain(&[command, "t.rfn", "--json"]).check(0, "").out.clone();
    fits("info", &said("info"), "info");
    fits("where", &said("where"), "where");
    for told in [
        r#""source":"MPI_ANY_SOURCE""#,
        r#""error_class":"MPI_ERR_TRUNCATE""#,
        r#""signal":"SIGSEGV""#,
        r#""polls":true"#,
        r#""culprit":{"kind":"ended","ranks":[1,2]"#,
    ] {
        assert!(said("where").contains(told), "{told}: {}", said("where"));
    }
    place.refrain("where nothing.rfn").check(2, "nothing.rfn");
    place.refrain("where").check(2, "refrain where app.rfn");
}

#[test]
fn what_is_said_of_programs_and_addresses() {
    let place = Scratch::new("schemas-addresses");
    fits("doctor", &place.refrain(&["doctor", "--json", "/bin/true"]).out, "doctor");
    let lines: String = (0..500).map(|n| format!("{} {:x}\n", n % 5, 0x1000 + 64 * (n % 97))).collect();
    place.file("a.din", lines);
    let said =
        |words: &[&str]| place.refrain(&[words, &["a.din", "--json"]].concat()).check(0, "").out.clone();
    fits("addresses", &said(&["stats"]), "stats");
    // What no cache takes is told by kind in both.
    for (name, words) in [("caches", ["--l1", "1K,2,64"]), ("curve", ["--curve=unified", "--line=64"])] {
        let said = said(&[&["simulate"], &words[..]].concat());
        fits(name, &said, name);
        assert!(said.contains(r#""passed_over":{"escape":100}"#), "{said}");
    }
    // Caches of every kind of reference.
    let levels =
        ["--l1i", "1K,2,64", "--l1d", "1K,2,64,through,no-allocate", "--l2", "8K,4,64", "--l3", "16K,4,64"];
    fits("caches", &said(&[&["simulate"], &levels[..]].concat()), "three levels");
    fits("caches", &said(&["simulate", "--l1", "1K,2,64", "--interval", "100"]), "intervals");
    let by = ["simulate", "--l1d", "1K,2,64", "--classes", "--by", "pc", "--interval", "100"];
    fits("caches", &said(&by), "classes and instructions");
    let words = [
        "--l1i",
        "1K,2,64,plru",
        "--l1d",
        "1K,2,64,prefetch-tagged,victims=2",
        "--l2d",
        "2K,2,64",
        "--l3",
        "8K,4,64,inclusive",
    ];
    fits("caches", &said(&[&["simulate"], &words[..]].concat()), "every word");
    fits("caches", &said(&["simulate", "--l1d", "1K,2,64,sector=16,no-fetch"]), "sectors");
    fits("caches", &said(&["simulate", "--l1", "1K,2,64", "--dtlb", "4,4,4K", "--l2tlb", "8,2,4K"]), "TLBs");
    let tlbs = ["simulate", "--l1", "1K,2,64", "--dtlb", "4,4,4K", "--interval", "100"];
    fits("caches", &said(&tlbs), "TLBs over time");
    place.file("a.xdin", "w 0 4\nc 0 0\nv 0 4\n");
    let told = place.refrain("simulate a.xdin --l1 1K,2,64 --interval 2 --json").check(0, "").out.clone();
    fits("caches", &told, "copy-backs");
    assert!(told.contains(r#""copied_back":1,"dropped":1"#), "{told}");
    let several = said(&["simulate", "--l1d", "1K..2K,2,64", "--interval", "100"]);
    fits("caches", &several, "configurations");
    assert!(several.contains(r#""configurations":[{"caches":["#), "{several}");
}

#[test]
fn what_is_said_of_memory_references() {
    let place = Scratch::new("schemas-references");
    recorded::make(&place.path("a.rfn"), 3, 300_000);
    let said =
        |words: &[&str]| place.refrain(&[words, &["a.rfn", "--json"]].concat()).check(0, "").out.clone();
    fits("memory-info", &said(&["info"]), "info");
    fits("memory-stats", &said(&["stats"]), "stats");
    fits("memory-loops", &said(&["loops", "--all"]), "loops");
    let cores = ["simulate", "--l1d", "1K,2,64", "--l2", "8K,4,64"];
    fits("caches", &said(&cores), "cores");
    let coherent =
        ["--coherence", "mesi", "--classes", "--by", "pc", "--limit", "3000", "--interval", "1000"];
    let coherent = said(&[&cores[..], &coherent[..]].concat());
    fits("caches", &coherent, "coherence");
    assert!(coherent.contains(r#""protocol":"mesi""#) && coherent.contains(r#""sharing":{"#), "{coherent}");
    let several = said(&["simulate", "--l1d", "1K..2K,2,64", "--coherence", "msi", "--limit", "3000"]);
    fits("caches", &several, "coherence of configurations");
    assert!(said(&["loops", "--all"]).contains("\"step\":4,\"count\":30"));
    said(&["dump", "--calls", "..100"]).lines().for_each(|line| fits("memory-dump", line, "dump"));
    said(&["dump", "--sites", "--calls", "..9"]).lines().for_each(|line| fits("memory-dump", line, "dump"));
    let calls = include_bytes!("../../views/tests/seeds/threads.rfn");
    recorded::make_both(calls, &place.path("a.rfn"), 0);
    fits("info", &said(&["info"]), "info");
    let both = said(&["dump", "--references"]);
    assert!(both.contains("\"call\":{"));
    both.lines().for_each(|line| fits("memory-dump", line, "dump"));
}

#[test]
fn what_is_said_of_more_ranks() {
    let place = Scratch::new("schemas-extrapolate");
    let simulated = |pattern: &str, ranks: u32| {
        let done = refrain_scale::simulate(pattern.parse().unwrap(), ranks, 3, &Default::default()).unwrap();
        place.file(&format!("{pattern}{ranks}.rfn"), done.bytes);
    };
    for ranks in [4, 9, 16, 25] {
        simulated("ring", ranks);
        simulated("alltoallv", ranks);
    }
    let to = |pattern: &str, more: &str| {
        let files: Vec<String> = [4, 9, 16].map(|ranks| format!("{pattern}{ranks}.rfn")).into();
        place.refrain(format!("extrapolate {} --ranks 25 {more}", files.join(" ")).as_str())
    };
    let exact = to("ring", "-o more.rfn --json");
    fits("extrapolate", &exact.check(0, "").out, "ring");
    let says = |words: &str, text: &str| {
        let out = place.refrain(words).check(0, "").out.clone();
        assert!(out.contains(text), "{words}: {out}");
    };
    says("diff more.rfn ring25.rfn", "equal: 25 ranks");
    says("info more.rfn", "extrapolated, not recorded");
    says("verify more.rfn", "what was extrapolated from 4, 9, 16 ranks; nobody recorded it");
    fits("info", &place.refrain("info more.rfn --json").check(0, "").out, "info");
    to("ring", "-o more.rfn").check(2, "more.rfn exists already");
    let not = to("alltoallv", "-o none.rfn --json");
    fits("extrapolate", &not.check(1, "").out, "alltoallv");
    assert!(!place.path("none.rfn").exists());
    let not = to("alltoallv", "-o none.rfn").check(1, "").out.clone();
    assert!(not.contains("MPI_Alltoallv sendcounts"), "{not}");
    place.refrain("extrapolate ring4.rfn --ranks 25 -o none.rfn").check(2, "one trace does not say");
    place.refrain("extrapolate ring4.rfn ring4.rfn --ranks 25 -o none.rfn").check(2, "both have 4 ranks");
    place
        .refrain("extrapolate ring4.rfn alltoallv9.rfn --ranks 25 -o none.rfn")
        .check(2, "not of the same program");
}

/// The checker above is not one that says yes to everything.
#[test]
fn what_does_not_fit_is_refused() {
    let schema = schema("stats");
    let refused =
        |text: &str| check(&schema, &schema, &serde_json::from_str(text).unwrap(), "stats").unwrap_err();
    let good = r#"{"schema":"refrain-stats-1","ranks":1,"calls":2,"payload":3}"#;
    fits("stats", good, "good");
    assert!(refused(&good.replace("stats-1", "stats-2")).contains("is not \"refrain-stats-1\""));
    assert!(refused(&good.replace(r#","payload":3"#, "")).contains("missing"));
    assert!(refused(&good.replace(":2", ":\"2\"")).contains("stats.calls"));
    assert!(refused(&good.replace("payload", "paylord")).contains("paylord"));
    // A key twice, here and inside, which `Value` would read without a word.
    for (text, key) in [(r#"{"a":1,"b":2,"a":1}"#, "a"), (r#"[{"a":{"c":null,"c":[]}}]"#, "c")] {
        assert!(unique::check(text).unwrap_err().contains(&format!("the key {key} occurs twice")));
    }
    assert_eq!(unique::check(r#"{"a":[{"b":1.5},{"b":-1}],"b":{"a":"b"}}"#), Ok(()));
    assert!(unique::check("{} {}").is_err());
}
