//! The library's constructor: the one moment, before `main`, at which it decides what to be in this process.

use std::sync::atomic::Ordering::{Relaxed, Release};

use refrain_mpi::Library;

use crate::config::{Config, Time};
use crate::filter::Gate;
use crate::guard::say;
use crate::memory::imports;
use crate::recorder::endings;
use crate::state::{self, Mode};
use crate::{clock, late, reserve, signals, symbols};

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

/// Runs after the constructors of the libraries we depend on, before `main`.
#[cfg_attr(test, expect(dead_code))]
extern "C" fn construct() {
    // A panic must not leave: there is a C runtime below us.
    if std::panic::catch_unwind(start).is_err() {
        state::MODE.store(Mode::Inert as u8, Release);
        state::TRACKING.store(false, Relaxed);
    }
}

fn start() {
    signals::prepare();
    let library = Library::find();
    let asked = Config::read(|variable| std::env::var_os(variable));
    symbols::offer(library.as_ref());
    symbols::take_back_fortran();
    let found = library.is_some();
    if let Some(library) = library {
        let _ = state::LIBRARY.set(library);
    } else if !matches!(asked, Ok(None)) {
        late::wait();
    }
    let config = match asked {
        Ok(Some(config)) => config,
        asked => {
            // A launcher or a shell says nothing: the program it starts will.
            if let (true, Err(unknown)) = (found, &asked) {
                say(&format!("not tracing: {unknown}"));
            }
            state::TRACKING.store(false, Relaxed);
            return;
        }
    };
    // Our own copy of the standard library, so a Rust program's hook stays its own. `guard` says what happened.
    std::panic::set_hook(Box::new(|_| {}));
    reserve::prepare();
    endings::prepare();
    clock::choose();
    state::prepare_threads();
    state::TIMED.store(config.time != Time::Off, Relaxed);
    state::GATE.get_or_init(|| Gate::new(&config.choice)).open(&state::FATES);
    state::PANIC_AT.store(config.test_panic, Relaxed);
    state::TRACKING.store(config.pointers, Relaxed);
    if config.pointers {
        imports::redirect();
    }
    let _ = state::CONFIG.set(config);
    state::MODE.store(Mode::On as u8, Release);
}
