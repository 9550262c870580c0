//! What a user allows a trace to lose: the words of `--lossy`, all of them read here. Without them nothing is lost.
//!
//! ```
//! let lossy = refrain_model::Lossy::read(Some("sites=3,sites-in=libsolver.so+0x1000-0x2000")).unwrap();
//! assert_eq!((lossy.sites, lossy.sites_in[0].end), (3, 0x2000));
//! assert!(refrain_model::Lossy::read(Some("everything")).is_err());
//! ```

use crate::choice::{BadChoice, nearest};
use crate::time::Time;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lossy {
    /// `sites=N`: call stacks of the same kind of call and of the same depth that differ in fewer than N frames are one,
    /// the same one on all ranks. 0: only equal ones are.
    pub sites: u32,
    /// `sites-in=MODULE+0xA-0xB`: all places in this code are one.
    pub sites_in: Vec<Code>,
    /// `histograms[=TRIGGER[:BINS]]`: of peers and counts only how often each came. `None`: they are told in order.
    pub histograms: Option<Histograms>,
    /// `averages`: the counts of `MPI_Alltoallv` are their mean over all ranks.
    pub averages: bool,
    /// `tags`: tags are dropped where they do not decide which message meets which receive.
    pub tags: bool,
    /// `waits`: calls of `MPI_Waitsome` or `MPI_Testsome` that follow one another for the same requests are one.
    pub waits: bool,
    said: Option<String>,
}

/// When numbers become a histogram, and how fine it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Histograms {
    /// Those that take more numbers than this to tell.
    pub trigger: u32,
    /// At most so many different numbers are left.
    pub bins: u32,
}

/// Offsets in a module, from `start` up to but not with `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The name of its file, without directories.
    pub module: String,
    pub start: u64,
    pub end: u64,
}

/// For messages.
const KNOWN: &str =
    "histograms, histograms=TRIGGER:BINS, averages, tags, waits, sites=N, sites-in=MODULE+0xSTART-0xEND";

const WORDS: [&str; 6] = ["histograms", "averages", "tags", "waits", "sites", "sites-in"];

/// What `histograms` means without numbers.
const HISTOGRAMS: Histograms = Histograms { trigger: 64, bins: 64 };

impl Lossy {
    /// A list of words with commas between them.
    pub fn read(text: Option<&str>) -> Result<Lossy, BadChoice> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Lossy::default()) };
        let mut lossy = Lossy { said: Some(text.to_owned()), ..Lossy::default() };
        for word in text.split(',') {
            let bad = |why: String| BadChoice { option: "lossy", why };
            match word.split_once('=') {
                None if word == "histograms" => lossy.histograms = Some(HISTOGRAMS),
                None if word == "averages" => lossy.averages = true,
                None if word == "tags" => lossy.tags = true,
                None if word == "waits" => lossy.waits = true,
                Some(("histograms", numbers)) => {
                    let why =
                        || format!("'{word}' needs one or two numbers from 1 on: TRIGGER:BINS, as in 1:16");
                    lossy.histograms = Some(Histograms::read(numbers).ok_or_else(|| bad(why()))?);
                }
                Some(("sites", number)) => {
                    // Stacks that differ in fewer than one frame are equal, which loses nothing.
                    let number = number.parse().ok().filter(|number| *number >= 2);
                    lossy.sites = number.ok_or_else(|| bad(format!("'{word}' needs a number from 2 on")))?;
                }
                Some(("sites-in", code)) => {
                    let why =
                        || format!("'{word}' is no code: MODULE+0xSTART-0xEND, as in app+0x1200-0x1380");
                    lossy.sites_in.push(Code::read(code).ok_or_else(|| bad(why()))?);
                }
                None if word == "sites" => {
                    return Err(bad("'sites' needs a number from 2 on, as in sites=3".into()));
                }
                None if word == "sites-in" => {
                    return Err(bad("'sites-in' needs code, as in sites-in=app+0x1200-0x1380".into()));
                }
                _ => {
                    let name = word.split('=').next().unwrap_or(word);
                    let near = nearest(name, WORDS.into_iter()).filter(|near| *near != name);
                    let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
                    return Err(bad(format!("'{word}' is none of: {KNOWN}{near}")));
                }
            }
        }
        Ok(lossy)
    }

    /// Words that look at numbers beside their calls.
    fn needs_split(&self) -> bool {
        self.histograms.is_some() || self.tags
    }

    /// Words that the ranks follow together, when all calls are known.
    pub fn needs_agreement(&self) -> bool {
        self.averages || self.tags || self.sites > 0
    }

    /// Words that change a finished recording.
    pub fn at_the_end(&self) -> bool {
        self.needs_agreement() || self.histograms.is_some()
    }

    /// Refuses words that mean nothing where numbers are part of their calls.
    pub fn with_split(&self, split: bool) -> Result<(), BadChoice> {
        if split || !self.needs_split() && !self.waits {
            return Ok(());
        }
        let words = [(self.histograms.is_some(), "histograms"), (self.tags, "tags"), (self.waits, "waits")];
        let word = words.iter().find(|(given, _)| *given).map_or("", |(_, word)| word);
        let why = format!("'{word}' needs numbers apart from calls (split on)");
        Err(BadChoice { option: "lossy", why })
    }

    /// Refuses words about call sites where none are kept, and those about whole stacks where only `sites` are.
    pub fn with_stacks(&self, sites: bool, stacks: bool) -> Result<(), BadChoice> {
        let bad = |why: &str| Err(BadChoice { option: "lossy", why: why.into() });
        if !self.sites_in.is_empty() && !sites && !stacks {
            return bad("'sites-in' needs call stacks (stacks site, stacks full or fold loops)");
        }
        if self.sites > 0 && !stacks {
            // Two stacks of one frame each never differ in more.
            return bad("'sites' needs whole call stacks (stacks full or fold loops)");
        }
        Ok(())
    }

    /// Refuses words that make other calls of those that were made: the times of every call would not fit them.
    pub fn with_time(&self, time: &Time) -> Result<(), BadChoice> {
        if !time.of_every_call() || !self.at_the_end() && !self.waits {
            return Ok(());
        }
        let why = format!("no calls can be lost or changed where the times of all are kept (time {time})");
        Err(BadChoice { option: "lossy", why })
    }

    /// As it was written, for the trace to say.
    pub fn said(&self) -> Option<&str> {
        self.said.as_deref()
    }
}

impl Histograms {
    /// One number is both.
    fn read(text: &str) -> Option<Histograms> {
        let number = |text: &str| text.parse().ok().filter(|number| *number >= 1);
        let (trigger, bins) = text.split_once(':').unwrap_or((text, text));
        Some(Histograms { trigger: number(trigger)?, bins: number(bins)? })
    }
}

impl Code {
    fn read(text: &str) -> Option<Code> {
        let (module, range) = text.rsplit_once('+')?;
        let (start, end) = range.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let code = Code { module: module.into(), start: number(start)?, end: number(end)? };
        (!module.is_empty() && code.start < code.end).then_some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Lossy::read(Some(text)).unwrap_err().why
    }

    #[test]
    fn words() {
        assert_eq!(Lossy::read(None), Ok(Lossy::default()));
        assert_eq!(Lossy::read(Some("")), Ok(Lossy::default()));
        let lossy = Lossy::read(Some("sites-in=a+b.so+0x10-0x2f,sites=2")).unwrap();
        assert_eq!(lossy.sites_in, [Code { module: "a+b.so".into(), start: 16, end: 47 }]);
        assert_eq!((lossy.sites, lossy.said()), (2, Some("sites-in=a+b.so+0x10-0x2f,sites=2")));
        assert_eq!(refused("all"), format!("'all' is none of: {KNOWN}"));
        assert_eq!(refused("sites=1"), "'sites=1' needs a number from 2 on");
        assert!(refused("sites=2,sites=x").contains("'sites=x'"));
        let lossy = Lossy::read(Some("tags,histograms,waits,averages")).unwrap();
        assert_eq!(lossy.histograms, Some(HISTOGRAMS));
        assert!(lossy.averages && lossy.tags && lossy.waits);
        let lossy = Lossy::read(Some("histograms=8")).unwrap();
        assert_eq!(lossy.histograms, Some(Histograms { trigger: 8, bins: 8 }));
        assert!(!lossy.averages && !lossy.tags && !lossy.waits);
        let lossy = Lossy::read(Some("histograms=1:16")).unwrap();
        assert_eq!(lossy.histograms, Some(Histograms { trigger: 1, bins: 16 }));
        for wrong in ["0", "1:0", "0:8", "1:", ":1", "1:2:3", "x", ""] {
            let why =
                format!("'histograms={wrong}' needs one or two numbers from 1 on: TRIGGER:BINS, as in 1:16");
            assert_eq!(refused(&format!("histograms={wrong}")), why);
        }
        assert!(!lossy.needs_agreement() && lossy.at_the_end());
        assert!(lossy.needs_split() && !Lossy::read(Some("averages,waits")).unwrap().needs_split());
        assert!(lossy.with_split(true).is_ok() && lossy.with_split(false).is_err());
        assert!(
            Lossy::read(Some("waits")).unwrap().with_split(false).unwrap_err().why.starts_with("'waits'")
        );
        assert!(Lossy::read(Some("averages,sites=2")).unwrap().with_split(false).is_ok());
        let with = |words, sites, stacks| Lossy::read(Some(words)).unwrap().with_stacks(sites, stacks);
        let refused_with = |words, sites| with(words, sites, false).unwrap_err().why;
        assert!(refused_with("tags,sites=2", false).starts_with("'sites' needs whole call stacks"));
        assert!(refused_with("tags,sites=2", true).starts_with("'sites' needs whole call stacks"));
        assert!(refused_with("sites-in=a+0x1-0x2", false).starts_with("'sites-in' needs call stacks"));
        assert!(with("sites-in=a+0x1-0x2", true, false).is_ok() && with("sites=2", false, true).is_ok());
        assert!(lossy.with_stacks(false, false).is_ok());
        assert_eq!(refused("sites"), "'sites' needs a number from 2 on, as in sites=3");
        assert!(refused("sites-in").contains("sites-in=app+"));
        assert!(refused("average").ends_with("did you mean averages?"));
        assert!(refused("tag=1").ends_with("did you mean tags?"));
        assert!(refused("tags=1").contains("none of") && refused("tags,").contains("''"));
        for code in ["a", "a+0x10", "a+10-20", "+0x1-0x2", "a+0x20-0x20"] {
            assert!(refused(&format!("sites-in={code}")).contains("MODULE"), "{code}");
        }
    }
}
