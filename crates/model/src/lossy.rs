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
const KNOWN: &str = "sites=N, sites-in=MODULE+0xSTART-0xEND";

impl Lossy {
    /// A list of words with commas between them.
    pub fn read(text: Option<&str>) -> Result<Lossy, BadChoice> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Lossy::default()) };
        let mut lossy = Lossy { said: Some(text.to_owned()), ..Lossy::default() };
        for word in text.split(',') {
            let bad = |why: String| BadChoice { option: "lossy", why };
            match word.split_once('=') {
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
        for code in ["a", "a+0x10", "a+10-20", "+0x1-0x2", "a+0x20-0x20"] {
            assert!(refused(&format!("sites-in={code}")).contains("MODULE"), "{code}");
        }
    }
}
