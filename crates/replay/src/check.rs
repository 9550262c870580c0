//! What came out of a call, against what the trace says: numbers, names, handles that are null or not, strings, statuses,
//! alone and in arrays. Addresses are those of this run, and what is in buffers is not in a trace.

use std::cell::RefCell;

use refrain_model::{CType, Call, Dir, Kind, Param, Status, Value};
use refrain_views::value::shown;

use crate::ahead::after;
use crate::issue::Process;
use crate::recorded::{is_its_own, is_made_up, is_of_the_run};
use crate::words;

thread_local! {
    /// What is unlike the trace in the statuses that the program ignores.
    static UNLIKE: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Every outcome that is another one, in words.
pub fn differences(process: &Process, call: &Call, words: &[usize]) -> Vec<String> {
    let mut all = UNLIKE.take();
    let name = call.function.name;
    if is_made_up(name) || is_of_the_run(name) || process.foreign && is_its_own(name) {
        return Vec::new();
    }
    for ((p, value), word) in call.function.params.iter().zip(&call.args).zip(words) {
        // Of requests that end and of what is freed only what it was is told.
        let told = p.dir == Dir::Out || matches!(value, Value::InOut(..));
        if !told || p.ctype == CType::Aint || *word == 0 {
            continue;
        }
        match after(value) {
            Value::List(told) if !p.len.is_empty() => {
                for (k, one) in told.iter().enumerate() {
                    let why = difference(process, p, after(one), *word, k);
                    all.extend(why.map(|why| format!("{}[{k}] is {why}", p.name)));
                }
            }
            _ if !p.len.is_empty() && p.kind != Kind::String => {}
            told => {
                let why = difference(process, p, told, *word, 0);
                all.extend(why.map(|why| format!("{} is {why}", p.name)));
            }
        }
    }
    all
}

/// How an element differs: what it is, and what the trace says.
fn difference(process: &Process, p: &Param, told: &Value, word: usize, at: usize) -> Option<String> {
    let abi = &process.abi;
    let cells = word as *const u8;
    let is_number = matches!(
        p.kind,
        Kind::Int
            | Kind::Undefinable
            | Kind::Peer(_)
            | Kind::Root(_)
            | Kind::Rank
            | Kind::Logical
            | Kind::Tag
            | Kind::Enum(_)
    );
    match (p.kind, told) {
        _ if is_number => {
            // An address that stands for something is none of these.
            let told = match told {
                Value::Int(number) => *number,
                Value::Bool(yes) => i64::from(*yes),
                Value::Name(name) => abi.constant_int(name)?,
                _ => return None,
            };
            let width = words::width_of(p, abi);
            // SAFETY: cells of ours of that width, as many as the list has.
            let found = unsafe { words::read(cells, at, width) };
            let found = if width == 4 { i64::from(found as i32) } else { found as i64 };
            let same = if p.kind == Kind::Logical { (told != 0) == (found != 0) } else { told == found };
            (!same).then(|| format!("{found}, in the trace {told}"))
        }
        (Kind::Handle(class), told) => {
            let null = abi.null(words::native(class))?;
            let told_null = match told {
                Value::Name(name) => abi.handle(name)? == null,
                Value::Object(..) | Value::Comm(_) => false,
                _ => return None,
            };
            // SAFETY: as above.
            let found_null = unsafe { words::read(cells, at, words::width_of(p, abi)) } == null;
            let word = |null: bool| if null { "null" } else { "not null" };
            (told_null != found_null)
                .then(|| format!("{}, in the trace {}", word(found_null), word(told_null)))
        }
        (Kind::String, Value::Text(told)) => {
            // SAFETY: rooms for strings are that long, and were zero.
            let room = unsafe { std::slice::from_raw_parts(cells, words::STRING) };
            let found = room.split(|byte| *byte == 0).next().unwrap_or(room);
            let found = String::from_utf8_lossy(found);
            (found != told.as_str()).then(|| format!("{found:?}, in the trace {told:?}"))
        }
        (Kind::Status, Value::Status(told)) => status(process, told, word + at * abi.status_size()),
        _ => None,
    }
}

fn status(process: &Process, told: &Status, place: usize) -> Option<String> {
    // SAFETY: a status of ours, or one that MPI was given.
    let found = unsafe { process.abi.read_status(place as *const u8) };
    let other = |told: &Value, found: i32| match told {
        Value::Int(number) => *number != i64::from(found),
        _ => false,
    };
    let (source, tag) = (other(&told.source, found.source), other(&told.tag, found.tag));
    let bytes = told.bytes.is_some_and(|bytes| bytes != found.bytes);
    let cancelled = told.cancelled.is_some_and(|cancelled| cancelled != found.cancelled);
    if !(source || tag || bytes || cancelled) {
        return None;
    }
    // Of what the trace does not tell nothing is said.
    let number = |told: &Value, found: i32| match told {
        Value::Unset => Value::Unset,
        _ => Value::Int(found.into()),
    };
    let found = Status {
        source: number(&told.source, found.source).into(),
        tag: number(&told.tag, found.tag).into(),
        bytes: told.bytes.map(|_| found.bytes),
        cancelled: told.cancelled.map(|_| found.cancelled),
        error: None,
    };
    let [found, told] = [found, told.clone()].map(|status| shown(&Value::Status(status)));
    Some(format!("{found}, in the trace {told}"))
}

impl Process {
    /// What a call got whose status the program ignores, if that is to be compared: the parameter, and what the trace says.
    pub(crate) fn to_be_compared<'c>(&self, call: &'c Call) -> Option<(usize, &'c Value)> {
        let (_, told) = call.facts.iter().find(|(fact, _)| self.check && *fact == "matched")?;
        let status = |p: &Param| p.kind == Kind::Status && p.dir == Dir::Out;
        Some((call.function.params.iter().position(status)?, told))
    }
}

/// Makes a call with statuses where the program ignores them, and compares these. A tracer may have put its own there.
pub fn matched(
    process: &Process,
    call: &Call,
    given: &[usize],
    (at, told): (usize, &Value),
    make: impl FnOnce(&[usize]) -> usize,
) -> usize {
    let told = match told {
        Value::List(all) => &all[..],
        one => std::slice::from_ref(one),
    };
    let mut words = given.to_vec();
    // As many as a call may write that tells of these.
    let requests = call.args.iter().map(|value| match crate::ahead::before(value) {
        Value::List(all) => all.len(),
        _ => 1,
    });
    let room = requests.max().unwrap_or(1).max(told.len()) * process.abi.status_size();
    let mut own = vec![0u64; room.div_ceil(8)];
    if process.ignores(words[at]) {
        words[at] = own.as_mut_ptr() as usize;
    }
    let code = make(&words);
    if code as i32 == 0 {
        for (k, one) in told.iter().enumerate() {
            let Value::Status(one) = one else { continue };
            let why = status(process, one, words[at] + k * process.abi.status_size());
            UNLIKE.with_borrow_mut(|all| all.extend(why.map(|why| format!("what it matched is {why}"))));
        }
    }
    drop(own);
    code
}
