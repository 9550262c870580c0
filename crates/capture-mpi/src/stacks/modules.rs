//! What lies where: the loaded modules, which of their frames count, and addresses as module and offset.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libc::{Elf64_Phdr, dl_phdr_info};
use refrain_fold::bundle::sites::{Frame, Module, NO_MODULE};

use super::python;

/// Whose code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Program,
    /// MPI's, of a layer between a language and MPI, or ours: never part of a stack.
    Mpi,
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
    /// How many modules came and went when `loaded` was made.
    changes: (u64, u64),
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

    pub fn by_key(&self, key: u64) -> Option<&Loaded> {
        self.loaded.iter().find(|module| module.key == key)
    }

    /// Looks at what is loaded now, if that has changed. Whether something went away.
    pub fn refresh(&mut self) -> bool {
        let mut now = Modules { changes: self.changes, ..Modules::default() };
        // SAFETY: the callback fits, and `now` outlives the call.
        let changed = unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut now).cast()) } == 0;
        if !changed {
            return false;
        }
        let own = Modules::default as fn() -> Modules as *const () as usize;
        let interpreter = python::interpreter();
        for module in &mut now.loaded {
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
                _ if module.memory.contains(&own) => Owner::Mpi,
                name if refrain_mpi::is_mpi_file(name) || is_mpi4py(&module.module.path) => Owner::Mpi,
                _ if interpreter.is_some_and(|address| module.memory.contains(&address)) => {
                    Owner::Interpreter
                }
                name if is_system(name) => Owner::System,
                _ => Owner::Program,
            };
        }
        let gone = now.changes.1 != self.changes.1;
        *self = now;
        gone
    }
}

/// The layer between Python and MPI: `mpi4py/MPI.cpython-311-x86_64-linux-gnu.so`, `mpi4py/MPI.mpich.so`.
fn is_mpi4py(path: &str) -> bool {
    let file = path.rsplit_once('/').filter(|(folder, _)| folder.ends_with("/mpi4py"));
    file.is_some_and(|(_, name)| name.starts_with("MPI.") && name.ends_with(".so"))
}

fn is_system(name: &str) -> bool {
    let names =
        ["libc.so", "libc-2", "libpthread.so", "libpthread-2", "ld-linux", "ld-2", "libc.musl", "ld-musl"];
    names.iter().any(|known| name.starts_with(known))
}

/// Adds one module; stops with 1 where the loader's counters say that nothing changed.
unsafe extern "C" fn each(info: *mut dl_phdr_info, _size: usize, modules: *mut c_void) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a valid description, and our own pointer back.
    let (info, modules) = unsafe { (&*info, &mut *modules.cast::<Modules>()) };
    // A panic must not pass through the loader: it ends the walk, and what is known stays as it was.
    catch_unwind(AssertUnwindSafe(|| add(info, modules))).unwrap_or(1)
}

fn add(info: &dl_phdr_info, modules: &mut Modules) -> c_int {
    let changes = (info.dlpi_adds, info.dlpi_subs);
    if modules.loaded.is_empty() && modules.changes == changes {
        return 1;
    }
    modules.changes = changes;
    let headers = match info.dlpi_phdr.is_null() {
        true => &[],
        // SAFETY: the loader's own array, of that length.
        false => unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) },
    };
    let base = info.dlpi_addr as usize;
    let range = |header: &Elf64_Phdr| {
        let start = base.wrapping_add(header.p_vaddr as usize);
        start..start.wrapping_add(header.p_memsz as usize)
    };
    let loads = || headers.iter().filter(|h| h.p_type == libc::PT_LOAD);
    let start = loads().map(|h| range(h).start).min().unwrap_or(0);
    let end = loads().map(|h| range(h).end).max().unwrap_or(0);
    let runs = |h: &&Elf64_Phdr| h.p_flags & (libc::PF_X | libc::PF_R) == libc::PF_X | libc::PF_R;
    let notes = headers.iter().filter(|h| h.p_type == libc::PT_NOTE && h.p_filesz <= h.p_memsz);
    let notes = notes.filter(|note| is_loaded(note, headers));
    // SAFETY: a note's header says where it is and how long, and that is loaded.
    let notes = notes
        .map(|h| unsafe { std::slice::from_raw_parts(range(h).start as *const u8, h.p_filesz as usize) });
    let path = match info.dlpi_name.is_null() {
        true => String::new(),
        // SAFETY: a terminated string of the loader's.
        false => unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy().into_owned(),
    };
    modules.loaded.push(Loaded {
        base,
        memory: start..end,
        code: loads().filter(runs).map(range).collect(),
        owner: Owner::Program,
        key: NO_MODULE,
        module: Module { path, build_id: notes.filter_map(build_id).next().unwrap_or_default().into() },
    });
    0
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

/// Counts what is closed: other code may come to lie where it was.
///
/// # Safety
/// As for C's `dlclose`.
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dlclose(handle: *mut c_void) -> c_int {
    type Dlclose = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;
    // SAFETY: a terminated name; `RTLD_NEXT` is seen from this library, which is the one that calls.
    let real = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlclose".as_ptr()) };
    // SAFETY: the C library's function of this name, which is there, since something was bound to ours.
    let real: Dlclose = unsafe { std::mem::transmute(real) };
    // SAFETY: the program's own call, passed on.
    let code = unsafe { real(handle) };
    crate::state::CLOSED.fetch_add(1, std::sync::atomic::Ordering::Release);
    code
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
    fn the_module_of_mpi4py_is_a_layer_of_mpi() {
        assert!(is_mpi4py("/usr/lib/python3/dist-packages/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so"));
        assert!(is_mpi4py(
            "/venv/lib/python3.12/site-packages/mpi4py/MPI.mpich.cpython-312-x86_64-linux-gnu.so"
        ));
        assert!(!is_mpi4py("/home/me/MPI.so") && !is_mpi4py("/usr/lib/mpi4py/run.so") && !is_mpi4py(""));
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
        assert_eq!(modules.owner(here + 1), Owner::Mpi);
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
