//! Functions at which recording goes on and off.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use refrain_fold::FastMap;

use super::own::own;
use super::threads::{guarded, locked, quietly};
use crate::config::Config;
use crate::modules::{Modules, spans};

static REGIONS: Mutex<Option<Regions>> = Mutex::new(None);

#[derive(Debug, Default)]
struct Regions {
    /// By where in a function it tells that it was entered: whether recording goes on there; `None`: neither on nor off.
    known: FastMap<u64, Option<bool>>,
    /// By the path of a file: which of its code is such a function.
    of: FastMap<String, Vec<(Range<u64>, bool)>>,
}

impl Regions {
    fn at(&mut self, pc: u64, config: &Config, modules: &mut Modules) -> Option<bool> {
        let Regions { known, of } = self;
        *known.entry(pc).or_insert_with(|| {
            let piece = modules.find(pc)?;
            let of = of.entry(piece.module.path.clone()).or_insert_with_key(|path| {
                let named = |name: &Option<String>, on: bool| {
                    let found = name.iter().flat_map(|name| spans(path, name));
                    found.map(|span| (span, on)).collect::<Vec<_>>()
                };
                [named(&config.from, true), named(&config.to, false)].concat()
            });
            let within = |span: &Range<u64>| (piece.host(span.start)..piece.host(span.end)).contains(&pc);
            of.iter().find(|(span, _)| within(span)).map(|(_, on)| *on)
        })
    }
}

/// The function that has this address is entered.
pub extern "C" fn entered(pc: u64) {
    let own = own();
    // We are at work on this thread: what runs now is none of the program's calls.
    if own.inside.load(Relaxed) == 0 && own.take_stack() {
        quietly(switch, pc as usize);
    }
}

extern "C" fn switch(pc: usize) {
    guarded(|process| {
        let mut regions = locked(&REGIONS);
        let mut modules = locked(&process.modules);
        let on = regions.get_or_insert_default().at(pc as u64, &process.config, &mut modules);
        if let Some(on) = on {
            crate::switch::set(on);
            if on {
                process.is_reached.store(true, Relaxed);
            }
        }
    });
}
