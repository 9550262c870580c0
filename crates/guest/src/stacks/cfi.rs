//! How a frame is unwound, from the tables that compilers write for it: only as much as it takes to say on what the
//! place of its caller's frame depends.

use std::ffi::c_void;

/// The numbers of registers in these tables.
pub const FRAME_POINTER: u64 = 6;
const STACK_POINTER: u64 = 7;
const RETURN_ADDRESS: u64 = 16;

/// Of expressions.
const BASED_ON_FRAME_POINTER: u8 = 0x70 + FRAME_POINTER as u8;
const CONTENT: u8 = 0x06;

/// Of a frame stopped at some instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    pub cfa: Cfa,
    pub saved: Saved,
}

/// Where the caller's frame ends (its stack pointer before the call).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cfa {
    /// So far from this frame's stack pointer.
    Stack(i64),
    /// So far from its frame pointer.
    Frame(i64),
    /// Written so far from its frame pointer: of frames that align their stack.
    Written(i64),
    /// There is no caller: programs and threads begin here.
    Outermost,
    Other,
}

/// Where the caller's frame pointer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// Still in its register.
    Not,
    /// So far from the CFA.
    At(i64),
    /// So far from this frame's pointer.
    Frame(i64),
    /// It is gone.
    Nowhere,
    Other,
}

pub const UNKNOWN: Rule = Rule { cfa: Cfa::Other, saved: Saved::Other };

#[repr(C)]
struct Bases {
    text: *const c_void,
    data: *const c_void,
    function: *const c_void,
}

unsafe extern "C" {
    fn _Unwind_Find_FDE(pc: *const c_void, bases: *mut Bases) -> *const u8;
}

/// Where the function begins that a call returns to; `None` where there are no tables.
pub fn function(return_address: usize) -> Option<usize> {
    let mut bases = Bases { text: std::ptr::null(), data: std::ptr::null(), function: std::ptr::null() };
    // SAFETY: any address may be asked about, and `bases` is a place for the answer.
    let fde = unsafe { _Unwind_Find_FDE(return_address.checked_sub(1)? as *const c_void, &mut bases) };
    (!fde.is_null()).then_some(bases.function as usize)
}

/// The rule at a return address; `None` where there are no tables.
pub fn rule(return_address: usize) -> Option<Rule> {
    let mut bases = Bases { text: std::ptr::null(), data: std::ptr::null(), function: std::ptr::null() };
    // The call may be a function's last instruction.
    let pc = return_address.checked_sub(1)?;
    // SAFETY: any address may be asked about, and `bases` is a place for the answer.
    let fde = unsafe { _Unwind_Find_FDE(pc as *const c_void, &mut bases) };
    if fde.is_null() {
        return None;
    }
    // SAFETY: the unwinder found an entry there.
    let entry = unsafe { Bytes::of_entry(fde) };
    let found = entry.and_then(|mut entry| {
        let distance = entry.word()?;
        // SAFETY: a frame's entry says how far before that word its common one begins.
        let common = unsafe { Bytes::of_entry(fde.wrapping_add(4).wrapping_sub(distance as usize)) };
        rule_of(common?, entry, pc.wrapping_sub(bases.function as usize))
    });
    Some(found.unwrap_or(UNKNOWN))
}

/// What is left of an entry of the tables.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    /// # Safety
    /// `start` is where an entry begins; the tables stay where they are while they are read.
    unsafe fn of_entry(start: *const u8) -> Option<Bytes<'static>> {
        // SAFETY: an entry begins with its length.
        let length = unsafe { start.cast::<u32>().read_unaligned() };
        // The mark of longer ones, which nobody writes.
        if length == u32::MAX {
            return None;
        }
        // SAFETY: as the length says.
        Some(Bytes(unsafe { std::slice::from_raw_parts(start.wrapping_add(4), length as usize) }))
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    fn word(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*first))
    }

    fn half(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes([self.byte()?, self.byte()?]))
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let mut value = 0i64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= i64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let unused = 64 - (shift + 7).min(64);
                return Some(value << unused >> unused);
            }
        }
        None
    }

    /// A pointer written in one of the tables' ways.
    fn pointer(&mut self, encoding: u8) -> Option<()> {
        match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.skip(8),
            0x02 | 0x0a => self.skip(2),
            0x03 | 0x0b => self.skip(4),
            0x01 | 0x09 => self.unsigned().map(drop),
            _ => None,
        }
    }

    fn block(&mut self) -> Option<&[u8]> {
        let length = usize::try_from(self.unsigned()?).ok()?;
        let (block, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(block)
    }
}

/// How far from the frame pointer an expression points, and what is left of it; `None` for any other expression.
fn from_frame_pointer(expression: &[u8]) -> Option<(i64, &[u8])> {
    let mut bytes = Bytes(expression.strip_prefix(&[BASED_ON_FRAME_POINTER])?);
    Some((bytes.signed()?, bytes.0))
}

/// What all entries with one common entry share.
struct Common {
    code_unit: u64,
    data_unit: i64,
    /// How addresses are written.
    encoding: u8,
    augmented: bool,
}

fn rule_of(mut common: Bytes, mut entry: Bytes, distance: usize) -> Option<Rule> {
    let shared = read_common(&mut common)?;
    let mut machine =
        Machine { common: &shared, state: State::default(), initial: State::default(), kept: Vec::new() };
    machine.run(common, usize::MAX)?;
    machine.initial = machine.state;
    entry.pointer(shared.encoding)?;
    entry.pointer(shared.encoding & 0x0f)?;
    if shared.augmented {
        entry.block()?;
    }
    machine.run(entry, distance)?;
    let State { cfa, written, saved, returns } = machine.state;
    let cfa = match (cfa, written) {
        (Some((STACK_POINTER, offset)), _) => Cfa::Stack(offset),
        (Some((FRAME_POINTER, offset)), _) => Cfa::Frame(offset),
        (None, Some(offset)) => Cfa::Written(offset),
        _ => Cfa::Other,
    };
    match returns {
        Saved::At(-8) => Some(Rule { cfa, saved }),
        Saved::Nowhere => Some(Rule { cfa: Cfa::Outermost, saved }),
        // A return address elsewhere than above the frame is none of ours.
        _ => None,
    }
}

/// `None` for frames of signals and for what is not understood.
fn read_common(bytes: &mut Bytes) -> Option<Common> {
    bytes.word()?;
    let version = bytes.byte()?;
    let end = bytes.0.iter().position(|&byte| byte == 0)?;
    let (letters, _) = bytes.0.split_at(end);
    bytes.skip(end + 1)?;
    let code_unit = bytes.unsigned()?;
    let data_unit = bytes.signed()?;
    let register = if version == 1 { bytes.byte()?.into() } else { bytes.unsigned()? };
    if register != RETURN_ADDRESS {
        return None;
    }
    let mut common = Common { code_unit, data_unit, encoding: 0, augmented: false };
    for letter in letters {
        match letter {
            b'z' => {
                bytes.unsigned()?;
                common.augmented = true;
            }
            b'R' => common.encoding = bytes.byte()?,
            b'L' => drop(bytes.byte()?),
            b'P' => {
                let encoding = bytes.byte()?;
                bytes.pointer(encoding)?;
            }
            _ => return None,
        }
    }
    Some(common)
}

#[derive(Clone, Copy)]
struct State {
    /// Register and offset; `None` where it is an expression.
    cfa: Option<(u64, i64)>,
    /// How far from the frame pointer it is written, where the expression says that.
    written: Option<i64>,
    saved: Saved,
    returns: Saved,
}

impl Default for State {
    fn default() -> State {
        State { cfa: None, written: None, saved: Saved::Not, returns: Saved::Not }
    }
}

struct Machine<'a> {
    common: &'a Common,
    state: State,
    initial: State,
    kept: Vec<State>,
}

impl Machine<'_> {
    fn set(&mut self, register: u64, saved: Saved) {
        match register {
            FRAME_POINTER => self.state.saved = saved,
            RETURN_ADDRESS => self.state.returns = saved,
            _ => {}
        }
    }

    fn at(&self, offset: i64) -> Saved {
        offset.checked_mul(self.common.data_unit).map_or(Saved::Other, Saved::At)
    }

    fn restore(&mut self, register: u64) {
        let initial = match register {
            FRAME_POINTER => self.initial.saved,
            _ => self.initial.returns,
        };
        self.set(register, initial);
    }

    fn offset(&mut self, offset: Option<i64>) -> Option<()> {
        if let Some((_, known)) = &mut self.state.cfa {
            *known = offset?;
        }
        Some(())
    }

    /// Up to the instruction at that distance from the function's beginning.
    fn run(&mut self, mut code: Bytes, until: usize) -> Option<()> {
        let mut place = 0u64;
        let unit = self.common.data_unit;
        while let Some(op) = code.byte() {
            let low = u64::from(op & 0x3f);
            let advance = match op >> 6 {
                1 => Some(low),
                0 => match op {
                    2 => Some(u64::from(code.byte()?)),
                    3 => Some(u64::from(code.half()?)),
                    4 => Some(u64::from(code.word()?)),
                    _ => None,
                },
                _ => None,
            };
            if let Some(units) = advance {
                place = place.checked_add(units.checked_mul(self.common.code_unit)?)?;
                if place > until as u64 {
                    return Some(());
                }
                continue;
            }
            match (op >> 6, op) {
                (2, _) => {
                    let saved = self.at(i64::try_from(code.unsigned()?).ok()?);
                    self.set(low, saved);
                }
                (3, _) => self.restore(low),
                (_, 0x00) => {}
                (_, 0x05) => {
                    let register = code.unsigned()?;
                    let saved = self.at(i64::try_from(code.unsigned()?).ok()?);
                    self.set(register, saved);
                }
                (_, 0x06) => {
                    let register = code.unsigned()?;
                    self.restore(register);
                }
                (_, 0x07) => {
                    let register = code.unsigned()?;
                    self.set(register, Saved::Nowhere);
                }
                (_, 0x08) => {
                    let register = code.unsigned()?;
                    self.set(register, Saved::Not);
                }
                (_, 0x09 | 0x14) => {
                    let register = code.unsigned()?;
                    code.unsigned()?;
                    self.set(register, Saved::Other);
                }
                (_, 0x0a) => self.kept.push(self.state),
                (_, 0x0b) => self.state = self.kept.pop()?,
                (_, 0x0c) => {
                    let register = code.unsigned()?;
                    self.state.cfa = Some((register, i64::try_from(code.unsigned()?).ok()?));
                }
                (_, 0x0d) => {
                    let register = code.unsigned()?;
                    self.state.cfa = Some((register, self.state.cfa?.1));
                }
                (_, 0x0e) => {
                    let offset = code.unsigned()?;
                    self.offset(i64::try_from(offset).ok())?;
                }
                (_, 0x0f) => {
                    let told = from_frame_pointer(code.block()?);
                    self.state.written =
                        told.filter(|(_, rest)| rest == &[CONTENT]).map(|(offset, _)| offset);
                    self.state.cfa = None;
                }
                (_, 0x10) => {
                    let register = code.unsigned()?;
                    let told = from_frame_pointer(code.block()?).filter(|(_, rest)| rest.is_empty());
                    self.set(register, told.map_or(Saved::Other, |(offset, _)| Saved::Frame(offset)));
                }
                (_, 0x16) => {
                    let register = code.unsigned()?;
                    code.block()?;
                    self.set(register, Saved::Other);
                }
                (_, 0x11) => {
                    let register = code.unsigned()?;
                    let saved = self.at(code.signed()?);
                    self.set(register, saved);
                }
                (_, 0x12) => {
                    let register = code.unsigned()?;
                    self.state.cfa = Some((register, code.signed()?.checked_mul(unit)?));
                }
                (_, 0x13) => {
                    let offset = code.signed()?;
                    self.offset(offset.checked_mul(unit))?;
                }
                (_, 0x15) => {
                    let register = code.unsigned()?;
                    code.signed()?;
                    self.set(register, Saved::Other);
                }
                (_, 0x2e) => drop(code.unsigned()?),
                _ => return None,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries assembled field by field; `distance` from the function's beginning.
    fn check(code: &[u8], distance: usize, cfa: Cfa, saved: Saved) {
        // An id, version 1, "zR", units 1 and -8, register 16, one byte more: addresses of 4 bytes relative to here.
        let mut common = [&[0, 0, 0, 0, 1][..], b"zR\0", &[1, 0x78, 16, 1, 0x1b]].concat();
        // CFA = register 7 + 8; register 16 at CFA - 8.
        common.extend([0x0c, 7, 8, 0x80 | 16, 1]);
        // Begin, length, no augmentation.
        let entry = [&[0; 8][..], &[0], code].concat();
        let rule = rule_of(Bytes(&common), Bytes(&entry), distance);
        assert_eq!(rule, Some(Rule { cfa, saved }), "{code:x?} at {distance}");
    }

    #[test]
    fn rules_change_along_a_function() {
        // push rbp (1 byte); mov rbp, rsp (3); ...; at 20 all is undone.
        let code = [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x40 | 16, 0x0a, 0x0c, 7, 8, 0xc6, 0x41, 0x0b];
        check(&code, 0, Cfa::Stack(8), Saved::Not);
        check(&code, 1, Cfa::Stack(16), Saved::At(-16));
        check(&code, 4, Cfa::Frame(16), Saved::At(-16));
        check(&code, 19, Cfa::Frame(16), Saved::At(-16));
        check(&code, 20, Cfa::Stack(8), Saved::Not);
        check(&code, 21, Cfa::Frame(16), Saved::At(-16));
        check(&[0x02, 200, 0x0e, 0x90, 1], 200, Cfa::Stack(144), Saved::Not);
        check(&[0x0f, 2, 0x76, 0x78], 5, Cfa::Other, Saved::Not);
        check(&[0x0f, 3, 0x76, 0x78, 6], 5, Cfa::Written(-8), Saved::Not);
        check(&[0x0f, 3, 0x76, 0x78, 6, 0x0c, 6, 16], 5, Cfa::Frame(16), Saved::Not);
        check(&[0x10, 6, 2, 0x76, 0], 5, Cfa::Stack(8), Saved::Frame(0));
        check(&[0x10, 6, 2, 0x77, 0], 5, Cfa::Stack(8), Saved::Other);
        check(&[0x07, 16], 5, Cfa::Outermost, Saved::Not);
        check(&[0x16, 6, 2, 0x76, 0], 5, Cfa::Stack(8), Saved::Other);
    }

    #[test]
    fn what_is_not_understood_is_no_rule() {
        let common = [&[0, 0, 0, 0, 1][..], b"zRS\0", &[1, 0x78, 16, 1, 0x1b]].concat();
        assert_eq!(rule_of(Bytes(&common), Bytes(&[0; 9]), 0), None, "a signal's frame");
        let common = [&[0, 0, 0, 0, 1][..], b"zR\0", &[1, 0x78, 16, 1, 0x1b]].concat();
        assert_eq!(rule_of(Bytes(&common), Bytes(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3f]), 0), None);
        for length in 0..common.len() {
            assert_eq!(rule_of(Bytes(&common[..length]), Bytes(&[0; 9]), 0), None);
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn real_functions_have_rules() {
        assert_eq!(rule(16), None);
        let known = rule(rules_change_along_a_function as *const () as usize + 40).unwrap();
        assert_ne!(known.cfa, Cfa::Other);
    }
}
