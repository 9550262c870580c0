//! What is compared: what the user does not care for, and what one of the two traces does not have.

use std::collections::HashSet;
use std::str::FromStr;

use refrain_model::{choice, functions};
use refrain_tracefile::{Meta, Trace};

use super::Which;

/// What does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignore {
    /// What depends on where things lie in memory: which segment a buffer is in, its offset, and numbers of type `MPI_Aint` that are
    /// addresses. Sentinels (`MPI_IN_PLACE`, `MPI_BOTTOM`, NULL) count.
    pub pointers: bool,
    /// Call stacks.
    pub sites: bool,
    /// How often something was asked for in vain, and into how many calls of `MPI_Waitsome` or `MPI_Testsome` completions
    /// fell.
    pub polls: bool,
    /// Which requests. A library may have one handle for several: nobody knows then which of them a copy of it is.
    pub requests: bool,
}

/// The words, and what they are short for.
const WORDS: [&str; 5] = ["time", "pointers", "sites", "polls", "requests"];

impl FromStr for Ignore {
    type Err = String;

    fn from_str(text: &str) -> Result<Ignore, String> {
        let mut ignore = Ignore::default();
        for word in text.split(',').map(str::trim) {
            match word {
                // It is never compared.
                "time" => {}
                "pointers" => ignore.pointers = true,
                "sites" => ignore.sites = true,
                "polls" => ignore.polls = true,
                "requests" => ignore.requests = true,
                _ => return Err(format!("'{word}' is none of {}", WORDS.join(", "))),
            }
        }
        Ok(ignore)
    }
}

/// How the two are compared.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub ignore: Ignore,
    pub notes: Vec<String>,
    /// Of functions that not both recorded, calls are left out.
    pub functions: Option<HashSet<u16>>,
    /// The folded forms cannot be held against each other.
    pub one_by_one: bool,
    /// Ranks that were not chosen are no difference: in A, in B.
    excused: [bool; 2],
}

fn option<'a>(meta: &'a Meta, name: &str) -> Option<&'a str> {
    meta.options.iter().find(|(option, _)| option == name).map(|(_, said)| said.as_str())
}

fn said(meta: &Meta, name: &str, otherwise: &str) -> String {
    option(meta, name).map_or_else(|| otherwise.to_owned(), |said| format!("--{name} {said}"))
}

impl Settings {
    pub fn of(a: &Trace, b: &Trace, ignore: Ignore) -> Settings {
        let (a, b) = (&a.meta, &b.meta);
        let differ = |name: &str| option(a, name) != option(b, name);
        let both = |name: &str, otherwise: &str| {
            format!("A was recorded with {}, B with {}", said(a, name, otherwise), said(b, name, otherwise))
        };
        let mut notes = Vec::new();
        let mut ignore = ignore;
        for (which, meta) in [("A", a), ("B", b)] {
            if !meta.complete {
                notes.push(format!("{which} is a partial trace: calls may be missing at its end"));
            }
        }
        if a.abi != b.abi || a.library != b.library {
            let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
            let [a, b] = [a, b].map(|meta| first(&meta.library));
            notes.push(format!("A ran on {a}, B on {b}"));
        }
        if differ("pointers") {
            notes.push(format!("{}: buffers are not compared", both("pointers", "addresses")));
            ignore.pointers = true;
        }
        if differ("stacks") || differ("recursion") && !ignore.sites {
            let how = both("stacks", "no call sites");
            if !ignore.sites {
                notes.push(format!("{how}: call sites are not compared"));
            }
            ignore.sites = true;
        }
        let mut functions = None;
        if differ("only") || differ("skip") {
            for name in ["only", "skip"].into_iter().filter(|name| differ(name)) {
                let how = both(name, "every call");
                notes.push(format!("{how}: only calls of functions that both were asked for are compared"));
            }
            functions = Some(kept(a).intersection(&kept(b)).copied().collect());
        }
        if differ("ranks") {
            notes.push(format!("{}: ranks that both have are compared", both("ranks", "all ranks")));
        }
        for name in ["window", "pcontrol", "lossy"].into_iter().filter(|name| differ(name)) {
            let how = both(name, &format!("no --{name}"));
            notes.push(format!("{how}: calls and numbers may differ for this alone"));
        }
        let inline = !a.split || !b.split;
        let of_values = ignore.pointers || ignore.polls || ignore.requests;
        let one_by_one = a.split != b.split || inline && of_values || functions.is_some();
        let excused = if differ("ranks") {
            [option(b, "ranks").is_some(), option(a, "ranks").is_some()]
        } else {
            [false; 2]
        };
        Settings { ignore, notes, functions, one_by_one, excused }
    }

    /// Whether threads that only this trace has were not asked for in the other.
    pub fn is_excused(&self, which: Which) -> bool {
        self.excused[usize::from(which == Which::B)]
    }

    pub fn ignored(&self) -> Vec<&'static str> {
        let Ignore { pointers, sites, polls, requests } = self.ignore;
        let words = [
            (true, "time"),
            (pointers, "pointers"),
            (sites, "sites"),
            (polls, "polls"),
            (requests, "requests"),
        ];
        words.into_iter().filter(|(on, _)| *on).map(|(_, word)| word).collect()
    }
}

/// The functions that were asked for.
fn kept(meta: &Meta) -> HashSet<u16> {
    let chosen = |text: &str| choice::chosen(text).unwrap_or_default().into_iter().map(|f| f.id);
    let mut kept: HashSet<u16> = match option(meta, "only") {
        Some(only) => chosen(only).collect(),
        None => functions().iter().map(|f| f.id).collect(),
    };
    if let Some(skip) = option(meta, "skip") {
        let skipped: HashSet<u16> = chosen(skip).collect();
        kept.retain(|id| !skipped.contains(id));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_once_and_for_all() {
        let all: Ignore = "time, pointers,sites,polls,requests".parse().unwrap();
        assert_eq!(all, Ignore { pointers: true, sites: true, polls: true, requests: true });
        assert_eq!("time".parse::<Ignore>(), Ok(Ignore::default()));
        assert_eq!(
            "times".parse::<Ignore>().unwrap_err(),
            "'times' is none of time, pointers, sites, polls, requests"
        );
        assert!("".parse::<Ignore>().is_err());
    }
}
