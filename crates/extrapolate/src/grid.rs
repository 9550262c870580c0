//! How ranks may lie on a grid: rules from their number to the lengths of its sides. The last coordinate runs fastest.

use refrain_model::grid::balanced;

/// A rule that gives every number of ranks its grid, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    Line,
    /// As near to a cube of so many dimensions as the factors allow, longest side first: what `MPI_Dims_create` aims at.
    Balanced(usize),
    /// The same, longest side last.
    Reversed(usize),
    /// As many rows as it takes, of so many ranks.
    Rows(u32),
    /// So many rows.
    Columns(u32),
}

/// Simple ones first.
pub const RULES: [Rule; 14] = [
    Rule::Line,
    Rule::Balanced(2),
    Rule::Reversed(2),
    Rule::Balanced(3),
    Rule::Reversed(3),
    Rule::Balanced(4),
    Rule::Reversed(4),
    Rule::Rows(2),
    Rule::Rows(4),
    Rule::Rows(8),
    Rule::Rows(16),
    Rule::Columns(2),
    Rule::Columns(4),
    Rule::Columns(8),
];

impl Rule {
    pub fn dims(self, ranks: u32) -> Option<Vec<u32>> {
        match self {
            Rule::Line => Some(vec![ranks]),
            Rule::Balanced(dimensions) => Some(balanced(ranks, dimensions)),
            Rule::Reversed(dimensions) => Some(balanced(ranks, dimensions).into_iter().rev().collect()),
            Rule::Rows(of) => ranks.is_multiple_of(of).then(|| vec![ranks / of, of]),
            Rule::Columns(of) => ranks.is_multiple_of(of).then(|| vec![of, ranks / of]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids() {
        assert_eq!(Rule::Balanced(2).dims(144), Some(vec![12, 12]));
        assert_eq!(Rule::Balanced(3).dims(36), Some(vec![4, 3, 3]));
        assert_eq!(Rule::Reversed(3).dims(16), Some(vec![2, 2, 4]));
        assert_eq!(Rule::Rows(4).dims(10), None);
    }
}
