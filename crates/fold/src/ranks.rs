//! Sets of ranks as starts, strides and counts in several dimensions.

/// A set of ranks, kept folded. Equal sets have equal representations.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RankList {
    pub parts: Vec<Part>,
}

/// `start + i0*stride0 + i1*stride1 + ...` for every `0 <= ik < countk`; a single rank has no dimensions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Part {
    pub start: u32,
    /// (count, stride), outermost first.
    pub dims: Vec<(u32, u32)>,
}
