//! Settings that not every program is traced in: each meets every kind of call, in a few programs, and what is traced equals
//! what the witness saw. Which program runs on which library takes turns, so that both libraries meet every setting.

use std::collections::BTreeSet;

use refrain_e2e::run::Setting;
use refrain_e2e::{Library, Program, check};

/// Together they make calls of every family.
const PROGRAMS: [&str; 14] = [
    "p2p",
    "completion",
    "persistent",
    "collectives",
    "icollectives",
    "comms",
    "types",
    "misc",
    "callbacks",
    "rma",
    "io",
    "processes",
    "tool",
    "sessions4",
];

fn check(name: &str) {
    let number = Setting::MORE.iter().position(|setting| setting.name == name).expect("a setting");
    let setting = Setting::MORE[number];
    let mut families = BTreeSet::new();
    for (k, program) in PROGRAMS.iter().map(|name| Program::named(name)).enumerate() {
        let library = program.only.unwrap_or(Library::ALL[(k + number) % 2]);
        let ranks = program.ranks.iter().copied().find(|ranks| *ranks > 1).unwrap_or(program.ranks[0]);
        let functions = check::held(library, &program, ranks, setting, None).functions;
        let known = functions.iter().filter_map(|name| refrain_model::function(name));
        families.extend(known.flat_map(|f| f.families).copied());
    }
    let all: BTreeSet<&str> = refrain_model::families().into_iter().collect();
    assert_eq!(families, all, "kinds of calls that are met with {name}");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn split_off() {
    check("split off");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn pointers_off() {
    check("pointers off");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn stacks_site() {
    check("stacks site");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn stacks_full() {
    check("stacks full");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn time_off() {
    check("time off");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn time_histogram() {
    check("time histogram");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn time_exact() {
    check("time exact");
}

#[test]
fn no_setting_is_forgotten() {
    let names: Vec<&str> = Setting::MORE.iter().map(|setting| setting.name).collect();
    let times = ["time off", "time histogram", "time exact"];
    assert_eq!(names, [&["split off", "pointers off", "stacks site", "stacks full"][..], &times].concat());
}
