//! Python's frames, where a stack goes through its interpreter.
//!
//! Which functions and lines these are, CPython says itself, by its public functions, where this thread holds the
//! interpreter's lock. mpi4py gives it up around most calls, and it is never taken for this: who waits for it may wait for a
//! thread that waits for this one, and may not come back at all while the interpreter ends. Without the lock the thread's
//! own frames are read as they lie in memory (`layout`): nobody changes them while the thread is in MPI, and they keep
//! their code objects, whose names and lines never change. That is done only after it has given what the public functions
//! say, and every new stack that comes with the lock held is held against them too. Where the layout is not known, or does
//! not fit, calls without the lock have the native frames.
//!
//! A known stack is recognised by the code objects of its frames and the instructions they are at. Code objects that were
//! seen with the lock held are kept, so that no other one comes to lie there. Others are told by what is in them.

mod layout;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use refrain_fold::FastMap;
use refrain_fold::bundle::sites::{Frame, Module, PYTHON};

use crate::process::hash::add;
use crate::process::next::first;
use layout::{Found, Layout, Memory};

type Object = *mut c_void;

/// More code objects than these are not kept.
const MOST_CODES: usize = 1 << 14;
/// Stacks that are remembered; of more, all are asked for again.
const MOST_STACKS: usize = 1 << 16;
/// Deeper stacks are cut off.
const DEEPEST: usize = 1 << 12;
/// The sum of no frames.
const NOTHING: u64 = 0;

/// So often may what lies in memory be something else than the public functions say; then it is not read any more.
const MOST_MISFITS: usize = 16;
static MISFITS: AtomicUsize = AtomicUsize::new(0);
/// How many stacks were the same.
static FITS: AtomicUsize = AtomicUsize::new(0);

macro_rules! functions {
    ($($field:ident $name:ident $(or $other:ident)? ($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[derive(Debug, Clone, Copy)]
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            fn find() -> Option<Functions> {
                $(
                    let $field = named(concat!(stringify!($name), "\0"))
                        $(.or_else(|| named(concat!(stringify!($other), "\0"))))?;
                    let $field = $field?;
                    // SAFETY: CPython's function of this name, which has been of this type since 3.10.
                    let $field = unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>($field)
                    };
                )*
                Some(Functions { $($field,)* })
            }
        }
    };
}

functions! {
    is_initialized Py_IsInitialized() -> c_int;
    this_thread PyGILState_GetThisThreadState() -> *const c_void;
    current PyThreadState_GetUnchecked or _PyThreadState_UncheckedGet() -> *const c_void;
    is_ending Py_IsFinalizing or _Py_IsFinalizing() -> c_int;
    frame PyEval_GetFrame() -> Object;
    outer PyFrame_GetBack(Object) -> Object;
    code PyFrame_GetCode(Object) -> Object;
    line PyFrame_GetLineNumber(Object) -> c_int;
    attribute PyObject_GetAttrString(Object, *const c_char) -> Object;
    text PyUnicode_AsUTF8AndSize(Object, *mut isize) -> *const c_char;
    keep Py_IncRef(Object);
    release Py_DecRef(Object);
    take_error PyErr_Fetch(*mut Object, *mut Object, *mut Object);
    put_error PyErr_Restore(Object, Object, Object);
    stop_collecting PyGC_Disable() -> c_int;
    collect PyGC_Enable() -> c_int;
}

/// What the process defines under that name, which comes with its end.
fn named(name: &str) -> Option<*mut c_void> {
    first(CStr::from_bytes_with_nul(name.as_bytes()).ok()?)
}

/// An address in the module that is Python's interpreter.
pub fn interpreter() -> Option<usize> {
    first(c"PyFrame_GetBack").map(|found| found as usize)
}

/// The function that runs frames.
pub fn evaluator() -> Option<usize> {
    first(c"_PyEval_EvalFrameDefault").map(|found| found as usize)
}

/// A frame as it lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    code: usize,
    instruction: usize,
    /// It was called from C.
    enters: bool,
}

/// A frame by name.
#[derive(Debug, PartialEq, Eq)]
struct NamedFrame {
    code: usize,
    file: String,
    function: String,
    line: u64,
}

/// Python's part of a stack.
#[derive(Debug, Default)]
pub struct Frames {
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// How many frames each run of the interpreter has, innermost first; empty where that is not known.
    pub runs: Vec<usize>,
    /// To be recognised by.
    key: Option<u64>,
}

/// What this thread may ask now.
#[derive(Debug, Clone, Copy)]
enum Access {
    /// Python knows nothing of this thread, or is no more, or cannot be asked.
    Nothing,
    /// Everything: it holds the lock. This is its state.
    All(usize),
    /// What lies in memory.
    Memory(usize, Memory),
}

/// What one thread knows of Python.
#[derive(Debug)]
pub struct Python {
    functions: Functions,
    layout: Option<Layout>,
    /// The stacks of return addresses that go through the interpreter, innermost first, by their sum.
    natives: FastMap<u64, Box<[usize]>>,
    /// Sites, by the stack and the sum of Python's frames.
    sites: FastMap<(u64, u64), u64>,
    /// The code objects that are kept, and where their first traced instructions are.
    codes: FastMap<usize, usize>,
    modules: FastMap<u64, Module>,
    walked: Vec<Seen>,
    bytes: Vec<u8>,
}

impl Python {
    pub fn find() -> Option<Python> {
        Some(Python {
            functions: Functions::find()?,
            layout: Layout::in_process(),
            natives: FastMap::default(),
            sites: FastMap::default(),
            codes: FastMap::default(),
            modules: FastMap::default(),
            walked: Vec::new(),
            bytes: Vec::new(),
        })
    }

    /// Whether all others had to be forgotten for it.
    pub fn add_native(&mut self, sum: u64, addresses: &[usize]) -> bool {
        let is_full = self.natives.len() >= MOST_STACKS;
        if is_full {
            self.forget_stacks();
        }
        self.natives.insert(sum, addresses.into());
        is_full
    }

    /// Return addresses may have come to stand for something else.
    pub fn forget_stacks(&mut self) {
        self.natives = FastMap::default();
        self.sites = FastMap::default();
    }

    pub fn native(&self, sum: u64) -> Option<&[usize]> {
        self.natives.get(&sum).map(|addresses| &**addresses)
    }

    pub fn module(&self, key: u64) -> Option<&Module> {
        self.modules.get(&key)
    }

    /// The site of a call from this native stack, if it is known.
    #[inline]
    pub fn recall(&mut self, native: u64) -> Option<u64> {
        let key = match self.access() {
            Access::Nothing => NOTHING,
            _ if !fits() => return None,
            access => self.walk(access)?,
        };
        self.sites.get(&(native, key)).copied()
    }

    pub fn remember(&mut self, native: u64, frames: &Frames, site: u64) {
        let Some(key) = frames.key else { return };
        if self.sites.len() >= MOST_STACKS {
            self.sites = FastMap::default();
        }
        self.sites.insert((native, key), site);
    }

    /// Whether Python is there, and not about to be no more.
    fn lives(&self) -> bool {
        // SAFETY: both ask for a number, at any time.
        unsafe { (self.functions.is_initialized)() != 0 && (self.functions.is_ending)() == 0 }
    }

    fn access(&mut self) -> Access {
        if !self.lives() {
            if !self.codes.is_empty() {
                // What another interpreter makes may lie where these did.
                self.codes = FastMap::default();
                self.sites = FastMap::default();
            }
            return Access::Nothing;
        }
        // SAFETY: needs no lock.
        let thread = unsafe { (self.functions.this_thread)() };
        // SAFETY: needs no lock. It is the state of whoever holds it, or of this thread if it does.
        let current = unsafe { (self.functions.current)() };
        if thread.is_null() {
            Access::Nothing
        } else if current == thread {
            Access::All(thread as usize)
        } else if self.layout.is_some() && fits() {
            // The main thread ends the interpreter, and with it the states of other threads, wherever these are.
            // SAFETY: both ask for a number.
            let is_main = unsafe { libc::gettid() == libc::getpid() };
            Access::Memory(thread as usize, if is_main { Memory::Stable } else { Memory::Unsure })
        } else {
            Access::Nothing
        }
    }

    /// Reads this thread's frames into `walked`. Gives their sum.
    fn walk(&mut self, access: Access) -> Option<u64> {
        let layout = self.layout.filter(|_| MISFITS.load(Relaxed) <= MOST_MISFITS)?;
        let (thread, memory, keeps) = match access {
            Access::Nothing => return None,
            Access::All(thread) if fits() => (thread, Memory::Stable, true),
            Access::All(thread) => (thread, Memory::Unsure, false),
            Access::Memory(thread, memory) => (thread, memory, false),
        };
        self.walked.clear();
        let mut frame = layout.innermost(memory, thread)?;
        let mut sum = NOTHING;
        for _ in 0..2 * DEEPEST {
            if frame == 0 || self.walked.len() == DEEPEST {
                break;
            }
            let found = layout.frame(memory, frame)?;
            frame = found.outer;
            let mut is_shown = !found.is_entry;
            if is_shown {
                let (begins, told) = match self.codes.get(&found.code) {
                    Some(&begins) => (begins, add(found.code as u64, found.instruction)),
                    None => {
                        let code = layout.code(memory, found.code)?;
                        let told = if keeps && self.codes.len() < MOST_CODES {
                            // SAFETY: the lock is held, and the frame holds the object.
                            unsafe { (self.functions.keep)(found.code as Object) };
                            self.codes.insert(found.code, code.begins());
                            add(found.code as u64, found.instruction)
                        } else {
                            let sum = layout.sum(memory, &code, &mut self.bytes)?;
                            add(sum, code.offset(found.instruction))
                        };
                        (code.begins(), told)
                    }
                };
                is_shown = !found.is_unfinished(begins);
                if is_shown {
                    sum = add(sum, told as usize);
                    let Found { code, instruction, enters, .. } = found;
                    self.walked.push(Seen { code, instruction, enters });
                }
            }
            if !is_shown
                && (found.is_entry || found.enters)
                && let Some(last) = self.walked.last_mut()
            {
                last.enters = true;
            }
        }
        self.still(memory).then_some(sum)
    }

    /// What was read was there until now.
    fn still(&self, memory: Memory) -> bool {
        memory == Memory::Stable || self.lives()
    }

    /// The frames that were walked, by name.
    fn read(&self, access: Access) -> Option<Vec<NamedFrame>> {
        let layout = self.layout?;
        let memory = match access {
            Access::Nothing => return None,
            Access::All(_) if fits() => Memory::Stable,
            Access::All(_) => Memory::Unsure,
            Access::Memory(_, memory) => memory,
        };
        let tell = |&Seen { code, instruction, .. }: &Seen| {
            let found = layout.code(memory, code)?;
            let (file, function) = layout.names(memory, &found)?;
            Some(NamedFrame { code, file, function, line: layout.line(memory, &found, instruction)? })
        };
        let told = self.walked.iter().map(tell).collect::<Option<Vec<NamedFrame>>>()?;
        self.still(memory).then_some(told)
    }

    /// Asks Python. Nothing where it cannot be asked.
    #[cold]
    pub fn ask(&mut self) -> Frames {
        let access = self.access();
        let key = self.walk(access);
        let read = if key.is_some() { self.read(access) } else { None };
        let (told, fits) = match access {
            Access::Nothing => return Frames { key: Some(NOTHING), ..Frames::default() },
            Access::Memory(..) => match read {
                Some(read) => (read, true),
                None => return Frames::default(),
            },
            Access::All(_) => {
                let told = self.named();
                let fits = read.is_some_and(|read| read == told);
                if !fits {
                    MISFITS.fetch_add(1, Relaxed);
                } else if !told.is_empty() {
                    FITS.fetch_add(1, Relaxed);
                }
                (told, fits)
            }
        };
        let mut frames = Frames::default();
        for NamedFrame { file, function, line, .. } in told {
            let path = format!("{PYTHON}{}:{function}", absolute(file));
            let module = Module { path, build_id: Box::default() };
            frames.frames.push(Frame { module: module.key(), offset: line });
            self.modules.entry(module.key()).or_insert(module);
        }
        if fits {
            frames.key = key;
            frames.runs = runs(&self.walked);
        }
        frames
    }

    /// This thread's frames, innermost first, by the public functions. It holds the lock.
    fn named(&self) -> Vec<NamedFrame> {
        let python = self.functions;
        let _aside = Aside::put(python);
        let mut told = Vec::new();
        // SAFETY: the lock is held, here and for all that follows; gives a frame that is alive, or null.
        let mut frame = unsafe { (python.frame)() };
        // SAFETY: an object, or null, which is nothing to it.
        unsafe { (python.keep)(frame) };
        while !frame.is_null() && told.len() < DEEPEST {
            // SAFETY: a frame that we hold.
            let code = unsafe { (python.code)(frame) };
            // SAFETY: as above.
            let line = unsafe { (python.line)(frame) };
            // SAFETY: a code object that we hold.
            let (file, qualified) =
                unsafe { (python.text_of(code, c"co_filename"), python.text_of(code, c"co_qualname")) };
            // SAFETY: as above. Before 3.11 there is only this.
            let function = qualified.or_else(|| unsafe { python.text_of(code, c"co_name") });
            told.push(NamedFrame {
                code: code as usize,
                file: file.unwrap_or_default(),
                function: function.unwrap_or_default(),
                line: line.max(0) as u64,
            });
            // SAFETY: ours to let go of.
            unsafe { (python.release)(code) };
            // SAFETY: a frame that we hold.
            let outer = unsafe { (python.outer)(frame) };
            // SAFETY: ours to let go of.
            unsafe { (python.release)(frame) };
            frame = outer;
        }
        // SAFETY: ours, or null.
        unsafe { (python.release)(frame) };
        told
    }
}

impl Functions {
    /// A text that is an attribute of an object.
    ///
    /// # Safety
    /// The lock is held, and `object` is null or alive.
    unsafe fn text_of(&self, object: Object, name: &CStr) -> Option<String> {
        if object.is_null() {
            return None;
        }
        // SAFETY: as the caller says, and a terminated name.
        let value = unsafe { (self.attribute)(object, name.as_ptr()) };
        let mut length = 0;
        let text = match value.is_null() {
            true => std::ptr::null(),
            // SAFETY: an object that we hold; what is no text gives null.
            false => unsafe { (self.text)(value, &mut length) },
        };
        let found = match (text.is_null(), usize::try_from(length)) {
            (false, Ok(length)) => {
                // SAFETY: so many bytes, which live as long as the object does.
                let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
                Some(String::from_utf8_lossy(bytes).into_owned())
            }
            _ => {
                let mut nothing = [null_mut(); 3];
                let [a, b, c] = &mut nothing;
                // SAFETY: the error of this attempt is taken away; all three are places of ours.
                unsafe { (self.take_error)(a, b, c) };
                // SAFETY: ours to let go of, or null.
                nothing.into_iter().for_each(|error| unsafe { (self.release)(error) });
                None
            }
        };
        // SAFETY: ours to let go of, or null.
        unsafe { (self.release)(value) };
        found
    }
}

/// The program's error is put aside, and nothing is collected, since that runs code of the program. All with the lock held.
struct Aside {
    python: Functions,
    collected: bool,
    error: [Object; 3],
}

impl Aside {
    fn put(python: Functions) -> Aside {
        // SAFETY: the lock is held.
        let collected = unsafe { (python.stop_collecting)() } != 0;
        let mut error = [null_mut(); 3];
        let [a, b, c] = &mut error;
        // SAFETY: the lock is held; all three are places of ours.
        unsafe { (python.take_error)(a, b, c) };
        Aside { python, collected, error }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let [a, b, c] = self.error;
        // SAFETY: what `put` took, with the lock held.
        unsafe { (self.python.put_error)(a, b, c) };
        if self.collected {
            // SAFETY: the lock is held.
            unsafe { (self.python.collect)() };
        }
    }
}

/// Whether what lies in memory was found to be what the public functions say.
fn fits() -> bool {
    FITS.load(Relaxed) > 0 && MISFITS.load(Relaxed) <= MOST_MISFITS
}

/// How many frames each run of the interpreter has, innermost first.
fn runs(walked: &[Seen]) -> Vec<usize> {
    walked.split_inclusive(|seen| seen.enters).map(<[Seen]>::len).collect()
}

/// As the program named it, which is of no use to who reads the trace elsewhere. What is no file stays, and so does what is not
/// where the program is now.
fn absolute(file: String) -> String {
    if file.starts_with(['/', '<']) || file.is_empty() {
        return file;
    }
    match std::path::absolute(&file) {
        Ok(path) if path.exists() => path.to_string_lossy().into_owned(),
        _ => file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_dealt_to_the_runs_that_they_are_in() {
        let seen = |marks: &str| -> Vec<Seen> {
            marks.bytes().map(|mark| Seen { code: 1, instruction: 2, enters: mark == b'e' }).collect()
        };
        assert_eq!(runs(&seen("")), [0usize; 0]);
        assert_eq!(runs(&seen("e")), [1]);
        assert_eq!(runs(&seen("..ee.e")), [3, 1, 2]);
        assert_eq!(runs(&seen(".e..")), [2, 2]);
    }

    #[test]
    fn files_are_named_from_the_root() {
        assert_eq!(absolute("/a/b.py".into()), "/a/b.py");
        assert_eq!(absolute("<string>".into()), "<string>");
        assert_eq!(absolute("no/such.py".into()), "no/such.py");
        // The tests run where this is.
        assert!(absolute("Cargo.toml".into()).starts_with('/'));
        // There is no Python in this process.
        assert!(Python::find().is_none() && interpreter().is_none());
    }
}
