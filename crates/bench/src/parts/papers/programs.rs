//! The programs that the papers are measured with, and what the papers say of each.

/// A program, as a pattern of simulated ranks.
pub struct Program {
    pub pattern: &'static str,
    /// Few: most programs take no more for a hundred of them.
    pub steps: u32,
    /// On more ranks it takes too long.
    pub most: u64,
    pub figures: &'static [Figure],
    /// P is Pilgrim, S ScalaTrace, T ScalaTrace II. Plots have no numbers.
    pub says: &'static str,
}

/// A number that a paper states.
pub struct Figure {
    pub paper: &'static str,
    /// A figure, or a section.
    pub place: &'static str,
    pub ranks: u64,
    /// Of their trace.
    pub bytes: Option<u32>,
    /// Their "unique grammars".
    pub kinds: Option<u32>,
}

pub const PAPERS: [&str; 2] = ["Pilgrim", "ScalaTrace"];

const fn pilgrim(place: &'static str, ranks: u64, bytes: Option<u32>, kinds: Option<u32>) -> Figure {
    Figure { paper: PAPERS[0], place, ranks, bytes, kinds }
}

const fn scalatrace(place: &'static str, ranks: u64, bytes: u32) -> Figure {
    Figure { paper: PAPERS[1], place, ranks, bytes: Some(bytes), kinds: None }
}

const fn program(
    pattern: &'static str,
    steps: u32,
    most: u64,
    figures: &'static [Figure],
    says: &'static str,
) -> Program {
    Program { pattern, steps, most, figures, says }
}

const fn osu(pattern: &'static str, steps: u32) -> Program {
    program(pattern, steps, 16_384, &[], "P section 4.1: a few KB")
}

pub static PROGRAMS: [Program; 35] = [
    program(
        "npb-bt",
        2,
        16_384,
        &[],
        "P figure 5: grows below linear; S figure 10: below linear; T figure 7: constant only if lossy",
    ),
    program(
        "npb-sp",
        2,
        16_384,
        &[],
        "P figure 5: grows below linear; T figure 7: near constant only if lossy",
    ),
    program(
        "npb-lu",
        2,
        16_384,
        &[],
        "P figure 5: constant from 16 ranks; S figure 10: near constant; T figure 7",
    ),
    program(
        "npb-cg",
        1,
        16_384,
        &[],
        "P figure 5: grows below linear; S figure 10: below linear; T figure 7: constant only if lossy",
    ),
    program("npb-mg", 2, 16_384, &[], "S figure 10: below linear; T figure 7"),
    program("npb-ft", 2, 16_384, &[], "S figure 10: near constant"),
    program("npb-is", 2, 1024, &[], "S figure 10: does not scale"),
    program("npb-ep", 1, 16_384, &[], "S figure 10: near constant"),
    program(
        "milc",
        1,
        16_384,
        &[pilgrim("figure 9", 16_384, Some(627_000), Some(27))],
        "P figure 9: constant from 64 ranks",
    ),
    program(
        "milc-strong",
        1,
        16_384,
        &[
            pilgrim("figure 9", 64, None, Some(27)),
            pilgrim("figure 9", 1024, None, Some(54)),
            pilgrim("figure 9", 16_384, Some(1_000_000), Some(108)),
        ],
        "P figure 9: grows in three stages, to about 1 MB",
    ),
    program(
        "flash-sedov",
        4,
        16_384,
        &[pilgrim("section 4.3", 4096, None, Some(74))],
        "P figure 6: constant from 128 ranks, 74 kinds at most",
    ),
    program(
        "flash-cellular",
        4,
        4096,
        &[pilgrim("figure 6", 4096, Some(2_500_000), Some(498))],
        "P figure 6: constant from 1,024 ranks, grows with refinements",
    ),
    program(
        "flash-stirturb",
        4,
        16_384,
        &[pilgrim("figure 6", 4096, Some(4000), Some(2))],
        "P figure 6: constant from 64 ranks",
    ),
    program("sweep3d", 1, 16_384, &[], "T figure 7"),
    program("pop", 3, 16_384, &[], "T figure 7: near constant only with all optimisations"),
    program("raptor", 1, 1024, &[], "S figure 10: below linear"),
    program("umt2k", 1, 1024, &[], "S figure 10: does not scale"),
    program("stencil2d", 2, 16_384, &[], "P section 4.1: constant from 9 ranks"),
    program("torus3d", 2, 16_384, &[], "P section 4.1: constant from 27 ranks"),
    program("stencil5", 2, 16_384, &[scalatrace("figure 9", 343, 3500)], "S figure 9: constant"),
    program("stencil9", 2, 16_384, &[scalatrace("figure 9", 324, 10_000)], "S figure 9: constant"),
    program("stencil27", 2, 16_384, &[scalatrace("figure 9", 343, 14_000)], "S figure 9: constant"),
    program("recursive3d", 2, 16_384, &[], "S figure 9 (h): folding the recursion saves orders of magnitude"),
    osu("osu-latency", 2),
    osu("osu-bw", 1),
    osu("osu-bibw", 1),
    osu("osu-allreduce", 2),
    osu("osu-bcast", 2),
    osu("osu-reduce", 2),
    osu("osu-alltoall", 2),
    osu("osu-allgather", 2),
    osu("osu-barrier", 2),
    osu("osu-put", 2),
    osu("osu-get", 2),
    osu("osu-acc", 2),
];

/// Table 1 of ScalaTrace: a program of `bench/papers`, its time steps, and what the paper's traces show of them.
pub const TIME_STEPS: [(&str, u64, &str); 5] = [
    ("bt.f90", 200, "200"),
    ("cg.c", 75, "1 + 37 x 2"),
    ("is.c", 10, "2 x 5, 2 x 2 + 2 x 3"),
    ("lu.c", 250, "250"),
    ("mg.c", 20, "20, 2 x 10"),
];
