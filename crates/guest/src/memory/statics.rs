//! Static memory: the program and its libraries, numbered in the order in which traced calls first mention them, so that a
//! number does not depend on how many libraries some other machine loads.

use std::ops::Range;

use refrain_process::loaded::{Changes, if_changed};

#[derive(Debug, Default)]
pub struct Modules {
    /// Bases and where they lie.
    loaded: Vec<(usize, Range<usize>)>,
    /// When `loaded` was made.
    changes: Changes,
    /// Bases, by number. A module that is unloaded keeps its number.
    numbered: Vec<usize>,
}

impl Modules {
    /// The number of the module that holds `pointer`, and how far into it that is.
    pub fn find(&mut self, pointer: usize) -> Option<(u32, i64)> {
        let mut base = self.base_of(pointer);
        if base.is_none() && self.refresh() {
            base = self.base_of(pointer);
        }
        let base = base?;
        let number = self.numbered.iter().position(|&known| known == base).unwrap_or_else(|| {
            self.numbered.push(base);
            self.numbered.len() - 1
        });
        Some((u32::try_from(number).ok()?, pointer.wrapping_sub(base) as i64))
    }

    fn base_of(&self, pointer: usize) -> Option<usize> {
        self.loaded.iter().find(|(_, memory)| memory.contains(&pointer)).map(|(base, _)| *base)
    }

    /// True if anything changed since last time.
    fn refresh(&mut self) -> bool {
        let changed = if_changed(self.changes, |object| (object.base, object.memory()));
        let is_new = changed.is_some();
        if let Some((changes, loaded)) = changed {
            (self.changes, self.loaded) = (changes, loaded);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static HERE: [u8; 100] = [1; 100];

    #[test]
    fn modules_are_numbered_by_first_use() {
        let mut modules = Modules::default();
        let address = &raw const HERE as usize;
        assert_eq!(modules.find(16), None);
        let (number, offset) = modules.find(address).unwrap();
        assert_eq!(number, 0);
        assert_eq!(modules.find(address + 9), Some((0, offset + 9)));
        let (libc, _) = modules.find(libc::getpid as *const () as usize).unwrap();
        // A test binary refers to the C library's functions through its own table, or not.
        assert!(libc <= 1);
        assert_eq!(modules.find(&raw const modules as usize), None, "the stack is no module");
        assert_eq!(modules.find(address), Some((0, offset)));
    }
}
