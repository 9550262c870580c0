//! How exactly time is kept: the words of `--time`, all of them read here.
//!
//! ```
//! use refrain_model::time::{Base, Time};
//! let Time::Binned(bases) = Time::read("binned=1.1,MPI_Wait=2").unwrap() else { panic!() };
//! let wait = refrain_model::function("MPI_Wait").unwrap();
//! assert_eq!((bases.of(wait.id).value(), bases.of(0).value()), (2.0, 1.1));
//! assert_eq!(Time::read("exact").unwrap().to_string(), "exact");
//! assert!(Time::read("roughly").is_err());
//! ```

use std::fmt;

use crate::choice::{BadChoice, nearest};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Time {
    /// No clock is read.
    Off,
    /// Of every kind of call: total, shortest, longest.
    #[default]
    Mean,
    /// Of every kind of call after another how its durations and the gaps before them are distributed.
    Histogram,
    /// Of every call its start and end, each to a stated part of the time before it.
    Binned(Bases),
    /// Of every call its start and end, to the nanosecond.
    Exact,
}

/// How coarse the bins of times are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bases {
    pub all: Base,
    /// Functions with one of their own, by number, in ascending order.
    pub own: Vec<(u16, Base)>,
}

/// A bin ends where the one before it ends, times this: more than 1. In millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base(u32);

/// For messages.
const KNOWN: &str =
    "mean, mean=signature, histogram, binned, binned=BASE, binned=BASE,MPI_NAME=BASE,..., exact, off";
const WORDS: [&str; 5] = ["mean", "histogram", "binned", "exact", "off"];

impl Base {
    pub const DEFAULT: Base = Base(1_200_000);
    const ONE: u32 = 1_000_000;

    pub fn value(self) -> f64 {
        f64::from(self.0) / f64::from(Base::ONE)
    }

    /// Finer than a thousandth is what `exact` is for.
    fn read(text: &str) -> Option<Base> {
        let number: f64 = text.parse().ok().filter(|number| (1.001..=16.0).contains(number))?;
        Some(Base((number * f64::from(Base::ONE)).round() as u32))
    }
}

impl Default for Bases {
    fn default() -> Bases {
        Bases { all: Base::DEFAULT, own: Vec::new() }
    }
}

impl Bases {
    /// That of a function, by its number.
    pub fn of(&self, function: u16) -> Base {
        let own = self.own.binary_search_by_key(&function, |(function, _)| *function);
        own.map_or(self.all, |at| self.own[at].1)
    }
}

impl Time {
    /// `mean=signature`: calls with different arguments are different calls, so each has times of its own.
    pub fn of_signatures(text: &str) -> bool {
        text == "mean=signature"
    }

    /// Whether arguments are kept apart from calls, given what is said of it. Times of signatures need that they are not.
    pub fn split(text: &str, said: Option<bool>) -> Result<bool, BadChoice> {
        if !Time::of_signatures(text) {
            return Ok(said.unwrap_or(true));
        }
        if said == Some(true) {
            let why =
                "mean=signature is for calls whose arguments are part of them, which split on rules out";
            return Err(BadChoice { option: "time", why: why.into() });
        }
        Ok(false)
    }

    /// One word, and for `binned` what follows it. An empty text is what one gets without asking.
    pub fn read(text: &str) -> Result<Time, BadChoice> {
        let bad = |why: String| BadChoice { option: "time", why };
        let (first, rest) = text.split_once(',').map_or((text, None), |(first, rest)| (first, Some(rest)));
        let (word, number) =
            first.split_once('=').map_or((first, None), |(word, number)| (word, Some(number)));
        if Time::of_signatures(text) {
            return Ok(Time::Mean);
        }
        let time = match word {
            "" | "mean" => Time::Mean,
            "off" => Time::Off,
            "exact" => Time::Exact,
            "histogram" => Time::Histogram,
            "binned" => {
                let base = |text: &str| {
                    let why = || format!("'{text}' is no base: a number from 1.001 to 16, as in binned=1.2");
                    Base::read(text).ok_or_else(|| bad(why()))
                };
                let mut bases = Bases { all: number.map_or(Ok(Base::DEFAULT), base)?, ..Bases::default() };
                for word in rest.iter().flat_map(|rest| rest.split(',')) {
                    let why = || bad(format!("'{word}' needs a base, as in MPI_Wait=2"));
                    let (name, number) = word.split_once('=').ok_or_else(why)?;
                    let function = crate::function(name)
                        .ok_or_else(|| bad(format!("'{name}' is no function of MPI")))?;
                    bases.own.push((function.id, base(number)?));
                }
                bases.own.sort_by_key(|(function, _)| *function);
                if bases.own.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                    return Err(bad("a function stands there twice".into()));
                }
                return Ok(Time::Binned(bases));
            }
            _ => {
                let near = nearest(word, WORDS.into_iter()).filter(|near| *near != word);
                let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
                return Err(bad(format!("'{text}' is none of: {KNOWN}{near}")));
            }
        };
        if number.is_some() || rest.is_some() {
            return Err(bad(format!("'{word}' stands alone")));
        }
        Ok(time)
    }

    /// Refuses times that need what survives a crash, where nothing does.
    pub fn with_safe(&self, safe: bool) -> Result<(), BadChoice> {
        if safe || !self.of_every_call() {
            return Ok(());
        }
        let why = "times of every call go to files while the program runs, which needs safe on";
        Err(BadChoice { option: "time", why: why.into() })
    }

    /// Of every call it is told when it began and ended.
    pub fn of_every_call(&self) -> bool {
        matches!(self, Time::Binned(_) | Time::Exact)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Time::Off => f.write_str("off"),
            Time::Mean => f.write_str("mean"),
            Time::Histogram => f.write_str("histogram"),
            Time::Exact => f.write_str("exact"),
            Time::Binned(bases) => {
                write!(f, "binned={}", bases.all.value())?;
                bases.own.iter().try_for_each(|(function, base)| {
                    let name = crate::function_by_id(*function).map_or("?", |function| function.name);
                    write!(f, ",{name}={}", base.value())
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_back() {
        for text in ["off", "mean", "histogram", "exact", "binned=1.2", "binned=1.05,MPI_Send=1.5,MPI_Wait=2"]
        {
            let time = Time::read(text).unwrap();
            assert_eq!(Time::read(&time.to_string()).unwrap(), time, "{text}");
        }
        assert_eq!(Time::read("binned").unwrap(), Time::Binned(Bases::default()));
        assert_eq!(Time::read("").unwrap(), Time::Mean);
    }

    #[test]
    fn what_is_no_word_is_told() {
        let why = |text: &str| Time::read(text).unwrap_err().why;
        assert!(why("exakt").contains("did you mean exact?"), "{}", why("exakt"));
        assert!(why("binned=1").contains("from 1.001"));
        assert!(why("binned=1.2,MPI_Weit=2").contains("'MPI_Weit' is no function"));
        assert!(why("binned=1.2,MPI_Wait").contains("needs a base"));
        assert!(why("binned=2,MPI_Wait=2,MPI_Wait=3").contains("twice"));
        assert!(why("exact=1").contains("stands alone"));
    }
}
