//! A snapshot and the journal after it are the whole recording, wherever the process died.

use crate::common;

use common::*;
use refrain_encode::{Calls, Folding, Journal, Tape, replay};
use refrain_fold::bundle::Bundle;
use refrain_fold::bundle::sites::{Frame, Module};

fn at<T>(value: &T) -> usize {
    std::ptr::from_ref(value) as usize
}

/// Records into a tape and a journal of limited size, as a process would.
struct Process {
    world: World,
    tape: Tape,
    journal: Journal,
    snapshot: Bundle,
    lead: Vec<u8>,
    tail: Vec<u8>,
    used: usize,
    snapshots: usize,
    said: Vec<String>,
    ticks: u64,
}

impl Process {
    fn new(room: usize) -> Process {
        let mut tape = Tape::default();
        let snapshot = tape.snapshot().unwrap();
        Process {
            world: world(),
            tape,
            journal: Journal::default(),
            snapshot,
            lead: Vec::new(),
            tail: vec![0; room],
            used: 0,
            snapshots: 0,
            said: Vec::new(),
            ticks: 0,
        }
    }

    /// Some calls have a site, with modules of their own.
    fn site(&mut self) -> u64 {
        let number = self.said.len() as u64 * 7 % 30;
        let Some(number) = number.checked_sub(10) else { return 0 };
        let module = |n: u64| Module { path: format!("/lib/{n}.so"), build_id: vec![n as u8; 20].into() };
        let frame = |n: u64| Frame { module: module(n % 4).key(), offset: 1000 + n };
        let frames: Vec<Frame> = (0..number).map(frame).collect();
        let modules: Vec<Module> = (0..4).map(module).collect();
        self.tape.note_site(&frames, |key| modules.iter().find(|module| module.key() == key))
    }

    fn call(&mut self, name: &str, args: &[usize]) {
        let call = self.world.call(name, args, 0, || {});
        let site = self.site();
        self.world.record.site = site;
        self.said.push(format!("{name} {}", show(&call)));
        let ticks = 1 + self.said.len() as u64 % 7;
        self.ticks += ticks;
        let symbol = self.tape.push(&self.world.record, ticks);
        let room = &mut self.tail[self.used..];
        match self.journal.write(room, &self.tape, symbol, &self.world.record.values, ticks) {
            Some(bytes) => self.used += bytes,
            None => {
                self.snapshot = self.tape.snapshot().unwrap();
                self.lead = self.journal.restart(&self.tape);
                self.used = 0;
                self.snapshots += 1;
            }
        }
    }

    /// What somebody else makes of what is left.
    fn check(&mut self) {
        let mut tape =
            Tape::resume(&Bundle::from_bytes(&self.snapshot.to_bytes()).unwrap(), Folding::default())
                .unwrap();
        replay(&[&self.lead, &self.tail[..self.used]].concat(), &mut tape).unwrap();
        assert_eq!(tape.spent().all, self.ticks);
        let bundle = Tape::bundle((2, 3), [(0, &mut tape)], |ticks| ticks).unwrap();
        bundle.validate().unwrap();
        // Symbols, and their times by class, are those of the process.
        assert_eq!(self.tape.snapshot().unwrap().symbols, bundle.symbols);
        let classes = bundle.symbols.iter().map(|symbol| symbol.classes.list().len());
        assert!(self.said.len() < 100 || classes.max() > Some(2));
        assert!(self.said.len() < 20 || bundle.symbols.iter().any(|symbol| symbol.site != 0));
        let read: Vec<String> = Calls::new(&bundle, 2, 0)
            .unwrap()
            .map(|call| call.map(|c| format!("{} {}", c.function.name, show(&c))).unwrap())
            .collect();
        assert_eq!(read, self.said);
    }
}

fn run(room: usize, steps: usize) -> Process {
    let mut p = Process::new(room);
    let comm = handle("MPI_COMM_WORLD");
    let int = handle("MPI_INT");
    let (flag, status) = ([0i32], [0u8; 64]);
    let mut random = fastrand::Rng::with_seed(12345);
    for step in 0..steps {
        p.call("MPI_Barrier", &[comm]);
        // Of any size: their times are kept by class.
        let bits = random.u32(..=20);
        p.call("MPI_Send", &[0, random.usize(..1 << bits), int, 1, step % 3, comm]);
        for _ in 0..random.u64(..4) {
            p.call("MPI_Iprobe", &[1, 7, comm, at(&flag), at(&status)]);
        }
        if step % 5 == 0 {
            p.check();
        }
    }
    p.check();
    p
}

#[test]
fn whatever_is_left_is_everything() {
    assert_eq!(run(1 << 20, 60).snapshots, 0);
    assert!(run(400, 200).snapshots > 5);
}

#[test]
fn a_damaged_journal_is_refused_or_read_never_worse() {
    let p = run(1 << 20, 20);
    for at in 0..p.used {
        let mut bytes = p.tail[..p.used].to_vec();
        bytes[at] ^= 0x41;
        let _ = replay(&bytes, &mut Tape::resume(&p.snapshot, Folding::default()).unwrap());
        let _ = replay(&bytes[..at], &mut Tape::resume(&p.snapshot, Folding::default()).unwrap());
    }
}
