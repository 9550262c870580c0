//! The order of calls, by the folder that was asked for.

use std::fmt;
use std::str::FromStr;

use refrain_fold::bundle::sites::Frame;
use refrain_fold::loops::{Matching, WINDOW};
use refrain_fold::stream::Stream;
use refrain_fold::{bundle, grammar, loops};

/// How the order of calls is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Folding {
    /// Into rules: repetition, whatever it comes from.
    #[default]
    Grammar,
    /// Into loops within loops, as the program has them.
    Loops {
        matching: Matching,
        /// Loops of ranks that are alike, but not equal, are one with other times.
        together: bool,
    },
}

impl FromStr for Folding {
    type Err = String;

    fn from_str(text: &str) -> Result<Folding, String> {
        let mut words = text.split(',').map(str::trim);
        let (mut matching, mut together) = (Matching::Elastic, true);
        match words.next() {
            Some("grammar") if !text.contains(',') => return Ok(Folding::Grammar),
            Some("loops") => {}
            _ => {
                return Err(format!("'{text}' is neither grammar nor loops (or loops,exact or loops,apart)"));
            }
        }
        for word in words {
            match word {
                "exact" => matching = Matching::Exact { window: WINDOW },
                "apart" => together = false,
                _ => return Err(format!("'{word}' is nothing that loops can be: exact, apart")),
            }
        }
        Ok(Folding::Loops { matching, together })
    }
}

impl fmt::Display for Folding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Folding::Loops { matching, together } = self else { return write!(f, "grammar") };
        let exact = if *matching == Matching::Elastic { "" } else { ",exact" };
        write!(f, "loops{exact}{}", if *together { "" } else { ",apart" })
    }
}

#[expect(clippy::large_enum_variant, reason = "one a thread, and the grammar is on the path of every call")]
pub(crate) enum Structure {
    Grammar(grammar::Folder),
    Loops(Box<loops::Folder>),
}

impl Default for Structure {
    fn default() -> Structure {
        Structure::new(Folding::default())
    }
}

impl Structure {
    pub(crate) fn new(folding: Folding) -> Structure {
        match folding {
            Folding::Grammar => Structure::Grammar(grammar::Folder::new()),
            Folding::Loops { matching, .. } => Structure::Loops(Box::new(loops::Folder::new(matching))),
        }
    }

    /// Where a symbol is called from, the outermost frame first, before it is first pushed.
    pub(crate) fn define(&mut self, symbol: u32, path: impl FnOnce() -> Vec<Frame>) {
        if let Structure::Loops(folder) = self {
            folder.define(symbol, path());
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, symbol: u32) {
        match self {
            Structure::Grammar(folder) => folder.push(symbol),
            Structure::Loops(folder) => folder.push(symbol),
        }
    }

    #[inline]
    pub(crate) fn predicted(&self) -> Option<u32> {
        match self {
            Structure::Grammar(folder) => folder.predicted(),
            Structure::Loops(folder) => folder.predicted(),
        }
    }

    /// The structure so far, and the times of its loops.
    pub(crate) fn finish(&mut self) -> (bundle::Structure, Vec<(Stream, u64)>) {
        match self {
            Structure::Grammar(folder) => (folder.finish().into(), Vec::new()),
            Structure::Loops(folder) => {
                let folded = folder.finish();
                (folded.loops.into(), folded.times.into_iter().zip(folded.lengths).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_what_is_read() {
        for text in ["grammar", "loops", "loops,exact", "loops,apart", "loops,exact,apart"] {
            assert_eq!(text.parse::<Folding>().unwrap().to_string(), text);
        }
        for text in ["", "loop", "grammar,exact", "loops,", "loops,exact,exactly"] {
            assert!(text.parse::<Folding>().is_err(), "{text}");
        }
    }
}
