//! Calls that nothing comes back from: what stands behind them does not follow.
//!
//! In doubt a call returns: a loop too many can be seen through, one too few cannot.

use std::collections::HashMap;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationTarget};

use crate::functions::Functions;

/// Functions that are longer, or in more pieces, are taken to return.
const MOST_INSTRUCTIONS: usize = 1 << 12;
const MOST_PIECES: usize = 16;

/// What comes after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Back {
    Returns,
    /// Not what stands behind it, but maybe another part of the function: where an exception is caught.
    Throws,
    Never,
}

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Callee {
    At(u64),
    /// What the address that is kept here says.
    Slot(u64),
}

impl Callee {
    /// `None`: no call, or of what only the data know.
    pub fn of(instruction: &Instruction) -> Option<Callee> {
        if instruction.is_call_near() {
            return Some(Callee::At(instruction.near_branch_target()));
        }
        let is_slot = instruction.is_call_near_indirect() && instruction.is_ip_rel_memory_operand();
        is_slot.then(|| Callee::Slot(instruction.ip_rel_memory_address()))
    }
}

/// What the call before an address goes to, in code that begins at another.
pub fn callee(code: &[u8], start: u64, behind: u64) -> Option<Callee> {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() && decoder.ip() < behind {
        decoder.decode_out(&mut instruction);
    }
    (decoder.ip() == behind).then(|| Callee::of(&instruction))?
}

/// What the libraries of languages promise.
pub fn by_name(name: &str) -> Back {
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    match name {
        "abort"
        | "exit"
        | "_exit"
        | "_Exit"
        | "quick_exit"
        | "longjmp"
        | "_longjmp"
        | "siglongjmp"
        | "__longjmp_chk"
        | "__assert_fail"
        | "__stack_chk_fail"
        | "__chk_fail"
        | "_ZSt9terminatev"
        | "__clang_call_terminate"
        | "_Unwind_Resume" => Back::Never,
        "__cxa_throw"
        | "__cxa_rethrow"
        | "__cxa_bad_cast"
        | "__cxa_bad_typeid"
        | "__cxa_throw_bad_array_new_length" => Back::Throws,
        _ => {
            let fortran = name.strip_prefix("_gfortran_").is_some_and(|name| {
                let ends = ["stop_", "error_stop", "runtime_error", "os_error"];
                ends.iter().any(|end| name.starts_with(end))
            });
            // `std::__throw_length_error` and its like, after the length of the name.
            let standard = name.strip_prefix("_ZSt").is_some_and(|name| {
                let bare = name.trim_start_matches(|c: char| c.is_ascii_digit());
                bare.len() < name.len() && bare.starts_with("__throw_")
            });
            match (fortran, standard) {
                (true, _) => Back::Never,
                (_, true) => Back::Throws,
                _ => Back::Returns,
            }
        }
    }
}

/// Which function a slot will hold the address of, as far as that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Named(Back),
    /// One of the module itself.
    Own(u64),
}

/// By the address of the slot.
pub fn links(file: &object::File) -> HashMap<u64, Link> {
    let (Some(relocations), Some(symbols)) = (file.dynamic_relocations(), file.dynamic_symbol_table()) else {
        return HashMap::new();
    };
    let link = |(slot, relocation): (u64, object::Relocation)| {
        let RelocationTarget::Symbol(index) = relocation.target() else { return None };
        let symbol = symbols.symbol_by_index(index).ok().filter(|_| relocation.addend() == 0)?;
        match by_name(symbol.name().ok()?) {
            Back::Returns if symbol.is_definition() => Some((slot, Link::Own(symbol.address()))),
            back => Some((slot, Link::Named(back))),
        }
    };
    relocations.filter_map(link).collect()
}

/// The slot that code which does nothing but jump to what is in it jumps by: an entry of the table of links.
pub fn slot(bytes: &[u8], start: u64) -> Option<u64> {
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut instruction = decoder.decode();
    if instruction.mnemonic() == Mnemonic::Endbr64 {
        instruction = decoder.decode();
    }
    let is_stub = instruction.is_jmp_near_indirect() && instruction.is_ip_rel_memory_operand();
    is_stub.then(|| instruction.ip_rel_memory_address())
}

/// Whether a function has no way to return: in all of its code, and that which it jumps to, nothing does.
/// `bytes`: what is at addresses.
pub fn never_returns(
    functions: &Functions,
    entry: u64,
    bytes: &dyn Fn(&Range<u64>) -> Option<Vec<u8>>,
) -> bool {
    let Some(first) = functions.range(entry).filter(|range| range.start == entry) else { return false };
    let mut pieces = vec![first];
    let mut left = MOST_INSTRUCTIONS;
    let mut at = 0;
    while let Some(piece) = pieces.get(at).cloned() {
        // Where exceptions are caught is in the piece, unless its table begins with where that is.
        let table = functions.catches(piece.start);
        let caught_within =
            table.is_none_or(|table| bytes(&(table..table.saturating_add(1))).as_deref() == Some(&[0xff]));
        let code = bytes(&piece).filter(|_| caught_within);
        let Some(ways) = code.and_then(|code| ways_out(&code, &piece, &mut left)) else {
            return false;
        };
        for target in ways {
            if pieces.iter().any(|known| known.contains(&target)) {
                continue;
            }
            match functions.range(target).filter(|_| pieces.len() < MOST_PIECES) {
                Some(other) => pieces.push(other),
                None => return false,
            }
        }
        at += 1;
    }
    true
}

/// Where a piece of code leads to outside of it; `None` where it may return, or that is not known.
fn ways_out(code: &[u8], piece: &Range<u64>, left: &mut usize) -> Option<Vec<u64>> {
    let mut decoder = Decoder::with_ip(64, code, piece.start, DecoderOptions::NONE);
    let mut out = Vec::new();
    let mut goes_on = true;
    while decoder.can_decode() {
        *left = left.checked_sub(1)?;
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        goes_on = match instruction.flow_control() {
            FlowControl::Return | FlowControl::IndirectBranch => return None,
            FlowControl::Exception => false,
            kind @ (FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch) => {
                let target = instruction.near_branch_target();
                if !piece.contains(&target) {
                    out.push(target);
                }
                kind == FlowControl::ConditionalBranch
            }
            _ if instruction.mnemonic() == Mnemonic::Hlt => false,
            // A call as the very last: there is nothing it could come back to.
            FlowControl::Call | FlowControl::IndirectCall if !decoder.can_decode() => false,
            _ => true,
        };
    }
    if goes_on {
        out.push(piece.end);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_promise() {
        for (name, back) in [
            ("abort", Back::Never),
            ("exit@GLIBC_2.2.5", Back::Never),
            ("_gfortran_stop_string", Back::Never),
            ("_gfortran_runtime_error_at", Back::Never),
            ("_gfortran_runtime_warning_at", Back::Returns),
            ("__cxa_throw", Back::Throws),
            ("_ZSt20__throw_length_errorPKc", Back::Throws),
            ("_ZSt__throw_", Back::Returns),
            ("_ZSt4cout", Back::Returns),
            ("atexit", Back::Returns),
            ("MPI_Abort", Back::Returns),
        ] {
            assert_eq!(by_name(name), back, "{name}");
        }
    }

    #[test]
    fn entries_of_the_table_of_links() {
        let jump = [0xff, 0x25, 0x10, 0, 0, 0];
        let push = [0x68, 1, 0, 0, 0];
        assert_eq!(slot(&[&jump[..], &push].concat(), 0x1000), Some(0x1016));
        // endbr64; bnd jmp
        let secured = [&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2][..], &jump].concat();
        assert_eq!(slot(&secured, 0x1000), Some(0x101b));
        assert_eq!(slot(&[&push[..], &jump].concat(), 0x1000), None);
        assert_eq!(slot(&[], 0x1000), None);
    }

    /// The function at 0; `table`: how the one begins that says where it catches exceptions.
    #[track_caller]
    fn check(pieces: &[(u64, &[u8])], table: Option<u8>, expected: bool) {
        let range = |(start, code): &(u64, &[u8])| *start..*start + code.len() as u64;
        let functions = Functions::test(pieces.iter().map(range).collect(), &[]);
        let functions = if table.is_some() { functions.catching(0, 0x800) } else { functions };
        let bytes = |wanted: &Range<u64>| match wanted.start {
            0x800 => table.map(|first| vec![first]),
            _ => pieces.iter().find(|piece| range(piece) == *wanted).map(|(_, code)| code.to_vec()),
        };
        assert_eq!(never_returns(&functions, 0, &bytes), expected, "{pieces:x?} {table:?}");
    }

    #[test]
    fn functions_that_cannot_return() {
        let call: &[u8] = &[0xe8, 0, 1, 0, 0];
        let ret: &[u8] = &[0xc3];
        check(&[(0, call)], None, true);
        check(&[(0, &[call, call].concat())], None, true);
        check(&[(0, ret)], None, false);
        check(&[(0, &[call, ret].concat())], None, false);
        // What it runs into, and what it jumps to, as calls at the end of functions do.
        check(&[(0, &[0x90]), (1, &[0xf4])], None, true);
        check(&[(0, &[0x90]), (1, ret)], None, false);
        check(&[(0, &[0x90])], None, false);
        check(&[(0, &[0xeb, 0x0e]), (16, &[0x0f, 0x0b])], None, true);
        check(&[(0, &[0xeb, 0x0e]), (16, ret)], None, false);
        check(&[(0, &[0xeb, 0x0f]), (16, &[0x90, 0xeb, 0xed])], None, true);
        check(&[(0, &[0xeb, 0x0e])], None, false);
        check(&[(0, &[0x74, 0x0e, 0xeb, 0xfc]), (16, ret)], None, false);
        // jmp rax; no instruction; what does not begin there; a loop for ever; too long.
        check(&[(0, &[0xff, 0xe0])], None, false);
        check(&[(0, &[0x06])], None, false);
        check(&[(1, call)], None, false);
        check(&[(0, &[0xeb, 0xfe])], None, true);
        check(&[(0, &[&[0x90; MOST_INSTRUCTIONS][..], &[0xeb, 0xfe]].concat())], None, false);
    }

    #[test]
    fn exceptions_that_are_caught_elsewhere() {
        let call: &[u8] = &[0xe8, 0, 1, 0, 0];
        check(&[(0, call)], Some(0xff), true);
        check(&[(0, call)], Some(0x1b), false);
    }
}
