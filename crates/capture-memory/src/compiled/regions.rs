//! Functions at which recording goes on and off.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use super::own::{apart, gates, own};
use super::threads::{guarded, locked};
use crate::modules::spans;

/// By where in a function it tells that it was entered: whether recording goes on there; `None`: neither on nor off.
static KNOWN: Mutex<Option<HashMap<u64, Option<bool>>>> = Mutex::new(None);

/// The function that has this address is entered.
pub extern "C" fn entered(pc: u64) {
    let own = own();
    // We are at work on this thread: what runs now is none of the program's calls.
    if own.busy.load(Relaxed) == 0 && own.take_stack() {
        // SAFETY: nothing of ours is on that stack.
        unsafe { apart(switch, pc as usize) };
    }
}

extern "C" fn switch(pc: usize) {
    let pc = pc as u64;
    guarded(|process| {
        let mut known = locked(&KNOWN);
        let on = *known.get_or_insert_default().entry(pc).or_insert_with(|| {
            let mut modules = locked(&process.modules);
            let piece = modules.find(pc)?;
            let within = |name: &Option<String>| {
                let mut spans = name.iter().flat_map(|name| spans(&piece.module.path, name));
                spans.any(|span| (piece.host(span.start)..piece.host(span.end)).contains(&pc))
            };
            let (from, to) = (within(&process.config.from), within(&process.config.to));
            (from || to).then_some(from)
        });
        if let Some(on) = on {
            gates().references.store(u8::from(!on), Relaxed);
            if on {
                process.is_reached.store(true, Relaxed);
            }
        }
    });
}
