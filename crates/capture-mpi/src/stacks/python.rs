//! Python's frames, where a stack goes through its interpreter.
//!
//! Which functions and lines these are, CPython says itself: by its public functions, found in the process. They need the
//! interpreter's lock, which mpi4py gives up around most calls; then it is taken for the look and given up again. That is
//! done for stacks that were not seen before. To tell that a stack was seen before, the chain of the thread's own frames is
//! read: nobody changes it while the thread is in MPI, so it takes no lock. How that chain is laid out is not public. It is
//! known for some versions, and each new stack is held against what the public functions say. Where it is not known, or
//! does not fit, the public functions are asked for every call.
//!
//! A frame is told by its code object and the instruction it is at. Code objects that were seen are kept, so that no other
//! one comes to lie there.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

use refrain_encode::FastMap;
use refrain_fold::bundle::sites::{Frame, Module, PYTHON};

use super::cache::add;

type Object = *mut c_void;

/// More code objects than these are not kept, nor are stacks that they are in.
const MOST_CODES: usize = 1 << 14;
/// Stacks that are remembered; of more, all are asked for again.
const MOST_STACKS: usize = 1 << 16;
/// Deeper stacks are cut off.
const DEEPEST: usize = 1 << 12;
/// So often the chain of frames may be something else than the public functions say. It is where a frame is just being made.
const MOST_MISFITS: usize = 16;

macro_rules! functions {
    ($($field:ident $name:ident ($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[derive(Debug, Clone, Copy)]
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            fn find() -> Option<Functions> {
                $(
                    let name = concat!(stringify!($name), "\0");
                    let $field = symbol(CStr::from_bytes_with_nul(name.as_bytes()).ok()?)?;
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
    is_locked PyGILState_Check() -> c_int;
    lock PyGILState_Ensure() -> c_int;
    unlock PyGILState_Release(c_int);
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

/// What the process defines under that name.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a terminated name.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// An address in the module that is Python's interpreter.
pub fn interpreter() -> Option<usize> {
    symbol(c"PyFrame_GetBack").map(|found| found as usize)
}

/// The function that runs frames.
pub fn evaluator() -> Option<usize> {
    symbol(c"_PyEval_EvalFrameDefault").map(|found| found as usize)
}

/// How a version of CPython keeps the frames of a thread: how far from where things begin.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// In the state of a thread: its innermost frame, or where that is written.
    thread: usize,
    /// There, if it is the latter.
    holder: Option<usize>,
    code: usize,
    instruction: usize,
    outer: usize,
    /// Says that a frame was called from C.
    entry: Entry,
}

#[derive(Debug, Clone, Copy)]
enum Entry {
    /// A frame that is, by a byte that is not 0.
    Marked(usize),
    /// Before it stands one that is none of the program's, by a byte of this value.
    Before(usize, u8),
}

impl Layout {
    fn of(version: u64) -> Option<Layout> {
        let frame = Layout {
            thread: 56,
            holder: None,
            code: 0,
            instruction: 56,
            outer: 8,
            entry: Entry::Before(70, 3),
        };
        match version >> 16 {
            0x030b => {
                Some(Layout { holder: Some(8), code: 32, outer: 48, entry: Entry::Marked(68), ..frame })
            }
            0x030c => Some(Layout { holder: Some(0), ..frame }),
            0x030d => Some(Layout { thread: 72, ..frame }),
            _ => None,
        }
    }

    fn in_process() -> Option<Layout> {
        /// Of released versions, the last byte of the number.
        const FINAL: u64 = 0xf0;
        let version = symbol(c"Py_Version")?.cast::<u64>();
        // SAFETY: a constant of CPython's, of this type since there is one.
        let version = unsafe { version.read() };
        Layout::of(version).filter(|_| version & 0xf0 == FINAL)
    }
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
#[derive(Debug)]
struct Told {
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

/// What one thread knows of Python.
#[derive(Debug)]
pub struct Python {
    functions: Functions,
    layout: Option<Layout>,
    misfits: usize,
    /// The stacks of return addresses that go through the interpreter, innermost first, by their sum.
    natives: FastMap<u64, Box<[usize]>>,
    /// Sites, by the stack and the sum of Python's frames.
    sites: FastMap<(u64, u64), u64>,
    /// The code objects that are kept.
    codes: FastMap<usize, ()>,
    modules: FastMap<u64, Module>,
    walked: Vec<Seen>,
}

impl Python {
    pub fn find() -> Option<Python> {
        Some(Python {
            functions: Functions::find()?,
            layout: Layout::in_process(),
            misfits: 0,
            natives: FastMap::default(),
            sites: FastMap::default(),
            codes: FastMap::default(),
            modules: FastMap::default(),
            walked: Vec::new(),
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
        let key = self.walk()?;
        self.sites.get(&(native, key)).copied()
    }

    pub fn remember(&mut self, native: u64, frames: &Frames, site: u64) {
        let Some(key) = frames.key else { return };
        if self.sites.len() >= MOST_STACKS {
            self.sites = FastMap::default();
        }
        self.sites.insert((native, key), site);
    }

    /// The state of this thread; `None` where Python knows nothing of it, or is no more.
    fn thread(&self) -> Option<*const c_void> {
        // SAFETY: asks for a number, at any time.
        if unsafe { (self.functions.is_initialized)() } == 0 {
            return None;
        }
        // SAFETY: needs no lock.
        let thread = unsafe { (self.functions.this_thread)() };
        (!thread.is_null()).then_some(thread)
    }

    /// Reads this thread's frames into `walked`. Gives their sum.
    fn walk(&mut self) -> Option<u64> {
        let (layout, thread) = (self.layout?, self.thread()?);
        self.walked.clear();
        // SAFETY: (of all reads here) the version of CPython that has this layout says that a pointer, or a byte, is there:
        // in the state of this very thread, which lives as long as it does, and in frames that wait for this call to return.
        let pointer =
            |base: usize, offset: usize| unsafe { (base.wrapping_add(offset) as *const usize).read() };
        // SAFETY: as above.
        let byte = |base: usize, offset: usize| unsafe { (base.wrapping_add(offset) as *const u8).read() };
        let mut frame = pointer(thread as usize, layout.thread);
        if let (Some(offset), true) = (layout.holder, frame != 0) {
            frame = pointer(frame, offset);
        }
        let mut sum = 0;
        while frame != 0 && self.walked.len() < DEEPEST {
            let outer = pointer(frame, layout.outer);
            match layout.entry {
                Entry::Before(offset, value) if byte(frame, offset) == value => {
                    if let Some(last) = self.walked.last_mut() {
                        last.enters = true;
                    }
                }
                entry => {
                    let enters = matches!(entry, Entry::Marked(offset) if byte(frame, offset) != 0);
                    let code = pointer(frame, layout.code);
                    let instruction = pointer(frame, layout.instruction);
                    sum = add(add(sum, code), instruction);
                    self.walked.push(Seen { code, instruction, enters });
                }
            }
            frame = outer;
        }
        Some(sum)
    }

    /// Asks Python. Nothing where it cannot be asked.
    #[cold]
    pub fn ask(&mut self) -> Frames {
        let key = self.walk();
        if self.thread().is_none() {
            return Frames::default();
        }
        let Some((told, all_kept)) = self.told() else { return Frames::default() };
        let mut frames = Frames::default();
        for Told { file, function, line, .. } in &told {
            let module = Module { path: format!("{PYTHON}{file}:{function}"), build_id: Box::default() };
            frames.frames.push(Frame { module: module.key(), offset: *line });
            self.modules.entry(module.key()).or_insert(module);
        }
        if key.is_some() {
            let fits = self.walked.iter().map(|seen| seen.code).eq(told.iter().map(|told| told.code));
            if fits {
                frames.key = key.filter(|_| all_kept);
                frames.runs = runs(&self.walked);
            } else {
                self.misfits += 1;
                if self.misfits > MOST_MISFITS {
                    self.layout = None;
                }
            }
        }
        frames
    }

    /// This thread's frames, innermost first, and whether all their code is kept. `None` while the interpreter ends: who asks
    /// for its lock then may never come back.
    fn told(&mut self) -> Option<(Vec<Told>, bool)> {
        let python = self.functions;
        if is_ending() {
            return None;
        }
        let _locked = Locked::take(python);
        let mut told = Vec::new();
        let mut all_kept = true;
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
            told.push(Told {
                code: code as usize,
                file: absolute(file.unwrap_or_default()),
                function: function.unwrap_or_default(),
                line: line.max(0) as u64,
            });
            let known = self.codes.contains_key(&(code as usize));
            let keep = !known && self.codes.len() < MOST_CODES && self.layout.is_some();
            if keep {
                self.codes.insert(code as usize, ());
            } else {
                // SAFETY: ours to let go of.
                unsafe { (python.release)(code) };
            }
            all_kept &= known || keep;
            // SAFETY: a frame that we hold.
            let outer = unsafe { (python.outer)(frame) };
            // SAFETY: ours to let go of.
            unsafe { (python.release)(frame) };
            frame = outer;
        }
        // SAFETY: ours, or null.
        unsafe { (python.release)(frame) };
        Some((told, all_kept))
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

/// The interpreter's lock; meanwhile the program's error is put aside, and nothing is collected, since that runs code of the
/// program.
struct Locked {
    python: Functions,
    /// What to give back, where this thread did not have it.
    taken: Option<c_int>,
    collected: bool,
    error: [Object; 3],
}

impl Locked {
    fn take(python: Functions) -> Locked {
        // SAFETY: needs no lock.
        let had = unsafe { (python.is_locked)() } != 0;
        // SAFETY: this thread is one of Python's, and does not have the lock.
        let taken = (!had).then(|| unsafe { (python.lock)() });
        // SAFETY: the lock is held.
        let collected = unsafe { (python.stop_collecting)() } != 0;
        let mut error = [null_mut(); 3];
        let [a, b, c] = &mut error;
        // SAFETY: the lock is held; all three are places of ours.
        unsafe { (python.take_error)(a, b, c) };
        Locked { python, taken, collected, error }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let [a, b, c] = self.error;
        // SAFETY: what `take` took, with the lock held.
        unsafe { (self.python.put_error)(a, b, c) };
        if self.collected {
            // SAFETY: the lock is held.
            unsafe { (self.python.collect)() };
        }
        if let Some(taken) = self.taken {
            // SAFETY: what `take` took.
            unsafe { (self.python.unlock)(taken) };
        }
    }
}

/// Whether the interpreter is about to be no more.
fn is_ending() -> bool {
    let found = symbol(c"Py_IsFinalizing").or_else(|| symbol(c"_Py_IsFinalizing"));
    // SAFETY: CPython's function of either name, which takes nothing and gives a number.
    let ask = found
        .map(|found| unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(found) });
    // SAFETY: needs no lock.
    ask.is_none_or(|ask| unsafe { ask() } != 0)
}

/// How many frames each run of the interpreter has, innermost first.
fn runs(walked: &[Seen]) -> Vec<usize> {
    walked.split_inclusive(|seen| seen.enters).map(<[Seen]>::len).collect()
}

/// As the program named it, which is of no use to who reads the trace elsewhere. What is no file stays.
fn absolute(file: String) -> String {
    if file.starts_with(['/', '<']) || file.is_empty() {
        return file;
    }
    std::path::absolute(&file).map_or(file, |path| path.to_string_lossy().into_owned())
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
    fn only_versions_that_were_tried_have_a_layout() {
        for (version, known) in [(0x030a_0df0, false), (0x030b_02f0, true), (0x030c_01f0, true)] {
            assert_eq!(Layout::of(version).is_some(), known, "{version:x}");
        }
        assert!(Layout::of(0x030d_00f0).is_some() && Layout::of(0x030e_00f0).is_none());
        // There is no Python in this process.
        assert!(Layout::in_process().is_none() && Python::find().is_none() && interpreter().is_none());
    }

    #[test]
    fn files_are_named_from_the_root() {
        assert_eq!(absolute("/a/b.py".into()), "/a/b.py");
        assert_eq!(absolute("<string>".into()), "<string>");
        assert!(absolute("b.py".into()).starts_with('/'));
    }
}
