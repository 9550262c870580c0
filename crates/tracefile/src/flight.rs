//! The call in flight: what the header of a part says of the call that its thread has entered and not left.
//!
//! The second page of the header has words that the thread stores before each call, as they lie in registers: nobody
//! translates them while the program runs, and after a `kill -9` nobody could ask it. So the page also has names for the
//! handles and numbers of the process's MPI library that stand for something, and most of the last two pages has the
//! modules of the process, one a line. Names and modules are in the first part of a process only.

use refrain_fold::bundle::sites::Module;

use crate::part::{HEADER, PAGE, Word};

/// The page's first word, among the words of the header.
pub const FIRST: usize = PAGE / 8;
/// The function whose arguments follow: its position in the call table plus one. 0: they mean nothing.
pub const FUNCTION: usize = FIRST;
/// When it was entered, in ticks; 0 where no time is kept.
pub const STARTED: usize = FIRST + 1;
/// Where it returns to.
pub const CALLER: usize = FIRST + 2;
/// Its arguments.
pub const ARGS: usize = FIRST + 3;
pub const MOST_ARGS: usize = 13;
/// How many requests it was given to complete, and the first of them.
pub const WAITED: usize = ARGS + MOST_ARGS;
pub const WAITED_FIRST: usize = WAITED + 1;
pub const MOST_WAITED: usize = 16;
/// Bytes of each where the program keeps them.
pub const WAITED_SIZE: usize = WAITED_FIRST + MOST_WAITED;
/// How many calls of this thread have made a request so far, the handles of the last of these, in a ring, and where the
/// program had them put.
pub const MADE: usize = WAITED_SIZE + 1;
pub const MADE_FIRST: usize = MADE + 1;
pub const MADE_AT: usize = MADE_FIRST + MOST_MADE;
pub const MOST_MADE: usize = 64;
/// An error that the library is dealing with: 1 if there is one, its code, the number of its class among our constants,
/// and when the call was entered that it came up in.
pub const ERROR: usize = MADE_AT + MOST_MADE;
pub const ERROR_CODE: usize = ERROR + 1;
pub const ERROR_CLASS: usize = ERROR + 2;
pub const ERROR_STARTED: usize = ERROR + 3;
/// Where a fault came up, of whichever thread; in the first part.
pub const FAULT_PLACE: usize = ERROR + 4;
/// Where the last fault of this thread came up.
pub const OWN_FAULT: usize = ERROR + 5;
/// When the last call whose arguments are known was left, in ticks.
pub const LEFT: usize = OWN_FAULT + 1;
/// What the library says of it, in the last words of the header, up to a zero.
pub const ERROR_TEXT: usize = HEADER / 8 - MOST_TEXT / 8;
pub const MOST_TEXT: usize = 1024;
/// Names: what a word stands for, in pairs of words. First those of constants, then those of objects.
pub const NAMES: usize = FIRST + 192;
/// Pairs for constants, which are written once, and for objects, which come and go.
pub const CONSTANTS: usize = 128;
pub const OBJECTS: usize = 64;
/// An object is at one of so many places.
const TRIES: usize = 4;
/// The first byte of the modules.
const MODULES: usize = 2 * PAGE + 512;

const _: () = assert!(LEFT < NAMES && (NAMES + 2 * (CONSTANTS + OBJECTS)) * 8 <= MODULES);

/// Where in the words of a header the name of an object may stand: pairs, the best place first.
pub fn places(class: u8, handle: u64) -> impl Iterator<Item = usize> {
    let hash = (handle ^ u64::from(class) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (0..TRIES).map(move |n| NAMES + 2 * (CONSTANTS + (hash as usize + n) % OBJECTS))
}

/// What the second word of a pair says of the first: a constant of MPI by its number, or an object by class and code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Constant(u16),
    /// The id is that of the trace.
    Object {
        class: u8,
        id: u32,
    },
}

impl Name {
    /// Never 0, which stands for no name.
    pub fn word(self) -> u64 {
        match self {
            Name::Constant(id) => 1 << 48 | u64::from(id),
            Name::Object { class, id } => 2 << 48 | u64::from(class) << 40 | u64::from(id),
        }
    }

    fn from_word(word: u64) -> Option<Name> {
        match word >> 48 {
            1 => Some(Name::Constant(word as u16)),
            2 => Some(Name::Object { class: (word >> 40) as u8, id: word as u32 }),
            _ => None,
        }
    }
}

/// A module of the process, and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    /// Offsets are from here.
    pub base: u64,
    pub start: u64,
    pub end: u64,
    pub module: Module,
}

/// Writes the names of constants and the modules into the header of a process's first part. What there is no room for
/// is left out.
pub fn introduce(header: &mut [u8], constants: &[(u64, u16)], modules: &[Mapped]) {
    let Some(header) = header.first_chunk_mut::<HEADER>() else { return };
    for (n, &(value, id)) in constants.iter().take(CONSTANTS).enumerate() {
        let pair = &mut header[(NAMES + 2 * n) * 8..][..16];
        pair[..8].copy_from_slice(&value.to_le_bytes());
        pair[8..].copy_from_slice(&Name::Constant(id).word().to_le_bytes());
    }
    let mut at = MODULES;
    for Mapped { base, start, end, module } in modules {
        let id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let line = format!("{base:x} {start:x} {end:x} {id} {}\n", module.path);
        if !module.path.contains('\n')
            && let Some(place) = header[at..ERROR_TEXT * 8].get_mut(..line.len())
        {
            place.copy_from_slice(line.as_bytes());
            at += line.len();
        }
    }
}

/// What a thread was doing when its part was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doing {
    /// The function whose arguments are known: its position in the call table.
    pub function: Option<usize>,
    pub started: u64,
    pub left: u64,
    pub caller: u64,
    pub args: Vec<u64>,
    /// The requests that it completes, the first of them; and how many there are.
    pub waited: Vec<u64>,
    pub waits_for: u64,
    /// Bytes of each.
    pub waited_size: u64,
    /// The handles that the last calls which made a request have returned, the last first, and where the program had them put.
    pub made: Vec<(u64, u64)>,
    pub error: Option<MpiError>,
    /// Where the process ran into a fault; 0: nowhere.
    pub fault_place: u64,
    /// Where this thread did.
    pub own_fault: u64,
    pub names: Vec<(u64, Name)>,
    pub modules: Vec<Mapped>,
}

/// An error of MPI, as the library told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiError {
    pub code: i32,
    /// The number of the constant that its class is; 0 where it is not known.
    pub class: u16,
    pub text: String,
}

fn terminated(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// So often a header is read until it stands still.
const READ: u32 = 20;

/// The header of a part whose thread may be making calls. A thread stores 0 in [`FUNCTION`], then the rest, then the function;
/// so what was read is of one call if it has a function and is the same when it is read again. A thread that does not
/// say its arguments, or is too fast, is left without.
pub(crate) fn steady<E>(mut read: impl FnMut() -> Result<[u8; HEADER], E>) -> Result<[u8; HEADER], E> {
    let call = |header: &[u8; HEADER]| -> ([u8; 8], Vec<u8>) {
        (word_of(header, Word::Inside as usize), header[FUNCTION * 8..MADE * 8].to_vec())
    };
    let is_between = |header: &[u8; HEADER]| {
        word_of(header, Word::Inside as usize) != [0; 8] && word_of(header, FUNCTION) == [0; 8]
    };
    let mut header = read()?;
    for _ in 0..READ {
        let again = read()?;
        let same = call(&again) == call(&header);
        header = again;
        if same && !is_between(&header) {
            return Ok(header);
        }
    }
    header[FUNCTION * 8..][..8].fill(0);
    Ok(header)
}

fn word_of(header: &[u8; HEADER], at: usize) -> [u8; 8] {
    header[at * 8..].first_chunk().copied().unwrap_or_default()
}

impl Doing {
    pub(crate) fn read(header: &[u8; HEADER]) -> Doing {
        let words = header.as_chunks::<8>().0;
        let word = |at: usize| words.get(at).map_or(0, |word| u64::from_le_bytes(*word));
        let all = |first: usize, count: usize| (first..first + count).map(word).collect::<Vec<u64>>();
        let waits_for = word(WAITED);
        let made = word(MADE);
        let last = |n: u64| {
            let at = ((made - 1 - n) % MOST_MADE as u64) as usize;
            (word(MADE_FIRST + at), word(MADE_AT + at))
        };
        let pair = |n: usize| Some((word(NAMES + 2 * n), Name::from_word(word(NAMES + 2 * n + 1))?));
        let text = String::from_utf8_lossy(&header[MODULES..ERROR_TEXT * 8]);
        Doing {
            function: word(FUNCTION).checked_sub(1).and_then(|at| usize::try_from(at).ok()),
            started: word(STARTED),
            left: word(LEFT),
            caller: word(CALLER),
            args: all(ARGS, MOST_ARGS),
            waited: all(WAITED_FIRST, waits_for.min(MOST_WAITED as u64) as usize),
            waits_for,
            waited_size: word(WAITED_SIZE),
            made: (0..made.min(MOST_MADE as u64)).map(last).collect(),
            // One that a handler has jumped away from is of another call.
            error: (word(ERROR) != 0 && word(ERROR_STARTED) == word(STARTED)).then(|| MpiError {
                code: word(ERROR_CODE) as i32,
                class: u16::try_from(word(ERROR_CLASS)).unwrap_or(0),
                text: terminated(&header[ERROR_TEXT * 8..]),
            }),
            fault_place: word(FAULT_PLACE),
            own_fault: word(OWN_FAULT),
            names: (0..CONSTANTS + OBJECTS).filter_map(pair).collect(),
            modules: text.trim_end_matches('\0').lines().filter_map(mapped).collect(),
        }
    }

    /// The module that an address lies in, and its offset there.
    pub fn place(&self, address: u64) -> Option<(&Module, u64)> {
        let at = self.modules.iter().find(|one| (one.start..one.end).contains(&address))?;
        Some((&at.module, address.wrapping_sub(at.base)))
    }
}

fn mapped(line: &str) -> Option<Mapped> {
    let mut words = line.splitn(5, ' ');
    let mut number = || u64::from_str_radix(words.next()?, 16).ok();
    let (base, start, end) = (number()?, number()?, number()?);
    let id = words.next()?;
    let byte = |at: usize| u8::from_str_radix(id.get(at..at + 2)?, 16).ok();
    let build_id = (0..id.len()).step_by(2).map(byte).collect::<Option<_>>()?;
    Some(Mapped { base, start, end, module: Module { path: words.next()?.to_owned(), build_id } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut header = [0; HEADER];
        let module = |path: &str| Module { path: path.into(), build_id: Box::from([1, 0xab]) };
        let modules = [
            Mapped { base: 0x1000, start: 0x1000, end: 0x3000, module: module("/a b/app") },
            Mapped {
                base: 0,
                start: 0x9000,
                end: 0x9fff,
                module: Module { build_id: Box::default(), ..module("x") },
            },
        ];
        introduce(&mut header, &[(0x4400_0000, 2), (u64::MAX, 7)], &modules);
        let mut put = |at: usize, value: u64| header[at * 8..][..8].copy_from_slice(&value.to_le_bytes());
        put(FUNCTION, 6);
        put(CALLER, 0x2005);
        put(LEFT, 99);
        put(ARGS + 1, 44);
        put(WAITED, 100);
        put(WAITED_FIRST, 8);
        put(WAITED_SIZE, 4);
        put(MADE, 66);
        put(MADE_FIRST + 1, 9);
        put(MADE_FIRST, 10);
        put(MADE_AT + 1, 0x100);
        let object = Name::Object { class: 3, id: 1 << 20 };
        let at = places(3, 0x8400_0001).next().unwrap();
        put(at, 0x8400_0001);
        put(at + 1, object.word());
        let doing = Doing::read(&header);
        assert_eq!((doing.function, doing.args[1], doing.args.len()), (Some(5), 44, MOST_ARGS));
        assert_eq!(doing.left, 99);
        assert_eq!((doing.waits_for, doing.waited.len(), doing.waited[0]), (100, MOST_WAITED, 8));
        assert_eq!(doing.waited_size, 4);
        assert_eq!((doing.made.len(), &doing.made[..3]), (MOST_MADE, &[(9, 0x100), (10, 0), (0, 0)][..]));
        let names = [(0x4400_0000, Name::Constant(2)), (u64::MAX, Name::Constant(7)), (0x8400_0001, object)];
        assert_eq!(doing.names, names);
        assert_eq!(doing.modules, modules);
        assert_eq!(doing.place(0x2005), Some((&modules[0].module, 0x1005)));
        assert_eq!(doing.place(0x9001), Some((&modules[1].module, 0x9001)));
        assert_eq!(doing.place(0x8000), None);
        assert_eq!(Doing::read(&[0; HEADER]).names, []);
        assert_eq!(Doing::read(&[0xff; HEADER]).waited.len(), MOST_WAITED);
    }

    /// A handler of errors may have jumped away from the call.
    #[test]
    fn an_error_is_told_of_the_call_that_it_came_up_in() {
        let of_call_at = |started: u64| {
            let mut header = [0; HEADER];
            let words =
                [(STARTED, started), (ERROR, 1), (ERROR_CODE, 15), (ERROR_CLASS, 3), (ERROR_STARTED, 7)];
            for (at, value) in words {
                header[at * 8..][..8].copy_from_slice(&value.to_le_bytes());
            }
            header[ERROR_TEXT * 8..][..6].copy_from_slice(b"no\0yes");
            Doing::read(&header).error
        };
        assert_eq!(of_call_at(7), Some(MpiError { code: 15, class: 3, text: "no".into() }));
        assert_eq!(of_call_at(8), None);
    }

    /// Each module has a line.
    #[test]
    fn a_module_whose_path_is_two_lines_is_left_out() {
        let mut header = [0; HEADER];
        let module = |path: &str| Mapped {
            base: 0x1000,
            start: 0x1000,
            end: 0x2000,
            module: Module { path: path.into(), build_id: Box::default() },
        };
        introduce(&mut header, &[], &[module("/odd\n0 0 9 ab /made up"), module("/app")]);
        assert_eq!(Doing::read(&header).modules, [module("/app")]);
    }

    /// What is made of headers that are read one after the other, the last of them again and again: function and argument.
    fn steady_of(read: &[[u64; 3]]) -> (Option<usize>, u64) {
        let mut next = read.iter().chain(std::iter::repeat(read.last().unwrap()));
        let header = steady(|| {
            let [inside, function, arg] = *next.next().unwrap();
            let mut header = [0; HEADER];
            for (at, value) in [(Word::Inside as usize, inside), (FUNCTION, function), (ARGS, arg)] {
                header[at * 8..][..8].copy_from_slice(&value.to_le_bytes());
            }
            Ok::<_, ()>(header)
        });
        let doing = Doing::read(&header.unwrap());
        (doing.function, doing.args[0])
    }

    #[test]
    fn what_is_read_is_of_one_call() {
        assert_eq!(steady_of(&[[6, 6, 1]]), (Some(5), 1));
        // The first was read half before and half after the words of the next call.
        assert_eq!(steady_of(&[[6, 6, 2], [6, 0, 2], [6, 0, 3], [6, 6, 3]]), (Some(5), 3));
        assert_eq!(steady_of(&[[6, 6, 1], [6, 6, 2]]), (Some(5), 2));
        // Arguments that nobody keeps, and a thread that is always on its way to the next call.
        assert_eq!(steady_of(&[[6, 0, 2]]).0, None);
        let busy: Vec<[u64; 3]> = (0..100).map(|n| [6, 6, n]).collect();
        assert_eq!(steady_of(&busy).0, None);
        // Outside of a call: the last one.
        assert_eq!(steady_of(&[[0, 6, 1]]), (Some(5), 1));
        assert_eq!(steady_of(&[[0, 0, 0]]).0, None);
    }

    #[test]
    fn an_object_has_several_places() {
        let of_one: Vec<usize> = places(1, 77).collect();
        assert_eq!(of_one.len(), TRIES);
        assert!(
            of_one.iter().all(|at| (NAMES + 2 * CONSTANTS..NAMES + 2 * (CONSTANTS + OBJECTS)).contains(at))
        );
    }
}
