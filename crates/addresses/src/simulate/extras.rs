//! What a cache has beside its lines, where it is asked for. A plain cache has none of it, and loses no time for it.

use super::Class;
use super::classes::Classifier;

#[derive(Default)]
pub(super) struct Extras {
    pub(super) classifier: Option<Classifier>,
}

impl Extras {
    /// A line was asked for, and was there or not; if not, it is brought in or not.
    pub(super) fn used(&mut self, line: u64, hit: bool, brought: bool) {
        if let Some(classifier) = &mut self.classifier {
            classifier.used(line, !hit, brought);
        }
    }

    /// Of the miss at hand.
    pub(super) fn class(&mut self) -> Option<Class> {
        self.classifier.as_mut()?.heaviest.take()
    }
}
