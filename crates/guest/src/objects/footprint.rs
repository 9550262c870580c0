//! How much of the machine's memory our library takes.
//!
//! A call that is known touches a few pages of our code. What reads the configuration, looks at the MPI library and makes
//! the first records is ten times as much, and the system maps the pages around each that is touched. Those pages are the
//! file's: a process that lets go of them loses nothing and finds them again when it needs them.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::elf::Module;
use crate::process::pages;

/// What the kernel says about a page, in `/proc/self/pagemap`: it is of a file, or of shared memory.
const OF_FILE: u64 = 1 << 61;
/// It is here.
const PRESENT: u64 = 1 << 63;

/// Lets go of the code and the constants of this library, as far as they are those of its file: a page that a debugger or
/// another tool has changed is this process's own. Does nothing where the system does not say so.
pub fn let_go_of_code() {
    let Ok(map) = File::open("/proc/self/pagemap") else { return };
    let page = pages::size();
    for part in Module::constant(let_go_of_code as *const () as usize) {
        let _ = let_go(&map, part.start.div_ceil(page)..part.end / page, page);
    }
}

fn let_go(map: &File, numbers: Range<usize>, page: usize) -> std::io::Result<()> {
    const WORD: usize = size_of::<u64>();
    let mut words = vec![0; numbers.len() * WORD];
    map.read_exact_at(&mut words, (numbers.start * WORD) as u64)?;
    let of_file = |word: &[u8]| {
        let word = u64::from_ne_bytes(word.try_into().unwrap_or_default());
        word & PRESENT != 0 && word & OF_FILE != 0
    };
    let pages: Vec<bool> = words.chunks_exact(WORD).map(of_file).collect();
    let mut number = numbers.start;
    for run in pages.chunk_by(|a, b| a == b) {
        if run[0] {
            let start = (number * page) as *mut libc::c_void;
            // SAFETY: pages of a file that nobody has changed, mapped read-only: their contents come back when read.
            unsafe { pages::let_go(start, run.len() * page) };
        }
        number += run.len();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_goes_on_without_its_pages() {
        static WORDS: [u64; 4] = [3, 1, 4, 1];
        let_go_of_code();
        assert_eq!(std::hint::black_box(WORDS.iter()).sum::<u64>(), 9);
        let_go_of_code();
    }
}
