//! The OTF2 library, loaded when somebody asks for OTF2. Its functions are declared here as its documentation states them.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;

use crate::Error;

/// What Debian calls it, and what it is called where it was built from source. Interface 10 is that of OTF2 3.x.
const NAMES: [&CStr; 2] = [c"libopen-trace-format2.so.10", c"libotf2.so.10"];

/// Stands for nothing, wherever a reference is asked for.
pub const UNDEFINED: u32 = u32::MAX;

/// Numbers of the format.
pub mod number {
    pub const FILE_MODE_WRITE: u8 = 0;
    pub const SUBSTRATE_POSIX: u8 = 1;
    pub const COMPRESSION_NONE: u8 = 1;
    pub const FLUSH: u8 = 1;
    pub const FILE_EVENTS: u8 = 3;
    pub const PARADIGM_MPI: u8 = 4;
    pub const PARADIGM_CLASS_PROCESS: u8 = 0;
    pub const GROUP_PROCESS: u8 = 1;
    pub const LOCATION_CPU_THREAD: u8 = 1;
    pub const GROUP_COMM_LOCATIONS: u8 = 4;
    pub const GROUP_COMM_GROUP: u8 = 5;
    pub const GROUP_COMM_SELF: u8 = 6;
}

#[repr(C)]
struct FlushCallbacks {
    before: extern "C" fn(*mut c_void, u8, u64, *mut c_void, bool) -> u8,
    after: Option<extern "C" fn(*mut c_void, u8, u64) -> u64>,
}

extern "C" fn flush(_: *mut c_void, _: u8, _: u64, _: *mut c_void, _: bool) -> u8 {
    number::FLUSH
}

#[repr(C)]
struct MemoryCallbacks {
    allocate: unsafe extern "C" fn(*mut c_void, u8, u64, *mut *mut c_void, u64) -> *mut c_void,
    free_all: unsafe extern "C" fn(*mut c_void, u8, u64, *mut *mut c_void, bool),
}

/// By itself the library holds 128 MiB of each thread's events before it writes any. With so many chunks it writes sooner.
const MOST_CHUNKS: usize = 2;

/// The chunks of one buffer.
type Chunks = Vec<*mut c_void>;

/// # Safety
///
/// `kept` is null or points to a place for a pointer that is null or was put there by this function.
unsafe extern "C" fn allocate(
    _: *mut c_void,
    kind: u8,
    _: u64,
    kept: *mut *mut c_void,
    bytes: u64,
) -> *mut c_void {
    let Some(kept) = NonNull::new(kept) else { return NONE };
    // SAFETY: the caller says that it can be read.
    let mut chunks = unsafe { kept.read() }.cast::<Chunks>();
    if chunks.is_null() {
        chunks = Box::into_raw(Box::default());
        // SAFETY: the caller says that it can be written.
        unsafe { kept.write(chunks.cast()) };
    }
    // SAFETY: it was made by this function and nobody else has it; the library calls for one buffer at a time.
    let chunks = unsafe { &mut *chunks };
    let (Ok(bytes), true) =
        (usize::try_from(bytes), kind != number::FILE_EVENTS || chunks.len() < MOST_CHUNKS)
    else {
        return NONE;
    };
    // SAFETY: any size may be asked for.
    let chunk = unsafe { libc::malloc(bytes) };
    if !chunk.is_null() {
        chunks.push(chunk);
    }
    chunk
}

/// # Safety
///
/// As of [`allocate`].
unsafe extern "C" fn free_all(_: *mut c_void, _: u8, _: u64, kept: *mut *mut c_void, last: bool) {
    let Some(kept) = NonNull::new(kept) else { return };
    // SAFETY: the caller says that it can be read.
    let chunks = unsafe { kept.read() }.cast::<Chunks>();
    if chunks.is_null() {
        return;
    }
    // SAFETY: `allocate` made it with a box, and nobody else has it.
    let mut owned = unsafe { Box::from_raw(chunks) };
    for chunk in owned.drain(..) {
        // SAFETY: it came from malloc and is freed once; the library does not use it after this call.
        unsafe { libc::free(chunk) };
    }
    let left = if last { std::ptr::null_mut() } else { Box::into_raw(owned) };
    // SAFETY: the caller says that it can be written.
    unsafe { kept.write(left.cast()) };
}

/// An object of the library.
type Object = *mut c_void;
/// No attributes.
const NONE: Object = std::ptr::null_mut();

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($arg:ty),*) -> $result:ty;)*) => {
        struct Functions { $($name: unsafe extern "C" fn($($arg),*) -> $result,)* }

        impl Functions {
            fn find(library: &Loaded) -> Result<Functions, Error> {
                Ok(Functions { $($name: {
                    let symbol = library.symbol($symbol)?;
                    // SAFETY: the library exports this function with these arguments since interface 10, which its name
                    // states; a pointer to a function is as wide as one to data wherever dlsym exists.
                    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) -> $result>(symbol) }
                },)* })
            }
        }
    };
}

functions! {
    open = c"OTF2_Archive_Open" (*const c_char, *const c_char, u8, u64, u64, u8, u8) -> Object;
    close = c"OTF2_Archive_Close" (Object) -> c_int;
    set_flush = c"OTF2_Archive_SetFlushCallbacks" (Object, *const FlushCallbacks, *mut c_void) -> c_int;
    set_memory = c"OTF2_Archive_SetMemoryCallbacks" (Object, *const MemoryCallbacks, *mut c_void) -> c_int;
    set_serial = c"OTF2_Archive_SetSerialCollectiveCallbacks" (Object) -> c_int;
    set_creator = c"OTF2_Archive_SetCreator" (Object, *const c_char) -> c_int;
    set_description = c"OTF2_Archive_SetDescription" (Object, *const c_char) -> c_int;
    open_events = c"OTF2_Archive_OpenEvtFiles" (Object) -> c_int;
    close_events = c"OTF2_Archive_CloseEvtFiles" (Object) -> c_int;
    event_writer = c"OTF2_Archive_GetEvtWriter" (Object, u64) -> Object;
    close_event_writer = c"OTF2_Archive_CloseEvtWriter" (Object, Object) -> c_int;
    events_written = c"OTF2_EvtWriter_GetNumberOfEvents" (Object, *mut u64) -> c_int;
    open_definitions = c"OTF2_Archive_OpenDefFiles" (Object) -> c_int;
    close_definitions = c"OTF2_Archive_CloseDefFiles" (Object) -> c_int;
    local_writer = c"OTF2_Archive_GetDefWriter" (Object, u64) -> Object;
    close_local_writer = c"OTF2_Archive_CloseDefWriter" (Object, Object) -> c_int;
    global_writer = c"OTF2_Archive_GetGlobalDefWriter" (Object) -> Object;
    close_global_writer = c"OTF2_Archive_CloseGlobalDefWriter" (Object, Object) -> c_int;
    clock = c"OTF2_GlobalDefWriter_WriteClockProperties" (Object, u64, u64, u64, u64) -> c_int;
    string = c"OTF2_GlobalDefWriter_WriteString" (Object, u32, *const c_char) -> c_int;
    paradigm = c"OTF2_GlobalDefWriter_WriteParadigm" (Object, u8, u32, u8) -> c_int;
    tree_node = c"OTF2_GlobalDefWriter_WriteSystemTreeNode" (Object, u32, u32, u32, u32) -> c_int;
    location_group = c"OTF2_GlobalDefWriter_WriteLocationGroup" (Object, u32, u32, u8, u32, u32) -> c_int;
    location = c"OTF2_GlobalDefWriter_WriteLocation" (Object, u64, u32, u8, u64, u32) -> c_int;
    region = c"OTF2_GlobalDefWriter_WriteRegion" (Object, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> c_int;
    group = c"OTF2_GlobalDefWriter_WriteGroup" (Object, u32, u32, u8, u8, u32, u32, *const u64) -> c_int;
    comm = c"OTF2_GlobalDefWriter_WriteComm" (Object, u32, u32, u32, u32, u32) -> c_int;
    inter_comm = c"OTF2_GlobalDefWriter_WriteInterComm" (Object, u32, u32, u32, u32, u32, u32) -> c_int;
    enter = c"OTF2_EvtWriter_Enter" (Object, Object, u64, u32) -> c_int;
    leave = c"OTF2_EvtWriter_Leave" (Object, Object, u64, u32) -> c_int;
    send = c"OTF2_EvtWriter_MpiSend" (Object, Object, u64, u32, u32, u32, u64) -> c_int;
    isend = c"OTF2_EvtWriter_MpiIsend" (Object, Object, u64, u32, u32, u32, u64, u64) -> c_int;
    isend_complete = c"OTF2_EvtWriter_MpiIsendComplete" (Object, Object, u64, u64) -> c_int;
    irecv_request = c"OTF2_EvtWriter_MpiIrecvRequest" (Object, Object, u64, u64) -> c_int;
    recv = c"OTF2_EvtWriter_MpiRecv" (Object, Object, u64, u32, u32, u32, u64) -> c_int;
    irecv = c"OTF2_EvtWriter_MpiIrecv" (Object, Object, u64, u32, u32, u32, u64, u64) -> c_int;
    tested = c"OTF2_EvtWriter_MpiRequestTest" (Object, Object, u64, u64) -> c_int;
    cancelled = c"OTF2_EvtWriter_MpiRequestCancelled" (Object, Object, u64, u64) -> c_int;
    collective_begin = c"OTF2_EvtWriter_MpiCollectiveBegin" (Object, Object, u64) -> c_int;
    collective_end = c"OTF2_EvtWriter_MpiCollectiveEnd" (Object, Object, u64, u8, u32, u32, u64, u64) -> c_int;
    collective_request = c"OTF2_EvtWriter_NonBlockingCollectiveRequest" (Object, Object, u64, u64) -> c_int;
    collective_complete = c"OTF2_EvtWriter_NonBlockingCollectiveComplete"
        (Object, Object, u64, u8, u32, u32, u64, u64, u64) -> c_int;
    error_description = c"OTF2_Error_GetDescription" (c_int) -> *const c_char;
}

/// The shared object. It stays loaded: it may have registered what runs at exit.
struct Loaded(NonNull<c_void>);

impl Loaded {
    fn find() -> Result<Loaded, Error> {
        let open = |name: &CStr| {
            // SAFETY: the name ends with a zero byte; what the library's constructors do is that of a library that the
            // user has installed.
            NonNull::new(unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) })
        };
        NAMES.into_iter().find_map(open).map(Loaded).ok_or_else(|| {
            let names = NAMES.map(|name| name.to_string_lossy()).join(" and ");
            Error::Refused {
                what: format!("the OTF2 library is not installed (looked for {names})"),
                help: "install it (Debian, Ubuntu: `apt install libopen-trace-format2-10`), or put its folder into \
                       LD_LIBRARY_PATH"
                    .into(),
            }
        })
    }

    fn symbol(&self, name: &CStr) -> Result<*mut c_void, Error> {
        // SAFETY: the handle is that of a loaded library, the name ends with a zero byte.
        let found = unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) };
        (!found.is_null()).then_some(found).ok_or_else(|| Error::Refused {
            what: format!("the OTF2 library has no {}", name.to_string_lossy()),
            help: "version 3.0 or later is needed (Debian, Ubuntu: libopen-trace-format2-10)".into(),
        })
    }
}

/// What a failed function says.
fn failed(what: &str, why: &str) -> Error {
    Error::Refused {
        what: format!("the OTF2 library failed in {what}: {why}"),
        help: "is the disk full, or are there limits on open files?".into(),
    }
}

/// For C: without bytes that end it.
pub fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// An archive that is being written.
pub struct Archive {
    functions: Functions,
    archive: Object,
}

/// Where the events of a thread go.
#[derive(Debug, Clone, Copy)]
pub struct Events(Object);

/// Where definitions go.
#[derive(Debug, Clone, Copy)]
pub struct Definitions(Object);

/// One event.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    Enter { region: u32 },
    Leave { region: u32 },
    Send { to: u32, comm: u32, tag: u32, bytes: u64, request: Option<u64> },
    SendDone { request: u64 },
    ReceivePosted { request: u64 },
    Received { from: u32, comm: u32, tag: u32, bytes: u64, request: Option<u64> },
    Tested { request: u64 },
    Cancelled { request: u64 },
    Collective { request: Option<u64> },
    CollectiveDone { operation: u8, comm: u32, root: u32, sent: u64, received: u64, request: Option<u64> },
}

/// One definition. Names are numbers of strings.
#[derive(Debug, Clone, Copy)]
pub enum Definition<'a> {
    Clock { ticks_per_second: u64, offset: u64, length: u64, started: u64 },
    String { number: u32, text: &'a str },
    Paradigm { paradigm: u8, name: u32, class: u8 },
    Node { number: u32, name: u32, class: u32, parent: u32 },
    Process { number: u32, name: u32, node: u32 },
    Location { number: u64, name: u32, events: u64, process: u32 },
    Region { number: u32, name: u32, about: u32, role: u8, file: u32, line: u32 },
    Group { number: u32, name: u32, kind: u8, members: &'a [u64] },
    Comm { number: u32, name: u32, group: u32 },
    InterComm { number: u32, name: u32, groups: (u32, u32) },
}

/// The functions of the library.
pub struct Library(Functions);

impl Library {
    pub fn load() -> Result<Library, Error> {
        Ok(Library(Functions::find(&Loaded::find()?)?))
    }
}

impl Archive {
    /// `chunk`: bytes that are held for each thread's events before they are written.
    pub fn create(library: Library, folder: &Path, chunk: u64, about: &str) -> Result<Archive, Error> {
        let Library(functions) = library;
        let path = c_string(&folder.to_string_lossy());
        let (write, posix, plain) =
            (number::FILE_MODE_WRITE, number::SUBSTRATE_POSIX, number::COMPRESSION_NONE);
        // SAFETY: both strings end with a zero byte and outlive the call; the sizes are within the library's bounds.
        let archive = unsafe {
            (functions.open)(path.as_ptr(), c"traces".as_ptr(), write, chunk, 4 << 20, posix, plain)
        };
        if archive.is_null() {
            return Err(failed("OTF2_Archive_Open", &folder.to_string_lossy()));
        }
        let archive = Archive { functions, archive };
        static CALLBACKS: FlushCallbacks = FlushCallbacks { before: flush, after: None };
        let (creator, about) = (c_string(&format!("Refrain {}", env!("CARGO_PKG_VERSION"))), c_string(about));
        // SAFETY: the archive is open; the callbacks live as long as the program and take what they are given.
        let done =
            unsafe { (archive.functions.set_flush)(archive.archive, &CALLBACKS, std::ptr::null_mut()) };
        archive.check("OTF2_Archive_SetFlushCallbacks", done)?;
        static MEMORY: MemoryCallbacks = MemoryCallbacks { allocate, free_all };
        // SAFETY: the archive is open and has no buffers yet; the callbacks live as long as the program.
        let done = unsafe { (archive.functions.set_memory)(archive.archive, &MEMORY, std::ptr::null_mut()) };
        archive.check("OTF2_Archive_SetMemoryCallbacks", done)?;
        // SAFETY: the archive is open.
        let done = unsafe { (archive.functions.set_serial)(archive.archive) };
        archive.check("OTF2_Archive_SetSerialCollectiveCallbacks", done)?;
        // SAFETY: the archive is open, the text ends with a zero byte and is copied.
        let done = unsafe { (archive.functions.set_creator)(archive.archive, creator.as_ptr()) };
        archive.check("OTF2_Archive_SetCreator", done)?;
        // SAFETY: the same.
        let done = unsafe { (archive.functions.set_description)(archive.archive, about.as_ptr()) };
        archive.check("OTF2_Archive_SetDescription", done)?;
        // SAFETY: the archive is open and has its callbacks.
        let done = unsafe { (archive.functions.open_events)(archive.archive) };
        archive.check("OTF2_Archive_OpenEvtFiles", done)?;
        Ok(archive)
    }

    fn check(&self, what: &str, code: c_int) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: any number may be asked for; what comes back is a text that stays, or nothing.
        let text = unsafe { (self.functions.error_description)(code) };
        if text.is_null() {
            return Err(failed(what, &format!("error {code}")));
        }
        // SAFETY: it is not null, ends with a zero byte and is never freed.
        Err(failed(what, &unsafe { CStr::from_ptr(text) }.to_string_lossy()))
    }

    pub fn events(&self, location: u64) -> Result<Events, Error> {
        // SAFETY: the archive is open for events.
        let writer = unsafe { (self.functions.event_writer)(self.archive, location) };
        if writer.is_null() {
            Err(failed("OTF2_Archive_GetEvtWriter", "no writer"))
        } else {
            Ok(Events(writer))
        }
    }

    /// How many events were written. The writer is not used after this.
    pub fn end_events(&self, events: Events) -> Result<u64, Error> {
        let mut count = 0;
        // SAFETY: the writer is open; the number is ours.
        let done = unsafe { (self.functions.events_written)(events.0, &mut count) };
        self.check("OTF2_EvtWriter_GetNumberOfEvents", done)?;
        // SAFETY: the writer is one of this archive, and callers give it up here.
        let done = unsafe { (self.functions.close_event_writer)(self.archive, events.0) };
        self.check("OTF2_Archive_CloseEvtWriter", done)?;
        Ok(count)
    }

    pub fn write(&self, events: Events, time: u64, event: Event) -> Result<(), Error> {
        let (f, w) = (&self.functions, events.0);
        // SAFETY: the writer is open; there are no attributes; all else are numbers.
        let done = unsafe {
            match event {
                Event::Enter { region } => (f.enter)(w, NONE, time, region),
                Event::Leave { region } => (f.leave)(w, NONE, time, region),
                Event::Send { to, comm, tag, bytes, request: None } => {
                    (f.send)(w, NONE, time, to, comm, tag, bytes)
                }
                Event::Send { to, comm, tag, bytes, request: Some(request) } => {
                    (f.isend)(w, NONE, time, to, comm, tag, bytes, request)
                }
                Event::SendDone { request } => (f.isend_complete)(w, NONE, time, request),
                Event::ReceivePosted { request } => (f.irecv_request)(w, NONE, time, request),
                Event::Received { from, comm, tag, bytes, request: None } => {
                    (f.recv)(w, NONE, time, from, comm, tag, bytes)
                }
                Event::Received { from, comm, tag, bytes, request: Some(request) } => {
                    (f.irecv)(w, NONE, time, from, comm, tag, bytes, request)
                }
                Event::Tested { request } => (f.tested)(w, NONE, time, request),
                Event::Cancelled { request } => (f.cancelled)(w, NONE, time, request),
                Event::Collective { request: None } => (f.collective_begin)(w, NONE, time),
                Event::Collective { request: Some(request) } => {
                    (f.collective_request)(w, NONE, time, request)
                }
                Event::CollectiveDone { operation, comm, root, sent, received, request: None } => {
                    (f.collective_end)(w, NONE, time, operation, comm, root, sent, received)
                }
                Event::CollectiveDone { operation, comm, root, sent, received, request: Some(request) } => {
                    (f.collective_complete)(w, NONE, time, operation, comm, root, sent, received, request)
                }
            }
        };
        self.check("writing an event", done)
    }

    /// Definitions that all locations share, when all events are written. Each location gets an empty file of its own ones.
    pub fn definitions(&self, locations: impl IntoIterator<Item = u64>) -> Result<Definitions, Error> {
        let f = &self.functions;
        // SAFETY: the archive is open, and no writer of events is.
        let done = unsafe { (f.close_events)(self.archive) };
        self.check("OTF2_Archive_CloseEvtFiles", done)?;
        // SAFETY: the archive is open.
        let done = unsafe { (f.open_definitions)(self.archive) };
        self.check("OTF2_Archive_OpenDefFiles", done)?;
        for location in locations {
            // SAFETY: the archive is open for local definitions.
            let writer = unsafe { (f.local_writer)(self.archive, location) };
            if writer.is_null() {
                return Err(failed("OTF2_Archive_GetDefWriter", "no writer"));
            }
            // SAFETY: the writer is that of this archive, and not used again.
            let done = unsafe { (f.close_local_writer)(self.archive, writer) };
            self.check("OTF2_Archive_CloseDefWriter", done)?;
        }
        // SAFETY: the archive is open, and no writer of local definitions is.
        let done = unsafe { (f.close_definitions)(self.archive) };
        self.check("OTF2_Archive_CloseDefFiles", done)?;
        // SAFETY: the archive is open.
        let writer = unsafe { (f.global_writer)(self.archive) };
        if writer.is_null() {
            return Err(failed("OTF2_Archive_GetGlobalDefWriter", "no writer"));
        }
        Ok(Definitions(writer))
    }

    pub fn define(&self, definitions: Definitions, definition: Definition) -> Result<(), Error> {
        let (f, w, mpi) = (&self.functions, definitions.0, number::PARADIGM_MPI);
        let text = if let Definition::String { text, .. } = definition {
            c_string(text)
        } else {
            CString::default()
        };
        // SAFETY: the writer is open; texts end with a zero byte, lists are as long as is said, and both are copied.
        let done = unsafe {
            match definition {
                Definition::Clock { ticks_per_second, offset, length, started } => {
                    (f.clock)(w, ticks_per_second, offset, length, started)
                }
                Definition::String { number, .. } => (f.string)(w, number, text.as_ptr()),
                Definition::Paradigm { paradigm, name, class } => (f.paradigm)(w, paradigm, name, class),
                Definition::Node { number, name, class, parent } => {
                    (f.tree_node)(w, number, name, class, parent)
                }
                Definition::Process { number, name, node } => {
                    (f.location_group)(w, number, name, number::GROUP_PROCESS, node, UNDEFINED)
                }
                Definition::Location { number, name, events, process } => {
                    (f.location)(w, number, name, number::LOCATION_CPU_THREAD, events, process)
                }
                Definition::Region { number, name, about, role, file, line } => {
                    (f.region)(w, number, name, name, about, role, mpi, 0, file, line, line)
                }
                Definition::Group { number, name, kind, members } => {
                    let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
                    (f.group)(w, number, name, kind, mpi, 0, count, members.as_ptr())
                }
                Definition::Comm { number, name, group } => (f.comm)(w, number, name, group, UNDEFINED, 0),
                Definition::InterComm { number, name, groups } => {
                    (f.inter_comm)(w, number, name, groups.0, groups.1, UNDEFINED, 0)
                }
            }
        };
        self.check("writing a definition", done)
    }

    pub fn finish(mut self, definitions: Definitions) -> Result<(), Error> {
        // SAFETY: the writer is that of this archive, and not used again.
        let done = unsafe { (self.functions.close_global_writer)(self.archive, definitions.0) };
        self.check("OTF2_Archive_CloseGlobalDefWriter", done)?;
        let archive = std::mem::replace(&mut self.archive, NONE);
        // SAFETY: the archive is open, and is not used again: nothing is left to close.
        let done = unsafe { (self.functions.close)(archive) };
        self.check("OTF2_Archive_Close", done)
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        if !self.archive.is_null() {
            // SAFETY: the archive is open; its writers, if any are, are closed with it and not used after it.
            unsafe { (self.functions.close)(self.archive) };
        }
    }
}
