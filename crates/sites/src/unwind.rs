//! The frames of a thread of another process, from its registers and a copy of its stack, by the tables that compilers write
//! for exceptions. Nothing is guessed: where no table leads on, the stack ends.

use std::collections::HashMap;
use std::path::Path;

use addr2line::gimli::{
    self, BaseAddresses, CfaRule, EhFrame, EndianSlice, EvaluationResult, Expression, Location, Register,
    RegisterRule, RunTimeEndian, UnwindContext, UnwindSection, Value,
};
use object::{Object, ObjectSection, ObjectSegment};
use refrain_fold::bundle::sites::Module;

use crate::debug::contents;

/// How many registers the tables of x86-64 speak of. The last one is where the code goes on.
pub const REGISTERS: usize = 17;
const STACK: usize = 7;
const PLACE: usize = 16;
/// What maps of a process call the code that its kernel lends it.
pub const LENT: &str = "[vdso]";
/// An expression of a table that takes more steps is wrong.
const MOST_STEPS: u32 = 1000;

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
type Registers = [Option<u64>; REGISTERS];

/// A piece of a process's memory that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Where in its file it begins.
    pub offset: u64,
    pub path: String,
}

/// What was read of a thread while it stood still.
#[derive(Debug, Clone, Default)]
pub struct Stopped {
    /// As DWARF numbers them.
    pub registers: [u64; REGISTERS],
    pub mappings: Vec<Mapping>,
    /// A copy of its stack, and where that begins.
    pub stack: Vec<u8>,
    pub low: u64,
    /// What is in the mapping [`LENT`].
    pub lent: Vec<u8>,
}

impl Stopped {
    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.low)?).ok()?;
        Some(u64::from_le_bytes(*self.stack.get(at..)?.first_chunk()?))
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        self.mappings.iter().find(|one| (one.start..one.end).contains(&address))
    }
}

/// A place in a stack: behind the instruction that is, or was, at work there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub module: Module,
    pub offset: u64,
}

/// A file with its tables.
struct Tables {
    module: Module,
    bytes: Vec<u8>,
    /// Where pieces of the file lie, as the file itself counts addresses: from where in it, how long, and where.
    segments: Vec<(u64, u64, u64)>,
    bases: BaseAddresses,
    /// Where in the file they are.
    frames: std::ops::Range<usize>,
}

impl Tables {
    fn of(path: &str, bytes: Vec<u8>) -> Option<Tables> {
        let file = object::File::parse(bytes.as_slice()).ok()?;
        let build_id = file.build_id().ok().flatten().unwrap_or_default().into();
        let segments = file.segments().map(|one| (one.file_range(), one.address()));
        let segments = segments.map(|((from, length), address)| (from, length, address)).collect();
        let address = |name: &str| file.section_by_name(name).map_or(0, |section| section.address());
        let bases = BaseAddresses::default()
            .set_eh_frame(address(".eh_frame"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        let range = file.section_by_name(".eh_frame").and_then(|section| section.file_range());
        let (from, length) = range.unwrap_or_default();
        let (from, to) = (usize::try_from(from).ok()?, usize::try_from(from.checked_add(length)?).ok()?);
        let module = Module { path: path.to_owned(), build_id };
        Some(Tables { module, segments, bases, frames: from..to, bytes })
    }

    /// As the file itself counts addresses.
    fn address(&self, mapping: &Mapping, address: u64) -> Option<u64> {
        let at = address.checked_sub(mapping.start)?.checked_add(mapping.offset)?;
        let within = |(from, length, to): &(u64, u64, u64)| {
            let at = at.checked_sub(*from).filter(|at| at < length)?;
            to.checked_add(at)
        };
        self.segments.iter().find_map(within)
    }

    /// The registers of the caller, and whether this frame is the one that the kernel makes below a handler of a signal.
    /// `None` where the tables do not say, or the frame is the outermost one.
    fn caller(&self, address: u64, registers: &Registers, stopped: &Stopped) -> Option<(Registers, bool)> {
        let mut frames =
            EhFrame::from(EndianSlice::new(self.bytes.get(self.frames.clone())?, RunTimeEndian::Little));
        frames.set_address_size(8);
        let fde = frames.fde_for_address(&self.bases, address, EhFrame::cie_from_offset).ok()?;
        let mut context = UnwindContext::new();
        let row = fde.unwind_info_for_address(&frames, &self.bases, &mut context, address).ok()?;
        let value = |register: Register| *registers.get(usize::from(register.0))?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => value(*register)?.wrapping_add_signed(*offset),
            CfaRule::Expression(expression) => {
                evaluate(expression.get(&frames).ok()?, None, registers, stopped)?
            }
        };
        let mut caller = *registers;
        (caller[STACK], caller[PLACE]) = (Some(cfa), None);
        for (register, rule) in row.registers() {
            let Some(to) = caller.get_mut(usize::from(register.0)) else { continue };
            let told = |expression: &gimli::UnwindExpression<usize>| {
                evaluate(expression.get(&frames).ok()?, Some(cfa), registers, stopped)
            };
            *to = match rule {
                RegisterRule::SameValue => value(*register),
                RegisterRule::Offset(offset) => stopped.word(cfa.wrapping_add_signed(*offset)),
                RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(*offset)),
                RegisterRule::Register(other) => value(*other),
                RegisterRule::Expression(expression) => told(expression).and_then(|at| stopped.word(at)),
                RegisterRule::ValExpression(expression) => told(expression),
                _ => None,
            };
        }
        Some((caller, fde.is_signal_trampoline()))
    }
}

fn evaluate(
    expression: Expression<Slice<'_>>,
    first: Option<u64>,
    registers: &Registers,
    stopped: &Stopped,
) -> Option<u64> {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 5 };
    let mut evaluation = expression.evaluation(encoding);
    evaluation.set_max_iterations(MOST_STEPS);
    if let Some(first) = first {
        evaluation.set_initial_value(first);
    }
    let mut state = evaluation.evaluate().ok()?;
    loop {
        let next = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = (*registers.get(usize::from(register.0))?)?;
                evaluation.resume_with_register(Value::Generic(value))
            }
            EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                evaluation.resume_with_memory(Value::Generic(stopped.word(address)?))
            }
            _ => return None,
        };
        state = next.ok()?;
    }
    match evaluation.as_result() {
        [piece] => match piece.location {
            Location::Address { address } => Some(address),
            _ => None,
        },
        _ => None,
    }
}

/// Opens a file when a frame is first in it.
#[derive(Default)]
pub struct Unwinder {
    files: HashMap<String, Option<Tables>>,
}

impl std::fmt::Debug for Unwinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinder").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

impl Unwinder {
    /// So many frames at most, the innermost first. What the kernel lends is left out.
    pub fn frames(&mut self, stopped: &Stopped, most: usize) -> Vec<Place> {
        let mut registers: Registers = stopped.registers.map(Some);
        let mut found = Vec::new();
        // The instruction at work, and not one behind a call.
        let mut exact = true;
        while found.len() < most
            && let Some(place) = registers[PLACE].filter(|place| *place != 0)
        {
            let address = if exact { place } else { place - 1 };
            let Some(mapping) = stopped.mapping(address) else { break };
            let Some(tables) = self.tables(mapping, stopped) else {
                // That it is in this file is all that is known.
                let module = Module { path: mapping.path.clone(), build_id: Box::default() };
                found.push(Place { module, offset: address - mapping.start + mapping.offset + 1 });
                break;
            };
            let Some(here) = tables.address(mapping, address) else { break };
            if mapping.path != LENT {
                found.push(Place { module: tables.module.clone(), offset: here + 1 });
            }
            let Some((caller, trampoline)) = tables.caller(here, &registers, stopped) else { break };
            // A stack that leads back would have no end.
            if caller[STACK] <= registers[STACK] && !trampoline {
                break;
            }
            (registers, exact) = (caller, trampoline);
        }
        found
    }

    fn tables(&mut self, mapping: &Mapping, stopped: &Stopped) -> Option<&Tables> {
        let path = &mapping.path;
        let read = || match path.as_str() {
            LENT => Some(stopped.lent.clone()),
            _ => contents(Path::new(path)),
        };
        if !self.files.contains_key(path) {
            self.files.insert(path.clone(), read().and_then(|bytes| Tables::of(path, bytes)));
        }
        self.files.get(path)?.as_ref()
    }
}
