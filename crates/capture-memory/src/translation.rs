//! QEMU translates a block of code: which of its instructions are to be told of.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use crate::code::{Block, Fetch, Key};
use crate::decode::{Flow, Insn as Decoded, decode};
use crate::process::Process;
use crate::qemu::{Functions, Insn, NO_REGISTERS, READ_WRITE, Tb};
use crate::record::{Record, START};

/// An instruction as QEMU shows it.
struct Shown {
    insn: *mut Insn,
    address: u64,
    /// Where it lies in the emulator's memory.
    host: u64,
    bytes: Vec<u8>,
}

/// # Safety
/// QEMU is translating `tb`.
unsafe fn shown(functions: &Functions, tb: *mut Tb) -> Vec<Shown> {
    // SAFETY: as the caller says.
    let count = unsafe { (functions.tb_len)(tb) };
    let mut all = Vec::with_capacity(count);
    for n in 0..count {
        // SAFETY: there are so many.
        let insn = unsafe { (functions.tb_insn)(tb, n) };
        // SAFETY: of an instruction that QEMU is translating.
        let (address, host, len, data) = unsafe {
            let address = (functions.insn_address)(insn);
            let host = (functions.insn_host)(insn) as u64;
            (address, host, (functions.insn_size)(insn), (functions.insn_data)(insn).cast::<u8>())
        };
        // SAFETY: QEMU has so many bytes of it there.
        let bytes = unsafe { std::slice::from_raw_parts(data, len) }.to_vec();
        all.push(Shown { insn, address, host: if host == 0 { address } else { host }, bytes });
    }
    all
}

/// Whether an instruction is a mark of `include/refrain.h`, and which one.
fn mark(bytes: &[u8]) -> Option<bool> {
    // nopl 0x314e4652(%rax)
    let last = bytes.strip_prefix(b"\x0f\x1f\x80RFN")?;
    [&b"0"[..], b"1"].iter().position(|known| *known == last).map(|at| at == 1)
}

/// Sees to it that the accesses of this block are told.
pub fn translated(process: &Process, tb: *mut Tb) {
    let Process { config, functions, callbacks, .. } = process;
    // SAFETY: QEMU calls us while it translates this.
    let shown = unsafe { shown(functions, tb) };
    let Some(first) = shown.first() else { return };
    process.base.store(first.host.wrapping_sub(first.address), Relaxed);
    if !config.is_recorded() {
        return;
    }
    let mut code = process.code.lock().unwrap_or_else(PoisonError::into_inner);
    let code = &mut *code;
    let piece = code.modules.find(first.host);
    let watched = piece.and_then(|piece| Some((piece, piece.watched.as_deref()?)));
    // Our own library is no part of the program.
    let is_recorded =
        watched.is_none() && config.code.has(piece.map(|piece| &*piece.module.path), &config.program);
    if let Some((piece, watched)) = watched.filter(|_| config.calls) {
        let is_at = |places: &[u64], host| places.iter().any(|&place| piece.host(place) == host);
        for shown in &shown {
            if is_at(&watched.calls, shown.host) {
                // SAFETY: QEMU is translating this instruction.
                unsafe { (functions.on_insn)(shown.insn, callbacks.call, NO_REGISTERS, null_mut()) };
            }
            if is_at(&watched.threads, shown.host) {
                let base = shown.host.wrapping_sub(shown.address) as usize as *mut c_void;
                // SAFETY: as above.
                unsafe { (functions.on_mem)(shown.insn, callbacks.thread, NO_REGISTERS, READ_WRITE, base) };
            }
        }
    }
    let place = piece.map(|piece| (piece.frame(first.host), Arc::new(piece.module.clone())));
    let switches: Vec<(u64, bool)> = match piece {
        Some(piece) if config.has_region() => {
            let switches = code.switches.of(&piece.module.path, config).iter();
            switches.map(|&(address, on)| (piece.host(address), on)).collect()
        }
        _ => Vec::new(),
    };
    let key = Key {
        address: first.address,
        module: place.as_ref().map_or(0, |(frame, _)| frame.module),
        bytes: shown.iter().flat_map(|shown| &shown.bytes).copied().collect(),
    };
    let factory = &mut code.factory;
    let block = code.blocks.get(key, |number| {
        let (mut insns, mut fetches) = (Vec::new(), Vec::new());
        if is_recorded && config.fetches {
            insns.push(Decoded::default());
        }
        for shown in &shown {
            let at = shown.address.wrapping_sub(first.address) as u32;
            let decoded = decode(factory, &shown.bytes, at);
            if is_recorded && config.fetches {
                let (refers, is_repeated) = decoded
                    .as_ref()
                    .map_or((false, false), |insn| (!insn.varies && !insn.is_repeated, insn.is_repeated));
                fetches.push(Fetch { at, len: shown.bytes.len() as u32, refers, is_repeated });
            }
            let told = |insn: &Decoded| is_recorded || (config.stacks && insn.flow != Flow::On);
            insns.extend(decoded.filter(told));
        }
        let start = Record { address: first.address, insn: number, info: START };
        let fetches = fetches.into();
        Block { address: first.address, place, first: number, insns, fetches, start, is_recorded }
    });
    for (nth, shown) in shown.iter().enumerate() {
        let named = switches.iter().filter(|(host, _)| *host == shown.host).map(|(_, on)| *on);
        for on in named.chain(mark(&shown.bytes)) {
            code.switches.is_reached |= on;
            let on = usize::from(on) as *mut c_void;
            // SAFETY: QEMU is translating this instruction.
            unsafe { (functions.on_insn)(shown.insn, callbacks.switch, NO_REGISTERS, on) };
        }
        // After a switch, which may stand at the same place.
        if nth == 0 && !block.fetches.is_empty() {
            let start = (&raw const block.start).cast_mut().cast();
            // SAFETY: QEMU is translating this instruction.
            unsafe { (functions.on_insn)(shown.insn, callbacks.start, NO_REGISTERS, start) };
        }
        let at = shown.address.wrapping_sub(first.address) as u32;
        let Some(nth) = block.referring(at) else {
            // After a jump QEMU 7.2 takes what its own functions access for accesses of that jump, unless the instruction has
            // a callback itself.
            if !is_recorded && decode(&mut code.factory, &shown.bytes, at).is_some_and(|insn| insn.by_helper)
            {
                // SAFETY: QEMU is translating this instruction.
                unsafe {
                    (functions.on_mem)(shown.insn, callbacks.nothing, NO_REGISTERS, READ_WRITE, null_mut())
                };
            }
            continue;
        };
        let callback = match block.insns[nth].flow {
            Flow::On => callbacks.memory,
            Flow::Call | Flow::Return => callbacks.flow,
        };
        let number = (block.first as usize + nth) as *mut c_void;
        // SAFETY: QEMU is translating this instruction.
        unsafe { (functions.on_mem)(shown.insn, callback, NO_REGISTERS, READ_WRITE, number) };
    }
}
