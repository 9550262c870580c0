//! The second engine: programs that were compiled to tell of their loads and stores (`-fsanitize=thread` of gcc and clang),
//! and linked with this library. We are what they tell.
//!
//! `refrain memory cc` compiles and links so, and `refrain memory run` says in the environment where parts go. Without that
//! nothing is recorded: a reference is a comparison.
//!
//! A program that another one becomes, or starts, finds the same words there and is recorded too, if it was made so.
//!
//! Each entry point notes one record in the buffer of its thread (`entry`, `own`), in assembly. When the buffer is full, that
//! thread makes blocks of it (`recording`), with signals blocked and on a stack of ours (`threads`), in memory of ours
//! (`heap`): no function of the program's is called but those of the C library that ask the kernel.
//!
//! # The rules
//!
//! 1. The program goes on as if we were not there: its atomic operations are done, `errno` and signals are its own.
//! 2. Nothing of the program is called: neither its `malloc` nor its handlers.
//! 3. A fault of ours ends recording, with one line.

mod atomics;
mod creation;
mod ends;
mod entry;
mod kinds;
mod own;
mod ranges;
mod recording;
mod regions;
mod threads;

use std::panic::catch_unwind;
use std::sync::Once;
use std::sync::atomic::Ordering::Relaxed;

use crate::config::{Config, words};
use crate::files::say;
use crate::{heap, switch};
use own::gates;
use threads::Process;

/// What tells us what to do: words for [`Config`], separated by commas; a comma in a word is doubled.
const VARIABLE: &str = "REFRAIN_MEMORY";

/// The first file of the program has begun.
fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: no thread changes the environment while constructors run.
        let is_asked = unsafe { !libc::getenv(c"REFRAIN_MEMORY".as_ptr()).is_null() };
        if is_asked {
            heap::keep_apart();
            let done = catch_unwind(install);
            if let Err(why) = done.unwrap_or_else(|_| Err("a fault of Refrain".into())) {
                say(&format!("memory references cannot be recorded: {why}"));
            }
        }
    });
}

fn install() -> Result<(), String> {
    let asked = std::env::var(VARIABLE).map_err(|error| format!("{VARIABLE}: {error}"))?;
    let asked = words(&asked);
    let mut config = Config::parse(asked.iter().map(String::as_str))?;
    let program = std::fs::read_link("/proc/self/exe").map_err(|error| format!("/proc/self/exe: {error}"))?;
    config.program = program.to_string_lossy().into_owned();
    if !config.follow {
        // SAFETY: as above.
        unsafe { libc::unsetenv(c"REFRAIN_MEMORY".as_ptr()) };
    }
    if !config.is_recorded() {
        return Ok(());
    }
    let (has_region, has_stacks) = (config.has_region(), config.stacks);
    switch::begin(&config.parts, config.on, config.from.is_some());
    Process::install(config);
    ends::watch();
    gates().region.store(has_region.into(), Relaxed);
    gates().flow.store((!has_stacks).into(), Relaxed);
    own::open();
    Ok(())
}
