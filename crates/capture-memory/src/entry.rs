//! Where QEMU comes in.

use std::ffi::{CStr, c_char, c_int};
use std::panic::catch_unwind;

use crate::config::Config;
use crate::files::say;
use crate::process::{Callbacks, Process};
use crate::qemu::{self, Functions, Id, Info};
use crate::{callbacks, switch};

/// Which version of QEMU's interface this is written for; QEMU looks for it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: c_int = 1;

/// QEMU calls this first. Anything but 0 means that the plugin cannot be used.
///
/// # Safety
/// QEMU is the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const Info,
    count: c_int,
    words: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU describes itself.
    let info = unsafe { &*info };
    // SAFETY: a terminated string of QEMU's.
    let target = unsafe { CStr::from_ptr(info.target) };
    // SAFETY: so many words are there, each a terminated string.
    let words = (0..count as usize).map(|n| unsafe { CStr::from_ptr(*words.add(n)) });
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let done = catch_unwind(|| install(id, target, info.is_system, &words));
    match done.unwrap_or_else(|_| Err("a fault of Refrain".into())) {
        Ok(()) => 0,
        Err(why) => {
            say(&format!("memory references cannot be recorded: {why}"));
            1
        }
    }
}

fn install(id: Id, target: &CStr, is_system: bool, words: &[String]) -> Result<(), String> {
    if is_system || target != c"x86_64" {
        return Err(format!("this QEMU is for {}, not for programs of x86_64", target.to_string_lossy()));
    }
    let config = Config::parse(words.iter().map(String::as_str))?;
    let functions =
        Functions::find().map_err(|name| format!("this QEMU has no {}", name.to_string_lossy()))?;
    switch::begin(&config.parts, config.on, config.from.is_some());
    let callbacks = Callbacks {
        memory: callbacks::on_memory,
        flow: callbacks::on_flow,
        nothing: callbacks::on_nothing,
        switch: callbacks::on_switch,
        call: callbacks::on_call,
        thread: callbacks::on_thread,
        start: callbacks::on_start,
    };
    let is_recorded = config.is_recorded();
    Process::install(config, functions, callbacks, qemu::meaning);
    // SAFETY: QEMU's own functions, with the number it gave us and functions of the types it asks for.
    unsafe {
        if is_recorded {
            (functions.register_vcpu_init)(id, callbacks::on_vcpu_init);
            (functions.register_vcpu_exit)(id, callbacks::on_vcpu_exit);
        }
        (functions.register_translation)(id, callbacks::on_translation);
        (functions.register_syscall)(id, callbacks::on_syscall);
        (functions.register_exit)(id, callbacks::on_exit, std::ptr::null_mut());
    }
    Ok(())
}
