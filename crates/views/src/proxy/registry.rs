//! What the calls of all ranks refer to, by numbers that the program has for it; and how C spells it.

use std::collections::{HashMap, HashSet};

use refrain_model::{Address, CType, Class};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Named(&'static str),
    Object(u32),
    Comm(String),
    /// For handles that nobody uses.
    Junk,
}

/// What all ranks have in common: objects and memory by number.
#[derive(Debug, Default)]
pub(super) struct Registry {
    slots: HashMap<(Class, Key), i64>,
    counts: HashMap<Class, usize>,
    /// Constants that have a slot, to be used where others than constants are too.
    pub named: HashMap<(Class, i64), &'static str>,
    /// How many there are of these, and of handles that nobody uses: their slots are below nought.
    below: HashMap<Class, i64>,
    segments: HashMap<(u8, u32, u32), usize>,
    /// By segment: what it was called, and the least and the greatest offset in use.
    pub memory: Vec<(String, i64, i64)>,
    /// By argument, a segment for buffers of which the trace does not tell.
    pub spare: HashMap<usize, usize>,
    /// Functions in place of the program's: type, and what it was in the trace.
    pub functions: Vec<(&'static str, String)>,
    /// The arguments of `MPI_Init`.
    pub arguments: Option<Vec<String>>,
    /// Elements of the longest array.
    pub longest: usize,
    /// Of functions that are forced.
    pub forced: HashSet<&'static str>,
    pub tells: bool,
    /// Files that the program opens.
    pub files: HashSet<String>,
    /// Receives from any source of which nobody knows who sent.
    pub unmatched: u64,
}

impl Registry {
    pub fn slot(&mut self, class: Class, key: Key) -> i64 {
        let named = match key {
            Key::Named(name) => Some(name),
            Key::Junk => Some(null_of(class)),
            _ => None,
        };
        let (counts, below) = (self.counts.entry(class).or_default(), self.below.entry(class).or_default());
        let slot = *self.slots.entry((class, key)).or_insert_with(|| match named {
            Some(_) => {
                *below += 1;
                -*below
            }
            None => {
                *counts += 1;
                *counts as i64 - 1
            }
        });
        if let Some(name) = named {
            self.named.insert((class, slot), name);
        }
        slot
    }

    /// Slots of a class below nought.
    pub fn fixed(&self, class: Class) -> usize {
        self.below.get(&class).map_or(0, |below| *below as usize)
    }

    /// Classes and how many of each there are.
    pub fn classes(&self) -> Vec<(Class, usize)> {
        let mut all: Vec<(Class, usize)> =
            self.counts.iter().map(|(class, count)| (*class, *count)).collect();
        all.sort_unstable();
        all
    }

    pub fn at_least(&mut self, class: Class, count: usize) {
        let have = self.counts.entry(class).or_default();
        *have = (*have).max(count);
    }

    pub fn segment(&mut self, address: Address, bytes: u64) -> usize {
        let Address { area, device, segment, offset } = address;
        let next = self.memory.len();
        let at = *self.segments.entry((area as u8, device, segment)).or_insert(next);
        if at == next {
            let name = format!("{area:?}").to_lowercase();
            self.memory.push((format!("{name} {segment}"), offset, offset));
        }
        let (_, low, high) = &mut self.memory[at];
        *low = (*low).min(offset);
        *high = (*high).max(offset.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX)));
        at
    }

    pub fn function(&mut self, ctype: &'static str, text: &str) -> String {
        let is = |known: &(&'static str, String)| known.0 == ctype && known.1 == text;
        let at = self.functions.iter().position(is).unwrap_or_else(|| {
            self.functions.push((ctype, text.to_owned()));
            self.functions.len() - 1
        });
        format!("stand_in_{at}")
    }
}

/// How C spells a type.
pub(super) fn spelled(ctype: CType) -> &'static str {
    match ctype {
        CType::Int | CType::ToolEnum(_) => "int",
        CType::Aint => "MPI_Aint",
        CType::Count => "MPI_Count",
        CType::Offset => "MPI_Offset",
        CType::Fint => "MPI_Fint",
        CType::Handle(class) => handle_type(class),
        CType::Status => "MPI_Status",
        CType::Char => "char",
        CType::Void | CType::Function(_) | CType::Other(_) | CType::Varargs => "void",
    }
}

pub(super) fn handle_type(class: Class) -> &'static str {
    match class {
        Class::Comm => "MPI_Comm",
        Class::Group => "MPI_Group",
        Class::Datatype => "MPI_Datatype",
        Class::Op => "MPI_Op",
        Class::Request => "MPI_Request",
        Class::Win => "MPI_Win",
        Class::File => "MPI_File",
        Class::Info => "MPI_Info",
        Class::Errhandler => "MPI_Errhandler",
        Class::Message => "MPI_Message",
        Class::Session => "MPI_Session",
        _ => "int",
    }
}

/// The array that handles of a class are in.
pub(super) fn array(class: Class) -> &'static str {
    match class {
        Class::Comm => "comm",
        Class::Group => "group",
        Class::Datatype => "type",
        Class::Op => "op",
        Class::Request => "request",
        Class::Win => "win",
        Class::File => "file",
        Class::Info => "info",
        Class::Errhandler => "handler",
        Class::Message => "message",
        Class::Session => "session",
        _ => "keyval",
    }
}

pub(super) fn null_of(class: Class) -> &'static str {
    match class {
        Class::Comm => "MPI_COMM_NULL",
        Class::Group => "MPI_GROUP_NULL",
        Class::Datatype => "MPI_DATATYPE_NULL",
        Class::Op => "MPI_OP_NULL",
        Class::Request => "MPI_REQUEST_NULL",
        Class::Win => "MPI_WIN_NULL",
        Class::File => "MPI_FILE_NULL",
        Class::Info => "MPI_INFO_NULL",
        Class::Errhandler => "MPI_ERRHANDLER_NULL",
        Class::Message => "MPI_MESSAGE_NULL",
        Class::Session => "MPI_SESSION_NULL",
        _ => "MPI_KEYVAL_INVALID",
    }
}

/// A string of C.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            // A question mark may begin a trigraph.
            b' '..=b'~' if byte != b'?' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}
