//! What a shell and a terminal meet: colours only where they are asked for, completion, pages for man.

use crate::common;

use common::Scratch;

/// A trace of a real run.
fn recorded(place: &Scratch) {
    let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../views/tests/seeds");
    std::fs::copy(seeds.join("amr.rfn"), place.path("t.rfn")).unwrap();
}

/// Without escapes.
fn stripped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        out.push_str(&rest[..at]);
        rest = &rest[at..][rest[at..].find('m').expect("an escape ends") + 1..];
    }
    out + rest
}

#[test]
fn colours_are_for_terminals_and_change_no_letter() {
    let place = Scratch::new("colours");
    recorded(&place);
    for words in [
        &["info", "t.rfn"][..],
        &["stats", "t.rfn"],
        &["stats", "t.rfn", "--plot"],
        &["loops", "t.rfn"],
        &["verify", "t.rfn"],
        &["diff", "t.rfn", "t.rfn"],
        &["info", "nothing.rfn"],
    ] {
        let said = |more: &[&str], variables: &[(&str, &str)]| {
            let mut command = place.command(&[words, more].concat()[..]);
            for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM"] {
                command.env_remove(name);
            }
            let done = command.envs(variables.iter().copied()).output().unwrap();
            String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap()
        };
        let plain = said(&[], &[]);
        assert!(!plain.contains('\x1b'), "{words:?}: {plain}");
        let painted = said(&["--color", "always"], &[]);
        assert!(painted.contains('\x1b'), "{words:?}: {painted}");
        assert_eq!(stripped(&painted), plain, "{words:?}");
        assert_eq!(said(&[], &[("CLICOLOR_FORCE", "1")]), painted, "{words:?}");
        assert_eq!(said(&["--color=never"], &[("CLICOLOR_FORCE", "1")]), plain, "{words:?}");
        assert_eq!(said(&[], &[("NO_COLOR", "1")]), plain, "{words:?}");
    }
    let json = place.refrain(&["info", "t.rfn", "--json", "--color", "always"]);
    assert!(!json.out.contains('\x1b'), "{}", json.out);
}

#[test]
fn help_is_short_or_long() {
    let place = Scratch::new("help");
    let (short, long) = (place.refrain(&["run", "-h"]), place.refrain(&["run", "--help"]));
    assert!(short.out.contains("More: refrain run --help"), "{}", short.out);
    assert!(long.out.contains("REFRAIN_PATIENCE") && !short.out.contains("REFRAIN_PATIENCE"));
}

#[test]
fn pages_and_scripts() {
    let place = Scratch::new("pages");
    place.refrain(&["man", "--out", "man1"]).check(0, "");
    assert_eq!(place.read("man1/refrain-stats.1"), place.refrain(&["man", "stats"]).out.into_bytes());
    place.refrain(&["man", "nonsense"]).check(2, "there is no command nonsense");
    assert!(place.refrain(&["completions", "bash"]).out.contains("complete -F _refrain"));
    place.refrain(&["completions", "tcsh"]).check(2, "bash");
}

#[test]
fn pictures_fit_where_they_are_shown() {
    let place = Scratch::new("pictures");
    recorded(&place);
    for (locale, columns) in [("C.UTF-8", "72"), ("C", "60")] {
        let mut command = place.command(&["stats", "t.rfn", "--plot"][..]);
        let done = command.env("LC_ALL", locale).env("COLUMNS", columns).output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(text.starts_with("time by function") || text.starts_with("calls by function"), "{text}");
        assert_eq!(text.is_ascii(), locale == "C", "{text}");
        let most: usize = columns.parse().unwrap();
        // Sentences are as long as they are.
        let drawn = |line: &&str| line.starts_with("  ");
        assert!(text.lines().filter(drawn).all(|line| line.chars().count() <= most), "{text}");
    }
    place.refrain(&["stats", "t.rfn", "--plot", "--json"]).check(2, "cannot be used with");
    place.file("a.din", "0 1000\n");
    place.refrain(&["stats", "a.din", "--plot"]).check(2, "--plot is for traces of MPI calls");
}
