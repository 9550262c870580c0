//! The programs of `bench/papers` a second time, call by call, for more ranks than a machine has.
//!
//! A program and its pattern make the same calls with the same peers, tags and counts (`tests/papers.rs`): whoever changes one
//! changes the other. What each of them stands for is said in the program.

mod flash;
mod milc;
mod mixture;
mod multipartition;
mod npb;
mod osu;
mod pop;
mod stencils;
mod sweep3d;
mod unstructured;

use crate::grid::Grid;
use crate::rank::{Access, Data, Rank};

pub(crate) use mixture::mixed;

/// A program of the papers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paper {
    Bt,
    Sp,
    Lu,
    Cg,
    Mg,
    Ft,
    Is,
    Ep,
    Milc,
    MilcStrong,
    Sedov,
    Cellular,
    StirTurb,
    Sweep3d,
    Pop,
    Raptor,
    Umt2k,
    Stencil5,
    Stencil9,
    Stencil27,
    Recursive3d,
    Osu(Loop),
}

/// A loop of the OSU micro-benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loop {
    Latency,
    Bandwidth,
    BothWays,
    Allreduce,
    Bcast,
    Reduce,
    Alltoall,
    Allgather,
    Barrier,
    OneSided(Access),
}

impl Paper {
    pub const ALL: [(&'static str, Paper); 33] = [
        ("npb-bt", Paper::Bt),
        ("npb-sp", Paper::Sp),
        ("npb-lu", Paper::Lu),
        ("npb-cg", Paper::Cg),
        ("npb-mg", Paper::Mg),
        ("npb-ft", Paper::Ft),
        ("npb-is", Paper::Is),
        ("npb-ep", Paper::Ep),
        ("milc", Paper::Milc),
        ("milc-strong", Paper::MilcStrong),
        ("flash-sedov", Paper::Sedov),
        ("flash-cellular", Paper::Cellular),
        ("flash-stirturb", Paper::StirTurb),
        ("sweep3d", Paper::Sweep3d),
        ("pop", Paper::Pop),
        ("raptor", Paper::Raptor),
        ("umt2k", Paper::Umt2k),
        ("stencil5", Paper::Stencil5),
        ("stencil9", Paper::Stencil9),
        ("stencil27", Paper::Stencil27),
        ("recursive3d", Paper::Recursive3d),
        ("osu-latency", Paper::Osu(Loop::Latency)),
        ("osu-bw", Paper::Osu(Loop::Bandwidth)),
        ("osu-bibw", Paper::Osu(Loop::BothWays)),
        ("osu-allreduce", Paper::Osu(Loop::Allreduce)),
        ("osu-bcast", Paper::Osu(Loop::Bcast)),
        ("osu-reduce", Paper::Osu(Loop::Reduce)),
        ("osu-alltoall", Paper::Osu(Loop::Alltoall)),
        ("osu-allgather", Paper::Osu(Loop::Allgather)),
        ("osu-barrier", Paper::Osu(Loop::Barrier)),
        ("osu-put", Paper::Osu(Loop::OneSided(Access::Put))),
        ("osu-get", Paper::Osu(Loop::OneSided(Access::Get))),
        ("osu-acc", Paper::Osu(Loop::OneSided(Access::Accumulate))),
    ];

    pub(crate) fn name(self) -> &'static str {
        Paper::ALL.iter().find(|(_, paper)| *paper == self).map_or("", |(name, _)| name)
    }

    /// What the number of ranks must be, if it may not be this.
    pub(crate) fn refuses(self, ranks: u32) -> Option<&'static str> {
        let (legal, what) = match self {
            Paper::Bt | Paper::Sp => (ranks.isqrt().pow(2) == ranks, "a square"),
            Paper::Lu | Paper::Cg | Paper::Mg | Paper::Ft | Paper::MilcStrong => {
                (ranks.is_power_of_two(), "a power of two")
            }
            Paper::Osu(Loop::Latency | Loop::Bandwidth | Loop::BothWays | Loop::OneSided(_)) => {
                (ranks.is_multiple_of(2), "even")
            }
            _ => (true, ""),
        };
        (!legal).then_some(what)
    }

    pub(crate) fn run(self, r: &mut Rank<'_>, steps: u32) {
        match self {
            Paper::Bt => multipartition::bt(r, steps),
            Paper::Sp => multipartition::sp(r, steps),
            Paper::Lu => npb::lu(r, steps),
            Paper::Cg => npb::cg(r, steps),
            Paper::Mg => npb::mg(r, steps),
            Paper::Ft => npb::ft(r, steps),
            Paper::Is => npb::is(r, steps),
            Paper::Ep => npb::ep(r),
            Paper::Milc => milc::weak(r, steps),
            Paper::MilcStrong => milc::strong(r, steps),
            Paper::Sedov => flash::sedov(r, steps),
            Paper::Cellular => flash::cellular(r, steps),
            Paper::StirTurb => flash::stirturb(r, steps),
            Paper::Sweep3d => sweep3d::run(r, steps),
            Paper::Pop => pop::run(r, steps),
            Paper::Raptor => unstructured::raptor(r, steps),
            Paper::Umt2k => unstructured::umt2k(r, steps),
            Paper::Stencil5 => stencils::in_a_line(r, steps),
            Paper::Stencil9 => stencils::run(r, 2, |axes| if axes == 1 { 12 } else { 1 }, steps),
            Paper::Stencil27 | Paper::Recursive3d => stencils::run(r, 3, |axes| [0, 36, 6, 1][axes], steps),
            Paper::Osu(which) => osu::run(r, which, steps),
        }
    }
}

/// What is sent, and what is received.
fn out(count: u32) -> Data {
    Data::new(0, 0, count as i32)
}

fn into(count: u32) -> Data {
    Data::new(1, 0, count as i32)
}

fn sum_all(r: &mut Rank<'_>, count: u32) {
    let world = r.world();
    r.allreduce(out(count), into(count), world);
}

fn sum_at_root(r: &mut Rank<'_>, count: u32) {
    let world = r.world();
    r.reduce(out(count), into(count), 0, world);
}

fn broadcast(r: &mut Rank<'_>, count: u32) {
    let world = r.world();
    r.bcast(out(count), 0, world);
}

fn barrier(r: &mut Rank<'_>) {
    let world = r.world();
    r.barrier(world);
}

/// Between two ranks of the world.
fn send(r: &mut Rank<'_>, count: u32, to: u32, tag: u32) {
    let world = r.world();
    r.send(out(count), to, tag as i32, world);
}

fn receive(r: &mut Rank<'_>, count: u32, from: u32, tag: u32) {
    let world = r.world();
    r.recv_with_status(into(count), from, tag as i32, world);
}

fn start_send(r: &mut Rank<'_>, count: u32, to: u32, tag: u32) {
    let world = r.world();
    r.isend(out(count), to, tag as i32, world);
}

fn start_receive(r: &mut Rank<'_>, count: u32, from: u32, tag: u32) {
    let world = r.world();
    r.irecv(into(count), from, tag as i32, world);
}

/// Part `at` of a line that is cut into `parts`: the first ones are longer where it does not divide.
fn share(line: u32, parts: u32, at: u32) -> u32 {
    line / parts + u32::from(at < line % parts)
}

/// Who lies so far away along a dimension.
fn along(grid: &Grid, rank: u32, dimension: usize, by: i32) -> Option<u32> {
    let way: Vec<i32> = (0..grid.dims.len()).map(|d| if d == dimension { by } else { 0 }).collect();
    grid.neighbour(rank, &way)
}
