//! The blocks of code that were translated, each once, whichever thread ran into it first and however often it was translated.
//!
//! Each instruction that refers to memory has a number. Those of a block follow each other.

use std::sync::Arc;

use refrain_fold::FastMap;
use refrain_fold::bundle::sites::{Frame, Module};

use iced_x86::InstructionInfoFactory;

use crate::config::Config;
use crate::decode::Insn;
use crate::modules::{Modules, functions};
use crate::record::Record;
use crate::switch;

/// What is known of the program's code.
pub struct Code {
    pub blocks: Blocks,
    pub modules: Modules,
    pub factory: InstructionInfoFactory,
    pub switches: Switches,
}

impl Default for Code {
    fn default() -> Code {
        let factory = InstructionInfoFactory::new();
        Code {
            blocks: Blocks::default(),
            modules: Modules::default(),
            factory,
            switches: Switches::default(),
        }
    }
}

impl Code {
    /// What a reader of the trace should know.
    pub fn notes(&self, config: &Config) -> Vec<String> {
        match config.from.as_ref().filter(|_| !self.switches.is_reached) {
            Some(from) => vec![format!("nothing is recorded: {from} was never called")],
            None => switch::note().into_iter().collect(),
        }
    }
}

/// Functions at which recording goes on and off.
#[derive(Debug, Default)]
pub struct Switches {
    /// By the path of a file: the addresses in it, and whether it goes on there.
    of: FastMap<String, Vec<(u64, bool)>>,
    /// It has gone on.
    pub is_reached: bool,
}

impl Switches {
    pub fn of(&mut self, path: &str, config: &Config) -> &[(u64, bool)] {
        self.of.entry(path.to_owned()).or_insert_with(|| {
            let named = |name: &Option<String>, on: bool| {
                let found = name.iter().flat_map(|name| functions(path, name));
                found.map(|address| (address, on)).collect::<Vec<_>>()
            };
            [named(&config.from, true), named(&config.to, false)].concat()
        })
    }
}

/// An instruction as it is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetch {
    pub at: u32,
    pub len: u32,
    /// Whenever it runs, it refers to memory.
    pub refers: bool,
    pub is_repeated: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// Of its first instruction.
    pub address: u64,
    /// Where that lies, and in what; `None`: in no module.
    pub place: Option<(Frame, Arc<Module>)>,
    /// The number of the first of `insns`.
    pub first: u32,
    /// Those that refer to memory; before them one that stands for the start of the block, if its fetches are recorded.
    pub insns: Vec<Insn>,
    /// All instructions, if their fetches are recorded.
    pub fetches: Box<[Fetch]>,
    /// What is noted when the block begins to run.
    pub start: Record,
    /// Otherwise only calls and returns are told.
    pub is_recorded: bool,
}

impl Block {
    /// Where the code that far into the block lies.
    pub fn frame(&self, at: u32) -> Frame {
        match &self.place {
            Some((frame, _)) => Frame { offset: frame.offset.wrapping_add(at.into()), ..*frame },
            None => crate::modules::NOWHERE,
        }
    }

    /// Which of `insns` is the one that far into the block.
    pub fn referring(&self, at: u32) -> Option<usize> {
        let starts = usize::from(!self.fetches.is_empty());
        let found = self.insns[starts..].binary_search_by_key(&at, |insn| insn.at).ok()?;
        Some(starts + found)
    }

    pub fn module(&self) -> Option<&Module> {
        self.place.as_ref().map(|(_, module)| &**module)
    }
}

/// By what two translations are the same code.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub address: u64,
    pub module: u64,
    pub bytes: Box<[u8]>,
}

#[derive(Debug, Default)]
pub struct Blocks {
    known: FastMap<Key, u32>,
    all: Vec<Arc<Block>>,
    /// By the number of an instruction.
    of: Vec<u32>,
}

impl Blocks {
    /// The block with this key, which `make` makes of the number of its first instruction.
    pub fn get(&mut self, key: Key, make: impl FnOnce(u32) -> Block) -> Arc<Block> {
        if let Some(&known) = self.known.get(&key) {
            return self.all[known as usize].clone();
        }
        let number = self.all.len() as u32;
        let block = Arc::new(make(self.of.len() as u32));
        self.of.resize(self.of.len() + block.insns.len(), number);
        self.known.insert(key, number);
        self.all.push(block.clone());
        block
    }

    /// Brings a copy up to date.
    pub fn tell(&self, all: &mut Vec<Arc<Block>>, of: &mut Vec<u32>) {
        all.extend_from_slice(&self.all[all.len()..]);
        of.extend_from_slice(&self.of[of.len()..]);
    }
}
