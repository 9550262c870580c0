//! A trace as a 2D five-point stencil on a grid of ranks without wrap-around would give it: nine cohorts (corners,
//! edges, interior), a start-up, a loop of receives, sends, Waitall and Allreduce, times with noise.

#![allow(dead_code)] // Not every test needs all of it.

use refrain_fold::bundle::{Bundle, SymbolEntry, Tally, ThreadPart, merge};
use refrain_fold::grammar::Grammar;
use refrain_fold::ranks::RankList;
use refrain_fold::stream::{Folder, Stream};
use refrain_tracefile::{Meta, Profile, Trace};

/// Of its own: the fixtures are made of these numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

pub fn stream(values: &[i64]) -> Stream {
    let mut folder = Folder::new();
    values.iter().for_each(|&value| folder.push(value));
    folder.finish()
}

/// (function id, communicator, datatype, operation, bits of what is null): the kind of thing symbols are made of.
struct Calls {
    symbols: Vec<SymbolEntry>,
    sequence: Vec<u32>,
    values: Vec<Vec<Vec<i64>>>,
    random: Random,
}

impl Calls {
    fn new(rank: u32) -> Calls {
        let random = Random(88172645463325252 + u64::from(rank));
        Calls { symbols: Vec::new(), sequence: Vec::new(), values: Vec::new(), random }
    }

    /// A loop that was recorded four times is turned into as many as asked for, without spelling it out.
    fn finish(self, rank: u32, steps: u64, digest: u64) -> Bundle {
        let mut structure: Grammar = self.sequence.iter().copied().collect();
        for item in structure.rules.iter_mut().flatten() {
            if item.count == 4 {
                item.count = (steps / 10).max(1);
            }
        }
        let lanes =
            self.values.iter().map(|lanes| lanes.iter().map(|values| stream(values)).collect()).collect();
        let digest = digest.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let part = ThreadPart {
            thread: 0,
            structure: structure.into(),
            times: Vec::new(),
            lanes,
            lengths: Vec::new(),
            digest,
        };
        Bundle::of_rank((rank, 0), self.symbols, vec![part]).unwrap()
    }

    fn call(&mut self, bytes: &[u8], values: &[i64]) {
        let symbol = match self.symbols.iter().position(|s| *s.bytes == *bytes) {
            Some(known) => known,
            None => {
                let tally = Tally { total: 0, min: u64::MAX, max: 0 };
                self.symbols.push(SymbolEntry {
                    bytes: bytes.into(),
                    site: 0,
                    lanes: values.len() as u16,
                    tally,
                    classes: Default::default(),
                });
                self.values.push(vec![Vec::new(); values.len()]);
                self.symbols.len() - 1
            }
        };
        self.sequence.push(symbol as u32);
        for (lane, &value) in self.values[symbol].iter_mut().zip(values) {
            lane.push(value);
        }
        let scale = 1 << (7 + u32::from(bytes[0]) % 9);
        let time =
            scale + self.random.below(scale / 2) + self.random.below(20) / 19 * self.random.below(9 * scale);
        self.symbols[symbol].tally.add(Tally { total: time, min: time, max: time });
    }
}

pub fn rank(rank: u32, width: u32, steps: u64) -> Bundle {
    let mut calls = Calls::new(rank);
    let (x, y) = (rank % width, rank / width);
    let n = i64::from(width);
    calls.call(&[149, 1], &[1, 0]);
    calls.call(&[62, 0, 0], &[n * n, 0]);
    calls.call(&[59, 0, 0], &[0, 0]);
    calls.call(&[100, 1], &[n * n, 2, n, n, 0]);
    calls.call(&[24, 0, 2, 0], &[2, n, n, 0, 0, 0, 0]);
    calls.call(&[59, 0, 2], &[0, 0]);
    calls.call(&[12, 0, 2, 3], &[0, 0, 8, 1, 0]);
    for direction in [0, 1] {
        let edges = [x > 0, x + 1 < width, y > 0, y + 1 < width];
        let (low, high) = (edges[2 - 2 * direction], edges[3 - 2 * direction]);
        let bits = u8::from(low) | u8::from(high) << 1;
        let far = if direction == 0 { n } else { 1 };
        let peers: Vec<i64> = [(low, -far), (high, far)].iter().filter(|p| p.0).map(|p| p.1).collect();
        calls.call(&[27, 0, 2, bits], &[&[direction as i64, 1][..], &peers, &[0]].concat());
    }
    calls.call(&[141, 0, 5, 3], &[1024, 1, 1026, 0]);
    calls.call(&[139, 0, 5], &[0]);
    let peers = [(x > 0, -1, 0i64), (x + 1 < width, 1, 1), (y > 0, -n, 2), (y + 1 < width, n, 3)];
    for step in 0..steps.min(40) {
        for (function, base) in [(172u8, 0), (177, 4)] {
            for (there, peer, side) in peers {
                let null = u8::from(!there);
                let datatype = if side < 2 { 5 } else { 3 };
                let length = if side < 2 { 1 } else { 1024 };
                let offset = [8192 + 8, 8192 + 16 * 511, 8, 1026 * 8 * 1024][side as usize] + 64 * base;
                let request = side + base;
                if there {
                    calls.call(
                        &[function, 0, 2, datatype, null],
                        &[1 + step as i64 % 2, offset, length, peer, side ^ (base / 4), request, 0],
                    );
                } else {
                    calls.call(
                        &[function, 0, 2, datatype, null],
                        &[1 + step as i64 % 2, offset, length, side ^ (base / 4), request, 0],
                    );
                }
            }
        }
        // Requests, and of each the status: source, tag, bytes; a receive from nobody has fewer.
        let mut values = vec![8, 0, 1, 2, 3, 4, 5, 6, 7, 0];
        for (there, peer, side) in peers {
            values.extend(if there { [peer, side, 8192 >> (side / 2)] } else { [-3, -2, 0] });
        }
        calls.call(&[220, 1, 8, edges_byte(peers)], &values);
        if step % 10 == 9 {
            calls.call(&[5, 0, 2, 3, 1], &[2, 0, 3, 0, 1, 0]);
        }
    }
    calls.call(&[180, 0, 2, 3, 2], &[2, 0, 3, 0, 1, 0, 0]);
    calls.call(&[8, 0, 2], &[0]);
    calls.call(&[140, 5], &[0]);
    calls.call(&[35, 2], &[0]);
    calls.call(&[110, 0], &[0]);

    let edge = |at: u32| if at == 0 { 0 } else { 1 + u64::from(at + 1 == width) };
    calls.finish(rank, steps, edge(x) * 3 + edge(y) + 1)
}

fn edges_byte(peers: [(bool, i64, i64); 4]) -> u8 {
    peers.iter().fold(0, |bits, peer| bits << 1 | u8::from(!peer.0))
}

pub fn trace(width: u32, steps: u64) -> Trace {
    let ranks = width * width;
    let mut bundle = (0..ranks).fold(Bundle::default(), |all, r| merge(all, rank(r, width, steps)).unwrap());
    bundle.canonical().unwrap();
    bundle.world = ranks;
    let words = ["mpiexec", "-n", &ranks.to_string(), "./stencil", &steps.to_string()].map(String::from);
    told(Trace {
        meta: Meta {
            refrain_version: "0.1.0".into(),
            command: words.into(),
            library: "MPICH Version: 4.2.1".into(),
            abi: "mpich".into(),
            ranks,
            hosts: vec![("node0017".into(), RankList::from_sorted(&(0..ranks).collect::<Vec<_>>()))],
            cores: Vec::new(),
            started: 1_794_711_073,
            wall_ns: 1_294_558_112,
            options: vec![("time".into(), "mean".into()), ("pointers".into(), "on".into())],
            split: true,
            timed: true,
            complete: true,
            notes: Vec::new(),
            memory: None,
            clocks: None,
            merge_ms: None,
            flight: Vec::new(),
            paths: None,
            profile: Some(profile(ranks)),
        },
        bundle,
    })
}

/// Most ranks spend their time alike; some computed for longer.
fn profile(ranks: u32) -> Profile {
    let one = |rank: u32| {
        let outside =
            if rank % 7 == 3 { 1_250_225_124 } else { 1_230_882_120 + 31_000 * u64::from(rank % 5) };
        let inside = 1_294_558_112 - outside;
        Profile::of_rank(rank, (outside, inside), [(20, 100), (30, inside / 4), (40, inside - inside / 4)])
    };
    let mut all = (0..ranks).fold(Profile::default(), |all, rank| all.join(&one(rank)));
    all.settle();
    all
}

/// With times as a file tells them, to some precision, and with streams that are told together as rows of numbers.
pub fn told(mut trace: Trace) -> Trace {
    let told = refrain_tracefile::read(&refrain_tracefile::write(&trace)).unwrap();
    for (symbol, told) in trace.bundle.symbols.iter_mut().zip(told.bundle.symbols) {
        let kinds = |symbol: &SymbolEntry| -> Vec<_> {
            symbol.classes.list().iter().map(|class| (class.kind, class.count)).collect()
        };
        assert_eq!((kinds(symbol), symbol.classes.together), (kinds(&told), told.classes.together));
        (symbol.tally, symbol.classes) = (told.tally, told.classes);
    }
    for (stream, told) in trace.bundle.streams.iter_mut().zip(told.bundle.streams) {
        if *stream != told {
            assert_eq!(stream.flat(1 << 16).unwrap(), told.flat(1 << 16).unwrap());
            *stream = told;
        }
    }
    trace
}
