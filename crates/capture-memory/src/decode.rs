//! What an instruction does with memory, before it runs: how many bytes it loads and stores, and whether it calls or returns.
//!
//! QEMU tells of each access of up to 8 bytes. What belongs to one reference follows from the sizes of the operands.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess};

/// What it does to the stack of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    #[default]
    On,
    Call,
    Return,
}

/// One instruction that refers to memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Insn {
    /// From the start of the block.
    pub at: u32,
    pub len: u32,
    /// Bytes that it loads and stores each time.
    pub loads: u32,
    pub stores: u32,
    /// The largest operand that it loads, and stores: accesses side by side up to this are one reference.
    pub load: u32,
    pub store: u32,
    pub flow: Flow,
    /// What it loads and stores is one update.
    pub is_atomic: bool,
    /// QEMU may do it by a function of its own, rather than in translated code.
    pub by_helper: bool,
    /// How much it loads or stores depends on more than the instruction: each access is a reference.
    pub varies: bool,
    /// It runs any number of times.
    pub is_repeated: bool,
}

/// The instruction at the beginning of these bytes, `None` if it does not refer to memory.
pub fn decode(factory: &mut InstructionInfoFactory, bytes: &[u8], at: u32) -> Option<Insn> {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    let info = factory.info(&instruction);
    let mut insn = Insn { at, len: bytes.len() as u32, ..Insn::default() };
    let mut refers = false;
    for memory in info.used_memory() {
        let size = memory.memory_size().size() as u32;
        let (loads, stores, may) = match memory.access() {
            OpAccess::Read => (true, false, false),
            OpAccess::Write => (false, true, false),
            OpAccess::ReadWrite => (true, true, false),
            OpAccess::CondRead => (true, false, true),
            OpAccess::CondWrite => (false, true, true),
            OpAccess::ReadCondWrite => (true, true, true),
            OpAccess::None | OpAccess::NoMemAccess => continue,
        };
        refers = true;
        insn.varies |= may || size == 0 || memory.memory_size().element_count() == 0;
        if loads {
            insn.loads += size;
            insn.load = insn.load.max(size);
        }
        if stores {
            insn.stores += size;
            insn.store = insn.store.max(size);
        }
    }
    if !refers {
        return None;
    }
    if instruction.is_string_instruction()
        && let Some((loads, stores)) = of_string(instruction.mnemonic())
    {
        let size = instruction.memory_size().size() as u32;
        (insn.loads, insn.stores) = (loads * size, stores * size);
        (insn.load, insn.store) = (size, size);
        insn.varies = false;
        insn.is_repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        return Some(insn);
    }
    insn.flow = match instruction.flow_control() {
        FlowControl::Call | FlowControl::IndirectCall => Flow::Call,
        FlowControl::Return => Flow::Return,
        _ => Flow::On,
    };
    insn.is_atomic = instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg;
    // These, QEMU writes whether or not anything changes, as processors do.
    let always =
        matches!(instruction.mnemonic(), Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b);
    insn.varies = (insn.varies && !always) || instruction.is_vsib() || in_pieces(instruction.code());
    let is_wide = [insn.load, insn.store].iter().any(|&size| ![0, 1, 2, 4, 8, 16, 32].contains(&size));
    insn.by_helper = insn.varies || insn.is_atomic || always || is_wide;
    Some(insn)
}

/// How often one iteration of a string instruction loads, and stores. With a prefix they run any number of times, each of
/// which is told as one.
fn of_string(mnemonic: Mnemonic) -> Option<(u32, u32)> {
    use Mnemonic::*;
    match mnemonic {
        Movsb | Movsw | Movsd | Movsq => Some((1, 1)),
        Stosb | Stosw | Stosd | Stosq => Some((0, 1)),
        Lodsb | Lodsw | Lodsd | Lodsq | Scasb | Scasw | Scasd | Scasq => Some((1, 0)),
        Cmpsb | Cmpsw | Cmpsd | Cmpsq => Some((2, 0)),
        _ => None,
    }
}

/// Those that QEMU does field by field, or element by element.
fn in_pieces(code: Code) -> bool {
    use Mnemonic::*;
    matches!(
        code.mnemonic(),
        Fxsave
            | Fxsave64
            | Fxrstor
            | Fxrstor64
            | Xsave
            | Xsave64
            | Xsaveopt
            | Xsaveopt64
            | Xsavec
            | Xsavec64
            | Xrstor
            | Xrstor64
            | Fsave
            | Fnsave
            | Frstor
            | Fstenv
            | Fnstenv
            | Fldenv
            | Maskmovq
            | Maskmovdqu
            | Vmaskmovdqu
            | Vmaskmovps
            | Vmaskmovpd
            | Vpmaskmovd
            | Vpmaskmovq
            | Enter
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Option<Insn> {
        decode(&mut InstructionInfoFactory::new(), bytes, 0)
    }

    #[track_caller]
    fn check(bytes: &[u8], loads: u32, stores: u32) -> Insn {
        let insn = of(bytes).unwrap();
        assert_eq!((insn.loads, insn.stores, insn.varies), (loads, stores, false), "{insn:?}");
        insn
    }

    #[test]
    fn sizes_of_operands() {
        check(&[0x48, 0x8b, 0x00], 8, 0); // mov (%rax),%rax
        check(&[0x0f, 0x28, 0x00], 16, 0); // movaps (%rax),%xmm0
        check(&[0xc5, 0xfc, 0x11, 0x00], 0, 32); // vmovups %ymm0,(%rax)
        check(&[0x01, 0x00], 4, 4); // add %eax,(%rax)
        check(&[0xff, 0x30], 8, 8); // push (%rax)
        check(&[0x8f, 0x00], 8, 8); // pop (%rax)
        check(&[0xdb, 0x28], 10, 0); // fldt (%rax)
        check(&[0xf3, 0x48, 0xa5], 8, 8); // rep movsq
        check(&[0xf3, 0xa6], 2, 0); // repz cmpsb
        assert!(check(&[0xf3, 0xaa], 0, 1).is_repeated); // rep stosb
        assert!(!check(&[0xaa], 0, 1).is_repeated); // stosb
        check(&[0x0f, 0x12, 0x00], 8, 0); // movlps (%rax),%xmm0
        check(&[0xf2, 0x0f, 0x10, 0x00], 8, 0); // movsd (%rax),%xmm0
        check(&[0xa5], 4, 4); // movsd, of strings
        check(&[0xc9], 8, 0); // leave
        assert_eq!(of(&[0x48, 0x8d, 0x00]), None); // lea (%rax),%rax
        assert_eq!(of(&[0x0f, 0x1f, 0x00]), None); // nopl (%rax)
        assert_eq!(of(&[0x0f, 0x18, 0x08]), None); // prefetcht0 (%rax)
        assert_eq!(of(&[0x90]), None);
    }

    #[test]
    fn calls_returns_and_atomics() {
        assert_eq!(check(&[0xe8, 0, 0, 0, 0], 0, 8).flow, Flow::Call);
        assert_eq!(check(&[0xff, 0x10], 8, 8).flow, Flow::Call); // call *(%rax)
        assert_eq!(check(&[0xc3], 8, 0).flow, Flow::Return);
        assert_eq!(check(&[0xc2, 8, 0], 8, 0).flow, Flow::Return);
        assert_eq!(check(&[0xff, 0x20], 8, 0).flow, Flow::On); // jmp *(%rax)
        assert!(check(&[0xf0, 0x01, 0x00], 4, 4).is_atomic); // lock add
        assert!(check(&[0x48, 0x87, 0x00], 8, 8).is_atomic); // xchg %rax,(%rax)
        assert!(check(&[0xf0, 0x0f, 0xb1, 0x10], 4, 4).is_atomic); // lock cmpxchg
        assert!(check(&[0xf0, 0x48, 0x0f, 0xc7, 0x08], 16, 16).is_atomic); // lock cmpxchg16b
        assert!(!check(&[0x01, 0x00], 4, 4).is_atomic);
    }

    #[test]
    fn what_varies() {
        let fxsave = of(&[0x0f, 0xae, 0x00]).unwrap();
        assert!(fxsave.varies && fxsave.by_helper);
        assert!(of(&[0xdb, 0x28]).unwrap().by_helper); // fldt (%rax)
        assert!(!of(&[0x48, 0x8b, 0x00]).unwrap().by_helper); // mov (%rax),%rax
        assert!(of(&[0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x88]).unwrap().varies); // vpgatherdd
        assert!(of(&[0xc4, 0xe2, 0x75, 0x8c, 0x00]).unwrap().varies); // vpmaskmovd
    }
}
