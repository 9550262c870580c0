//! What the labels of dinero stand for, and how many of those with two meanings were seen.

use super::counted;
use crate::kind::{COPY_BACK, ESCAPE, INVALIDATE, NAMES, OTHER, SUPERVISOR_READ, SUPERVISOR_WRITE};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Labels {
    /// 4 to 6 are the supervisor's, as the papers about PDATS have them.
    Papers,
    /// DineroIV's: 3 is miscellaneous, 4 copies a line back, 5 invalidates one.
    Dinero,
}

pub(super) struct Seen {
    labels: Labels,
    /// Caches do what DineroIV's labels say.
    done: bool,
    misc: u64,
    copies: u64,
    invalidations: u64,
    /// Lines with text behind what counts.
    texts: u64,
}

impl Seen {
    pub(super) fn new(labels: Labels) -> Seen {
        Seen { labels, done: false, misc: 0, copies: 0, invalidations: 0, texts: 0 }
    }

    #[inline]
    pub(super) fn kind_of(&self, label: u8) -> u8 {
        match (self.labels, label) {
            (_, SUPERVISOR_READ) if self.is_done() => COPY_BACK,
            (_, SUPERVISOR_WRITE) if self.is_done() => INVALIDATE,
            (Labels::Dinero, label) if label > ESCAPE => OTHER,
            (_, label) => label,
        }
    }

    /// Copy-backs and invalidations are kinds of their own from here on.
    pub(super) fn tell_caches(&mut self) {
        self.done = true;
    }

    #[inline]
    pub(super) fn count(&mut self, label: u8, text: bool) {
        self.texts += u64::from(text);
        match label {
            ESCAPE => self.misc += 1,
            SUPERVISOR_READ if !self.is_done() => self.copies += 1,
            SUPERVISOR_WRITE if !self.is_done() => self.invalidations += 1,
            _ => {}
        }
    }

    fn is_done(&self) -> bool {
        self.done && self.labels == Labels::Dinero
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match self.labels {
            Labels::Papers => counted(
                &mut notes,
                self.copies + self.invalidations,
                "reference has label 4 or 5, which is read as the supervisor's read or write; `--from dinero` takes it as DineroIV \
                 does, as copy-back or invalidation",
                "references have labels 4 or 5, which are read as the supervisor's reads and writes; `--from dinero` takes them as \
                 DineroIV does, as copy-backs and invalidations",
            ),
            Labels::Dinero => {
                let passed = "which `simulate` passes over";
                counted(
                    &mut notes,
                    self.misc,
                    &format!("miscellaneous reference is kept as kind 3, {passed}"),
                    &format!("miscellaneous references are kept as kind 3, {passed}"),
                );
                for (count, one, many) in [
                    (self.copies, "copy-back", "copy-backs"),
                    (self.invalidations, "invalidation", "invalidations"),
                ] {
                    counted(
                        &mut notes,
                        count,
                        &format!("{one} is kept as kind 7 (other), {passed}"),
                        &format!("{many} are kept as kind 7 (other), {passed}"),
                    );
                }
            }
        }
        counted(
            &mut notes,
            self.texts,
            "line has text behind what the format has; it was left out",
            "lines have text behind what the format has; it was left out",
        );
        notes
    }
}

/// Why DineroIV's forms cannot have this kind.
pub(super) fn unfit(kind: u8) -> String {
    let name = NAMES.get(usize::from(kind)).unwrap_or(&"unknown");
    format!("DineroIV knows reads, writes, fetches and miscellaneous references, not kind {kind} ({name})")
}
