//! CPython's structures as they lie in memory, read without its lock. How they are laid out is not public: it is known for
//! some versions, and nothing of it is used before it has given the same as the public functions once.

use std::ffi::c_void;

use crate::process::filter;
use crate::process::hash::add;
use crate::process::next::first;

/// Longer ones are not CPython's.
const LONGEST_TEXT: usize = 1 << 16;
const LONGEST_TABLE: usize = 1 << 24;

/// In a code object of every version that is known: its file, its qualified name, its table of lines.
const FILE: usize = 112;
const FUNCTION: usize = 128;
const TABLE: usize = 136;
/// In any object: its type; where it has one, its length.
const TYPE: usize = 8;
const LENGTH: usize = 16;
/// In a text: how it is kept.
const STATE: usize = 32;
/// In a string of bytes: the first of them.
const BYTES: usize = 32;
/// The owner of a frame that belongs to a generator.
const GENERATOR: u8 = 1;
/// Of an instruction.
const UNIT: usize = 2;

/// How memory is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// It is there, and stays.
    Stable,
    /// It may go away meanwhile: the kernel copies it, or says that it cannot.
    Unsure,
}

impl Memory {
    fn copy(self, from: usize, to: &mut [u8]) -> Option<()> {
        match self {
            Memory::Stable => {
                // SAFETY: who calls memory stable says so: it is the state of a thread that is in this call, or what that
                // holds, laid out as was found right before.
                unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.as_mut_ptr(), to.len()) };
                Some(())
            }
            Memory::Unsure => {
                let here = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
                let there = libc::iovec { iov_base: from as *mut c_void, iov_len: to.len() };
                if filter::came() {
                    return None;
                }
                // SAFETY: the kernel copies into what is ours alone, or says that it cannot.
                let copied = unsafe { libc::process_vm_readv(libc::getpid(), &here, 1, &there, 1, 0) };
                (usize::try_from(copied) == Ok(to.len())).then_some(())
            }
        }
    }

    fn block<const N: usize>(self, from: usize) -> Option<[u8; N]> {
        let mut block = [0; N];
        self.copy(from, &mut block)?;
        Some(block)
    }

    fn pointer(self, from: usize) -> Option<usize> {
        self.block(from).map(usize::from_ne_bytes)
    }
}

fn word(block: &[u8], at: usize) -> Option<usize> {
    block.get(at..)?.first_chunk().copied().map(usize::from_ne_bytes)
}

fn number(block: &[u8], at: usize) -> Option<i32> {
    block.get(at..)?.first_chunk().copied().map(i32::from_ne_bytes)
}

/// How a version of CPython keeps what is asked for here: how far from where things begin.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// In the state of a thread: its innermost frame, or where that is written.
    thread: usize,
    /// There, if it is the latter.
    holder: Option<usize>,
    /// In a frame.
    code: usize,
    instruction: usize,
    outer: usize,
    owner: usize,
    /// Says that a frame was called from C.
    entry: Entry,
    /// In a code object. Before the first instruction that is traced, a frame is still being made.
    first_line: usize,
    first_traced: usize,
    instructions: usize,
    /// Where the characters of a text are: of one that is ASCII, and of others.
    ascii: usize,
    compact: usize,
    /// The type of code objects.
    code_type: usize,
}

#[derive(Debug, Clone, Copy)]
enum Entry {
    /// A frame that is, by a byte that is not 0.
    Marked(usize),
    /// Before it stands one that is none of the program's, by an owner of this value.
    Before(u8),
}

/// A frame as it lies in memory.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    pub outer: usize,
    pub code: usize,
    pub instruction: usize,
    /// It was called from C.
    pub enters: bool,
    /// Stands only for a call from C.
    pub is_entry: bool,
    is_generators: bool,
}

/// What is asked of a code object.
#[derive(Debug, Clone, Copy)]
pub struct Code {
    at: usize,
    first_line: i32,
    first_traced: usize,
    instructions: usize,
    file: usize,
    function: usize,
    table: usize,
}

impl Layout {
    fn of(version: u64) -> Option<Layout> {
        let newest = Layout {
            thread: 72,
            holder: None,
            code: 0,
            instruction: 56,
            outer: 8,
            owner: 70,
            entry: Entry::Before(3),
            first_line: 68,
            first_traced: 184,
            instructions: 200,
            ascii: 40,
            compact: 56,
            code_type: 0,
        };
        let older = Layout { thread: 56, holder: Some(0), first_traced: 176, instructions: 192, ..newest };
        match version >> 16 {
            0x030b => Some(Layout {
                holder: Some(8),
                code: 32,
                outer: 48,
                owner: 69,
                entry: Entry::Marked(68),
                first_line: 72,
                first_traced: 168,
                instructions: 184,
                ascii: 48,
                compact: 72,
                ..older
            }),
            0x030c => Some(older),
            0x030d => Some(newest),
            _ => None,
        }
    }

    pub fn in_process() -> Option<Layout> {
        /// Of released versions, the last byte of the number.
        const FINAL: u64 = 0xf0;
        let version = first(c"Py_Version")?.cast::<u64>();
        // SAFETY: a constant of CPython's, of this type since there is one.
        let version = unsafe { version.read() };
        let code_type = first(c"PyCode_Type")? as usize;
        let layout = Layout::of(version).filter(|_| version & 0xf0 == FINAL)?;
        Some(Layout { code_type, ..layout })
    }

    /// The innermost frame of a thread; 0 where there is none.
    pub fn innermost(&self, memory: Memory, thread: usize) -> Option<usize> {
        let frame = memory.pointer(thread.checked_add(self.thread)?)?;
        match self.holder {
            Some(offset) if frame != 0 => memory.pointer(frame.checked_add(offset)?),
            _ => Some(frame),
        }
    }

    pub fn frame(&self, memory: Memory, frame: usize) -> Option<Found> {
        let block = memory.block::<72>(frame)?;
        let owner = block[self.owner];
        Some(Found {
            outer: word(&block, self.outer)?,
            code: word(&block, self.code)?,
            instruction: word(&block, self.instruction)?,
            enters: matches!(self.entry, Entry::Marked(at) if block[at] != 0),
            is_entry: matches!(self.entry, Entry::Before(value) if owner == value),
            is_generators: owner == GENERATOR,
        })
    }

    /// `None` where there is no code object.
    pub fn code(&self, memory: Memory, at: usize) -> Option<Code> {
        let mut block = [0; 200];
        let block = &mut block[..self.instructions];
        memory.copy(at, block)?;
        if word(block, TYPE)? != self.code_type {
            return None;
        }
        Some(Code {
            at,
            first_line: number(block, self.first_line)?,
            first_traced: usize::try_from(number(block, self.first_traced)?).ok()?,
            instructions: at.checked_add(self.instructions)?,
            file: word(block, FILE)?,
            function: word(block, FUNCTION)?,
            table: word(block, TABLE)?,
        })
    }

    /// The characters of a text as they lie there, and how many bytes each has.
    fn characters(&self, memory: Memory, text: usize, bytes: &mut Vec<u8>) -> Option<usize> {
        const IS_COMPACT: i32 = 0x20;
        const IS_ASCII: i32 = 0x40;
        let block = memory.block::<40>(text)?;
        let (length, state) = (word(&block, LENGTH)?, number(&block, STATE)?);
        let size = (state >> 2 & 7) as usize;
        if state & IS_COMPACT == 0 || !matches!(size, 1 | 2 | 4) || length > LONGEST_TEXT {
            return None;
        }
        bytes.resize(length * size, 0);
        let start = if state & IS_ASCII == 0 { self.compact } else { self.ascii };
        memory.copy(text.checked_add(start)?, bytes)?;
        Some(size)
    }

    fn table(&self, memory: Memory, code: &Code, bytes: &mut Vec<u8>) -> Option<()> {
        let block = memory.block::<24>(code.table)?;
        let length = word(&block, LENGTH)?;
        if length > LONGEST_TABLE {
            return None;
        }
        bytes.resize(length, 0);
        memory.copy(code.table.checked_add(BYTES)?, bytes)
    }

    /// A sum of all that decides what the code is called and which lines it has. `bytes` is room for it.
    pub fn sum(&self, memory: Memory, code: &Code, bytes: &mut Vec<u8>) -> Option<u64> {
        let mut sum = add(0, code.first_line as usize);
        for text in [code.file, code.function] {
            let size = self.characters(memory, text, bytes)?;
            sum = add_bytes(add(sum, size), bytes);
        }
        self.table(memory, code, bytes)?;
        Some(add_bytes(sum, bytes))
    }

    /// Its file and its function. What cannot be written in UTF-8 is empty, as Python's own function says nothing of it.
    pub fn names(&self, memory: Memory, code: &Code) -> Option<(String, String)> {
        let mut bytes = Vec::new();
        let mut name = |text: usize| {
            let size = self.characters(memory, text, &mut bytes)?;
            Some(decoded(&bytes, size).unwrap_or_default())
        };
        Some((name(code.file)?, name(code.function)?))
    }

    /// The line of an instruction; 0 where it has none.
    pub fn line(&self, memory: Memory, code: &Code, instruction: usize) -> Option<u64> {
        let mut bytes = Vec::new();
        self.table(memory, code, &mut bytes)?;
        let offset = instruction.wrapping_sub(code.instructions) as isize / UNIT as isize;
        Some(line(&bytes, code.first_line, offset))
    }
}

impl Code {
    /// Where its first traced instruction is.
    pub fn begins(&self) -> usize {
        self.instructions.wrapping_add(self.first_traced.wrapping_mul(UNIT))
    }

    /// How far into it an instruction is.
    pub fn offset(&self, instruction: usize) -> usize {
        instruction.wrapping_sub(self.at)
    }
}

impl Found {
    /// It is still being made: Python shows it to nobody.
    pub fn is_unfinished(&self, begins: usize) -> bool {
        !self.is_generators && self.instruction < begins
    }
}

fn add_bytes(sum: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(add(sum, bytes.len()), |sum, &word| add(sum, usize::from_ne_bytes(word)));
    rest.iter().fold(sum, |sum, &byte| add(sum, byte.into()))
}

/// Characters of so many bytes each; `None` where one of them is none.
fn decoded(bytes: &[u8], size: usize) -> Option<String> {
    let value = |bytes: &[u8]| {
        let mut value = [0; 4];
        value[..size].copy_from_slice(bytes);
        char::from_u32(u32::from_le_bytes(value))
    };
    bytes.chunks_exact(size).map(value).collect()
}

/// The line of an instruction by a table of lines, as CPython has it since 3.11: of each entry the first byte, which alone is
/// 128 or more, says what it is and how many instructions it is of; the change of the line is in that or in the next bytes.
fn line(table: &[u8], first_line: i32, offset: isize) -> u64 {
    const ONE_LINE: u8 = 10;
    const NO_COLUMNS: u8 = 13;
    const LONG: u8 = 14;
    const NONE: u8 = 15;
    let mut line = i64::from(first_line);
    let mut end = 0;
    let mut rest = table;
    while let [first, after @ ..] = rest {
        if offset < 0 {
            break;
        }
        let kind = first >> 3 & 15;
        line += match kind {
            NO_COLUMNS | LONG => change(after),
            ONE_LINE..NO_COLUMNS => i64::from(kind - ONE_LINE),
            _ => 0,
        };
        end += isize::from(first & 7) + 1;
        if offset < end {
            return if kind == NONE { 0 } else { line.max(0) as u64 };
        }
        let next = after.iter().position(|byte| byte & 0x80 != 0).unwrap_or(after.len());
        rest = &after[next..];
    }
    if offset < 0 { line.max(0) as u64 } else { 0 }
}

/// A signed number: six bits a byte, the lowest first; the lowest of all is its sign.
fn change(bytes: &[u8]) -> i64 {
    let mut value = 0i64;
    for (index, byte) in bytes.iter().take(6).enumerate() {
        value |= i64::from(byte & 63) << (6 * index);
        if byte & 64 == 0 {
            break;
        }
    }
    if value & 1 == 0 { value >> 1 } else { -(value >> 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_that_were_tried_have_a_layout() {
        for (version, known) in [(0x030a_0df0, false), (0x030b_02f0, true), (0x030c_01f0, true)] {
            assert_eq!(Layout::of(version).is_some(), known, "{version:x}");
        }
        assert!(Layout::of(0x030d_00f0).is_some() && Layout::of(0x030e_00f0).is_none());
        // There is no Python in this process.
        assert!(Layout::in_process().is_none());
    }

    #[test]
    fn memory_that_is_gone_is_noticed() {
        let here = 7usize;
        assert_eq!(Memory::Unsure.pointer(&raw const here as usize), Some(7));
        assert_eq!(Memory::Stable.pointer(&raw const here as usize), Some(7));
        assert_eq!(Memory::Unsure.pointer(8), None);
        assert_eq!(Memory::Unsure.pointer(usize::MAX - 3), None);
    }

    #[test]
    fn characters_of_every_size_become_text() {
        assert_eq!(decoded(b"caf\xe9", 1).unwrap(), "café");
        assert_eq!(decoded(&[0x42, 0x04, 0x61, 0], 2).unwrap(), "тa");
        assert_eq!(decoded(&[0x00, 0xf6, 0x01, 0], 4).unwrap(), "😀");
        // Half of a pair, which stands for a byte of a file's name.
        assert_eq!(decoded(&[0x80, 0xdc], 2), None);
        assert_eq!(decoded(&[], 4).unwrap(), "");
    }

    #[test]
    fn a_table_gives_the_line_of_every_instruction() {
        let entry = |kind: u8, count: u8| 0x80 | kind << 3 | (count - 1);
        let table = [
            entry(15, 1),
            // The same line, with columns in a second byte.
            entry(0, 2),
            0x15,
            // Two lines on.
            entry(12, 1),
            1,
            2,
            // 40 lines on: 80 is 16 and 1 times 64.
            entry(13, 8),
            0x40 | 16,
            1,
            // One line back, with an end and two columns.
            entry(14, 1),
            3,
            0,
            1,
            1,
        ];
        let at = |offset: isize| line(&table, 10, offset);
        assert_eq!([at(-1), at(0), at(1), at(2), at(3)], [10, 0, 10, 10, 12]);
        assert_eq!([at(4), at(11), at(12), at(13)], [52, 52, 51, 0]);
        assert_eq!(line(&[], 10, 0), 0);
    }
}
