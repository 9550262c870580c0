//! What lies where: the loaded modules, which of their frames count, and addresses as module and offset.

use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use libc::Elf64_Phdr;
use refrain_fold::bundle::sites::{Frame, Module, NO_MODULE};

use super::python;
use refrain_process::loaded::{Changes, Object, if_changed};

/// Whether the file of that path is left out of stacks, a `fn(&str) -> bool`; null: none is.
static LEAVES_OUT: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// The code of these files is never part of a stack: what is traced, and layers between it and a language.
pub fn leave_out(rule: fn(&str) -> bool) {
    LEAVES_OUT.store(rule as *mut (), Release);
}

fn is_left_out(path: &str) -> bool {
    // SAFETY: null, or the function that `leave_out` was given.
    let rule = unsafe { std::mem::transmute::<*mut (), Option<fn(&str) -> bool>>(LEAVES_OUT.load(Acquire)) };
    rule.is_some_and(|rule| rule(path))
}

/// Whose code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Program,
    /// Of what is traced, of a layer between it and a language, or ours: never part of a stack.
    LeftOut,
    /// The C library's: not part of a stack where it is the outermost, since it starts programs and threads.
    System,
    /// Python's interpreter: its frames stand for those of Python.
    Interpreter,
}

#[derive(Debug)]
pub struct Loaded {
    base: usize,
    memory: Range<usize>,
    /// That can be read and run.
    code: Vec<Range<usize>>,
    pub owner: Owner,
    key: u64,
    pub module: Module,
}

impl Loaded {
    /// The name of its file.
    pub fn name(&self) -> &str {
        self.module.path.rsplit('/').next().unwrap_or_default()
    }
}

#[derive(Debug, Default)]
pub struct Modules {
    loaded: Vec<Loaded>,
    /// When `loaded` was made.
    changes: Changes,
}

const NT_GNU_BUILD_ID: u32 = 3;

/// A frame returns into what the program begins with, if it is so near to its entry.
const START: usize = 64;

impl Modules {
    pub fn find(&self, address: usize) -> Option<&Loaded> {
        self.loaded.iter().find(|module| module.memory.contains(&address))
    }

    /// Whether this is where a call returns to: the instruction before it calls.
    pub fn is_return_address(&self, address: usize) -> bool {
        /// The longest form.
        const LONGEST: usize = 7;
        let code = |module: &Loaded| {
            let whole = |code: &&Range<usize>| code.start + LONGEST <= address && address <= code.end;
            module.code.iter().find(whole).cloned()
        };
        if self.loaded.iter().find_map(code).is_none() {
            return false;
        }
        // SAFETY: all of these lie in code that is mapped to be read.
        let bytes: [u8; LONGEST] = unsafe { ((address - LONGEST) as *const [u8; LONGEST]).read() };
        let indirect =
            |length: usize| bytes[LONGEST - length] == 0xff && bytes[LONGEST - length + 1] >> 3 & 7 == 2;
        bytes[LONGEST - 5] == 0xe8 || [2, 3, 4, 6, 7].into_iter().any(indirect)
    }

    pub fn owner(&self, return_address: usize) -> Owner {
        self.find(return_address.wrapping_sub(1)).map_or(Owner::Program, |module| module.owner)
    }

    /// Outermost, where programs begin.
    pub fn starts_program(return_address: usize) -> bool {
        // SAFETY: asks for a number.
        let entry = unsafe { libc::getauxval(libc::AT_ENTRY) } as usize;
        return_address.wrapping_sub(entry) < START
    }

    pub fn frame(&self, return_address: usize) -> Frame {
        match self.find(return_address.wrapping_sub(1)) {
            Some(module) => {
                Frame { module: module.key, offset: return_address.wrapping_sub(module.base) as u64 }
            }
            None => Frame { module: NO_MODULE, offset: 0 },
        }
    }

    /// The modules that make calls on the program's behalf: where each lies, from where its offsets count, and what it is.
    pub fn of_program(&self) -> impl Iterator<Item = (usize, Range<usize>, &Module)> {
        let own = |loaded: &&Loaded| matches!(loaded.owner, Owner::Program | Owner::Interpreter);
        self.loaded.iter().filter(own).map(|loaded| (loaded.base, loaded.memory.clone(), &loaded.module))
    }

    pub fn by_key(&self, key: u64) -> Option<&Loaded> {
        self.loaded.iter().find(|module| module.key == key)
    }

    /// Looks at what is loaded now, if that has changed. Whether something went away.
    pub fn refresh(&mut self) -> bool {
        let Some((changes, mut loaded)) = if_changed(self.changes, look) else { return false };
        let own = Modules::default as fn() -> Modules as *const () as usize;
        let interpreter = python::interpreter();
        for module in &mut loaded {
            if module.module.path.is_empty() {
                let program = std::env::current_exe().unwrap_or_default();
                module.module.path = program.to_string_lossy().into_owned();
            }
            // As the program opened it, which is of no use to who reads the trace elsewhere.
            if module.module.path.starts_with('.')
                && let Ok(path) = std::path::absolute(&module.module.path)
            {
                module.module.path = path.to_string_lossy().into_owned();
            }
            module.key = module.module.key();
            module.owner = match module.name() {
                _ if module.memory.contains(&own) || is_left_out(&module.module.path) => Owner::LeftOut,
                _ if interpreter.is_some_and(|address| module.memory.contains(&address)) => {
                    Owner::Interpreter
                }
                name if is_system(name) => Owner::System,
                _ => Owner::Program,
            };
        }
        let gone = changes.lost_some(self.changes);
        *self = Modules { loaded, changes };
        gone
    }
}

fn is_system(name: &str) -> bool {
    let names =
        ["libc.so", "libc-2", "libpthread.so", "libpthread-2", "ld-linux", "ld-2", "libc.musl", "ld-musl"];
    names.iter().any(|known| name.starts_with(known))
}

/// One module, as far as it can be looked at under the loader's lock.
fn look(object: &Object<'_>) -> Loaded {
    let runs = |h: &&Elf64_Phdr| h.p_flags & (libc::PF_X | libc::PF_R) == libc::PF_X | libc::PF_R;
    let notes = object.headers.iter().filter(|h| h.p_type == libc::PT_NOTE && h.p_filesz <= h.p_memsz);
    let notes = notes.filter(|note| is_loaded(note, object.headers));
    // SAFETY: a note's header says where it is and how long, and that is loaded.
    let bytes = |h: &Elf64_Phdr| unsafe {
        std::slice::from_raw_parts(object.range(h).start as *const u8, h.p_filesz as usize)
    };
    let build_id = notes.map(bytes).filter_map(build_id).next().unwrap_or_default().into();
    Loaded {
        base: object.base,
        memory: object.memory(),
        code: object.loads().filter(runs).map(|header| object.range(header)).collect(),
        owner: Owner::Program,
        key: NO_MODULE,
        module: Module { path: object.path.to_string_lossy().into_owned(), build_id },
    }
}

/// Whether all of it can be read. Tools that rewrite binaries leave notes behind that are in no part of them.
fn is_loaded(note: &Elf64_Phdr, headers: &[Elf64_Phdr]) -> bool {
    let end = |header: &Elf64_Phdr| header.p_vaddr.checked_add(header.p_memsz);
    let holds = |part: &Elf64_Phdr| {
        let readable = part.p_type == libc::PT_LOAD && part.p_flags & libc::PF_R != 0;
        readable && part.p_vaddr <= note.p_vaddr && end(note).is_some_and(|last| Some(last) <= end(part))
    };
    headers.iter().any(holds)
}

/// The build-id among these notes.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    while let Some((head, rest)) = notes.split_first_chunk::<12>() {
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (name, length, kind) = (word(0) as usize, word(4) as usize, word(8));
        let (name, rest) = rest.split_at_checked(name.checked_next_multiple_of(4)?)?;
        let content = rest.get(..length)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return Some(content);
        }
        notes = rest.get(length.checked_next_multiple_of(4)?..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_are_found_among_notes() {
        let note = |name: &[u8], kind: u32, content: &[u8]| {
            let mut bytes = Vec::new();
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend((content.len() as u32).to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            for part in [name, content] {
                bytes.extend(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let notes =
            [note(b"XY\0", 3, &[9; 5]), note(b"GNU\0", 1, &[8; 16]), note(b"GNU\0", 3, &[1, 2, 3])].concat();
        assert_eq!(build_id(&notes), Some(&[1, 2, 3][..]));
        for length in 0..notes.len() - 1 {
            assert_eq!(build_id(&notes[..length]), None, "{length}");
        }
        assert_eq!(build_id(&[0xff; 40]), None);
    }

    #[test]
    fn notes_that_were_not_loaded_are_not_read() {
        let header = |p_type, p_flags, p_vaddr, p_memsz| Elf64_Phdr {
            p_type,
            p_flags,
            p_offset: 0,
            p_vaddr,
            p_paddr: 0,
            p_filesz: p_memsz,
            p_memsz,
            p_align: 4,
        };
        let headers =
            [header(libc::PT_LOAD, libc::PF_R, 100, 50), header(libc::PT_LOAD, libc::PF_X, 200, 50)];
        let loaded = |at, length| is_loaded(&header(libc::PT_NOTE, libc::PF_R, at, length), &headers);
        assert!(loaded(100, 50) && loaded(120, 4));
        assert!(
            !loaded(90, 20) && !loaded(149, 2) && !loaded(0, 10) && !loaded(200, 8) && !loaded(u64::MAX, 9)
        );
    }

    #[test]
    fn addresses_are_found_in_their_modules() {
        let mut modules = Modules::default();
        modules.refresh();
        let here = build_ids_are_found_among_notes as *const () as usize;
        // All of this test is one module with the code that is ours.
        assert_eq!(modules.owner(here + 1), Owner::LeftOut);
        assert_eq!(modules.frame(16), Frame { module: NO_MODULE, offset: 0 });
        let frame = modules.frame(here + 1);
        let program = modules.by_key(frame.module).unwrap();
        assert!(std::env::current_exe().unwrap().ends_with(program.name()));
        assert_eq!(program.base + frame.offset as usize, here + 1);
        // A function may begin right after a call that does not return, but not each of these.
        let begins = [here, Modules::find as *const () as usize, Modules::owner as *const () as usize];
        assert!(begins.iter().any(|&begin| !modules.is_return_address(begin)));
        assert!(!modules.is_return_address(16));
    }
}
