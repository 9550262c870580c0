//! What a user allows a trace to lose: the words of `--lossy`, all of them read here. Without them nothing is lost.
//!
//! ```
//! let lossy = refrain_model::Lossy::read(Some("sites=3,sites-in=libsolver.so+0x1000-0x2000")).unwrap();
//! assert_eq!((lossy.sites, lossy.sites_in[0].end), (3, 0x2000));
//! assert!(refrain_model::Lossy::read(Some("everything")).is_err());
//! ```

use crate::choice::BadChoice;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lossy {
    /// `sites=N`: call stacks of the same kind of call and of the same depth that differ in fewer than N frames are one.
    /// 0: only equal ones are.
    pub sites: u32,
    /// `sites-in=MODULE+0xA-0xB`: all places in this code are one.
    pub sites_in: Vec<Code>,
    /// `histograms[=N]`: of peers and counts that take more than N numbers to tell only how often each came, at most N
    /// different ones. 0: they are told in order.
    pub histograms: u32,
    /// `averages`: the counts of an `MPI_Alltoallv` are all their mean.
    pub averages: bool,
    /// `tags`: tags are dropped where they do not decide which message meets which receive.
    pub tags: bool,
    /// `waits`: calls of `MPI_Waitsome` or `MPI_Testsome` that follow one another for the same requests are one.
    pub waits: bool,
    said: Option<String>,
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
const KNOWN: &str = "histograms, histograms=N, averages, tags, waits, sites=N, sites-in=MODULE+0xSTART-0xEND";

/// What `histograms` means without a number.
const BINS: u32 = 64;

impl Lossy {
    /// A list of words with commas between them.
    pub fn read(text: Option<&str>) -> Result<Lossy, BadChoice> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Lossy::default()) };
        let mut lossy = Lossy { said: Some(text.to_owned()), ..Lossy::default() };
        for word in text.split(',') {
            let bad = |why: String| BadChoice { option: "lossy", why };
            match word.split_once('=') {
                None if word == "histograms" => lossy.histograms = BINS,
                None if word == "averages" => lossy.averages = true,
                None if word == "tags" => lossy.tags = true,
                None if word == "waits" => lossy.waits = true,
                Some(("histograms", number)) => {
                    let number = number.parse().ok().filter(|number| *number >= 1);
                    lossy.histograms =
                        number.ok_or_else(|| bad(format!("'{word}' needs a number from 1 on")))?;
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
                _ => return Err(bad(format!("'{word}' is none of: {KNOWN}"))),
            }
        }
        Ok(lossy)
    }

    /// Words that look at numbers beside their calls.
    pub fn needs_split(&self) -> bool {
        self.histograms > 0 || self.tags
    }

    /// Refuses words that mean nothing where numbers are part of their calls.
    pub fn with_split(&self, split: bool) -> Result<(), BadChoice> {
        if split || !self.needs_split() && !self.waits {
            return Ok(());
        }
        let words = [(self.histograms > 0, "histograms"), (self.tags, "tags"), (self.waits, "waits")];
        let word = words.iter().find(|(given, _)| *given).map_or("", |(_, word)| word);
        let why = format!("'{word}' needs numbers apart from calls (split on)");
        Err(BadChoice { option: "lossy", why })
    }

    /// Refuses words about call sites where none are kept.
    pub fn with_stacks(&self, stacks: bool) -> Result<(), BadChoice> {
        let words = [(self.sites > 0, "sites"), (!self.sites_in.is_empty(), "sites-in")];
        match words.iter().find(|(given, _)| *given && !stacks) {
            None => Ok(()),
            Some((_, word)) => {
                let why = format!("'{word}' needs call stacks (stacks site, stacks full or fold loops)");
                Err(BadChoice { option: "lossy", why })
            }
        }
    }

    /// As it was written, for the trace to say.
    pub fn said(&self) -> Option<&str> {
        self.said.as_deref()
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
        assert_eq!((lossy.histograms, lossy.averages, lossy.tags, lossy.waits), (64, true, true, true));
        let lossy = Lossy::read(Some("histograms=8")).unwrap();
        assert_eq!((lossy.histograms, lossy.averages, lossy.tags, lossy.waits), (8, false, false, false));
        assert!(lossy.needs_split() && !Lossy::read(Some("averages,waits")).unwrap().needs_split());
        assert!(lossy.with_split(true).is_ok() && lossy.with_split(false).is_err());
        assert!(
            Lossy::read(Some("waits")).unwrap().with_split(false).unwrap_err().why.starts_with("'waits'")
        );
        assert!(Lossy::read(Some("averages,sites=2")).unwrap().with_split(false).is_ok());
        let refused_without = |words| Lossy::read(Some(words)).unwrap().with_stacks(false).unwrap_err().why;
        assert!(refused_without("tags,sites=2").starts_with("'sites' needs call stacks"));
        assert!(refused_without("sites-in=a+0x1-0x2").starts_with("'sites-in' needs call stacks"));
        assert!(lossy.with_stacks(false).is_ok());
        assert!(Lossy::read(Some("sites=2")).unwrap().with_stacks(true).is_ok());
        assert_eq!(refused("histograms=0"), "'histograms=0' needs a number from 1 on");
        assert!(refused("tags=1").contains("none of") && refused("tags,").contains("''"));
        for code in ["a", "a+0x10", "a+10-20", "+0x1-0x2", "a+0x20-0x20"] {
            assert!(refused(&format!("sites-in={code}")).contains("MODULE"), "{code}");
        }
    }
}
