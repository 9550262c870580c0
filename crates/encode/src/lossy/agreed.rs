//! What all ranks have to know before any of them can lose something: what each knows is brought together, and all then
//! go by the same.

use refrain_fold::bundle::Bundle;
use refrain_model::Lossy;

use super::averages::Averages;
use super::near::Near;
use super::tags::Tags;
use crate::error::Error;

/// What is known of one rank, or of several together. What was not asked for is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Agreed {
    pub tags: Tags,
    pub averages: Averages,
    pub sites: Near,
}

/// Lines between what travels, and the last one, so that nothing less is taken for all.
const AVERAGES: &str = "# averages\n";
const SITES: &str = "# sites\n";
const END: &str = "# end\n";

impl Agreed {
    /// A rank that cannot say anything: everything stays as it is.
    pub fn unknown() -> Agreed {
        Agreed { tags: Tags::unknown(), averages: Averages::unknown(), sites: Near::unknown() }
    }

    /// What one of `size` ranks knows, whose own bundle this is. If `missing`, calls of it are missing.
    pub fn of(bundle: &Bundle, rank: u32, size: u32, missing: bool, lossy: &Lossy) -> Result<Agreed, Error> {
        let tags = match (lossy.tags, missing) {
            (false, _) => Tags::default(),
            (true, true) => Tags::unknown(),
            (true, false) => Tags::of(bundle, rank)?,
        };
        let averages = if lossy.averages { Averages::of(bundle, rank, size)? } else { Averages::default() };
        let sites = if lossy.sites > 0 { Near::of(bundle) } else { Near::default() };
        Ok(Agreed { tags, averages, sites })
    }

    pub fn absorb(&mut self, other: Agreed) {
        self.tags.absorb(other.tags);
        self.averages.absorb(other.averages);
        self.sites.absorb(other.sites);
    }

    /// What was averaged, for people.
    pub fn notes(&self) -> Vec<String> {
        if self.averages.unknown { Vec::new() } else { self.averages.notes() }
    }

    /// What could not be agreed on, for people.
    pub fn failed(&self, lossy: &Lossy) -> Vec<&'static str> {
        let averages = (lossy.averages && self.averages.unknown)
            .then_some("the ranks could not agree on averages: counts are as they were");
        let sites = (lossy.sites > 0 && self.sites.unknown).then_some(
            "the ranks could not agree on call stacks: those that are nearly the same are not one",
        );
        averages.into_iter().chain(sites).collect()
    }

    /// How it travels from rank to rank.
    pub fn to_text(&self) -> String {
        let mut out = self.tags.to_text();
        out += AVERAGES;
        self.averages.write(&mut out);
        out += SITES;
        self.sites.write(&mut out);
        out + END
    }

    /// What cannot be read says nothing, so that everything stays.
    pub fn from_text(text: &str) -> Agreed {
        let parts = || {
            let text = text.strip_suffix(END)?;
            let (tags, rest) = text.split_once(AVERAGES)?;
            let (averages, sites) = rest.split_once(SITES)?;
            Some((tags, averages, sites))
        };
        let Some((tags, averages, sites)) = parts() else { return Agreed::unknown() };
        let mut read = Agreed { tags: Tags::from_text(tags), ..Agreed::default() };
        averages.lines().for_each(|line| read.averages.read(line));
        sites.lines().for_each(|line| read.sites.read(line));
        read
    }
}
