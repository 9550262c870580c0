//! What could not be worked out, in words.

use std::collections::BTreeMap;
use std::fmt;

use refrain_encode::Layout;

use crate::law::Rival;
use crate::read::Seen;

/// A number, or an order, that no law was found for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Empty where it is no matter of one function.
    pub function: String,
    pub parameter: String,
    /// Where the call is, as in `Sites`; 0 where no trace says, or it is no matter of one call.
    pub site: u64,
    /// By number of ranks, what was seen there.
    pub seen: Vec<(u32, String)>,
    pub why: String,
    /// A trace of so many ranks would say which of two laws it is.
    pub settled_by: Option<u32>,
    /// In how many places of the program, on how many kinds of ranks.
    pub places: u64,
}

/// What a number belongs to.
pub struct What<'a> {
    pub layout: &'a Layout,
    pub lane: u16,
    pub site: u64,
}

/// Why something is a problem, and how many ranks would settle it.
pub struct Why {
    pub why: String,
    pub settled_by: Option<u32>,
}

impl From<&str> for Why {
    fn from(why: &str) -> Why {
        Why { why: why.to_owned(), settled_by: None }
    }
}

impl From<Rival> for Why {
    fn from(rival: Rival) -> Why {
        Why { why: rival.to_string(), settled_by: rival.settled_by }
    }
}

impl Problem {
    /// That is no matter of one call.
    pub fn of_all(parameter: &str, why: String) -> Problem {
        let (function, parameter) = (String::new(), parameter.to_owned());
        Problem { function, parameter, site: 0, seen: Vec::new(), why, settled_by: None, places: 1 }
    }
}

/// So many numbers are shown of each world.
const SHOWN: usize = 6;

pub fn told<'a>(what: What<'_>, seen: impl Iterator<Item = (u32, &'a Seen)>, why: Why) -> Problem {
    let What { layout, lane, site } = what;
    let params = layout.function.params.iter().enumerate();
    let mut named =
        params.filter(|(at, _)| layout.lanes_of(*at).contains(&lane)).map(|(_, param)| param.name);
    let parameter = match (named.next(), layout.polls == Some(lane)) {
        (Some(name), _) => name.to_owned(),
        (None, true) => "how often it polled before".to_owned(),
        (None, false) => "what it returned".to_owned(),
    };
    let mut by_world: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for (ranks, seen) in seen {
        let values = by_world.entry(ranks).or_default();
        let left = (SHOWN + 1).saturating_sub(values.len());
        values.extend(seen.values.iter().take(left));
    }
    let shown = |values: Vec<i64>| {
        let mut words: Vec<String> = values.iter().take(SHOWN).map(i64::to_string).collect();
        if values.len() > SHOWN {
            words.push("...".into());
        }
        words.join(" ")
    };
    Problem {
        function: layout.function.name.to_owned(),
        parameter,
        site,
        seen: by_world.into_iter().map(|(ranks, values)| (ranks, shown(values))).collect(),
        why: why.why,
        settled_by: why.settled_by,
        places: 1,
    }
}

/// Those of one parameter as one.
pub fn joined(problems: Vec<Problem>) -> Vec<Problem> {
    let mut all: Vec<Problem> = Vec::new();
    for problem in problems {
        // The numbers of each place are others.
        let kind = |why: &str| why.split(':').next().map(str::to_owned);
        let same = |known: &&mut Problem| {
            (&known.function, &known.parameter, known.site, kind(&known.why))
                == (&problem.function, &problem.parameter, problem.site, kind(&problem.why))
        };
        match all.iter_mut().find(same) {
            Some(known) => {
                known.places += problem.places;
                known.settled_by = known.settled_by.or(problem.settled_by);
            }
            None => all.push(problem),
        }
    }
    all
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = [self.function.as_str(), self.parameter.as_str()];
        let what: Vec<&str> = what.into_iter().filter(|word| !word.is_empty()).collect();
        write!(f, "{}: {}", what.join(" "), self.why)?;
        let seen: Vec<String> =
            self.seen.iter().map(|(ranks, seen)| format!("{seen} with {ranks} ranks")).collect();
        if seen.is_empty() { Ok(()) } else { write!(f, " (seen: {})", seen.join(", ")) }
    }
}
