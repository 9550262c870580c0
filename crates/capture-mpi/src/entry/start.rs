//! The library's constructor: the one moment, before `main`, at which it decides what to be in this process.

use refrain_guest::memory::{imports, live};
use refrain_guest::process::mode::{self, Mode};
use refrain_guest::process::say::say;
use refrain_guest::process::{clock, filter as system_calls, reserve};
use refrain_guest::{ends, stacks, threads};
use refrain_model::time::Time;
use refrain_mpi::{Library, Owner};

use super::{jumps, real, symbols};
use crate::config::{self, Config};
use crate::{endings, filter, library, recorder};

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

/// Runs after the constructors of the libraries we depend on, before `main`.
#[cfg_attr(test, expect(dead_code))]
extern "C" fn construct() {
    // A panic must not leave: there is a C runtime below us.
    if std::panic::catch_unwind(start).is_err() {
        mode::set_mode(Mode::Inert);
        live::track(false);
    }
}

fn start() {
    ends::signals::prepare();
    let library = Library::find();
    let asked = Config::read(|variable| std::env::var_os(variable));
    symbols::offer(library.as_ref());
    symbols::take_back_fortran();
    let found = library.is_some();
    if let Some(library) = library {
        library::set(library);
    } else if !matches!(asked, Ok(None)) {
        library::wait();
    }
    let config = match asked {
        Ok(Some(config)) => config,
        asked => {
            // A launcher or a shell says nothing: the program it starts will.
            if let (true, Err(unknown)) = (found, &asked) {
                say(&format!("not tracing: {unknown}"));
            }
            live::track(false);
            return;
        }
    };
    // Our own copy of the standard library, so a Rust program's hook stays its own. `guard` says what happened.
    std::panic::set_hook(Box::new(|_| {}));
    reserve::prepare();
    ends::prepare();
    system_calls::prepare();
    // A test may want the other one.
    let kernel = (!config.tests().monotonic).then(|| std::fs::read_to_string(clock::KERNEL).ok()).flatten();
    clock::choose(kernel.as_deref());
    connect();
    threads::prepare();
    recorder::prepare();
    real::prepare();
    clock::keep_time(config.time != Time::Off);
    filter::choose(&config.choice);
    config.tests().begin();
    live::track(config.pointers);
    if config.pointers {
        imports::redirect();
    }
    config::keep(config);
    mode::set_mode(Mode::On);
}

/// What the rooms below tell those above.
fn connect() {
    mode::on_stop(|| {
        live::track(false);
        endings::stopped();
    });
    threads::on_end(|| {
        jumps::leave_all();
        recorder::release_thread();
    });
    stacks::modules::leave_out(|path| Owner::of_file(path) != Owner::Other);
}
