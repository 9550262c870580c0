//! Patterns by name.

use std::fmt;
use std::str::FromStr;

use crate::papers::Paper;
use crate::patterns;
use crate::rank::Rank;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    Stencil {
        dimensions: u32,
        periodic: bool,
        /// With `MPI_Cart_create`, where absent neighbours are `MPI_PROC_NULL`; otherwise they are left out.
        cart: bool,
        /// Also across edges and corners: 27 points in three dimensions.
        corners: bool,
    },
    Ring,
    /// An exchange with rank xor 2^k, for all k.
    Butterfly,
    /// On a square grid, with the rank on the other side of the diagonal.
    Transpose,
    Pipeline,
    /// To the root and back along a binary tree.
    Tree,
    MasterWorker,
    /// Collectives on row and column communicators.
    RowColumn,
    /// As in an integer sort: counts that depend on data.
    Alltoallv,
    /// So many kinds of ranks, each with another structure and other numbers.
    Behaviours(u32),
    /// So many kinds of ranks, all with one structure and with numbers that are no function of the rank.
    Values(u32),
    /// Every rank makes calls that have nothing to do with one another, nor with those of others: nothing folds.
    Random,
    Paper(Paper),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no pattern is called {0:?}; there are stencilDd, torusDd (periodic), cart-stencilDd, cart-torusDd, boxDd, \
     boxtorusDd (with corners; D is 1 to 4), ring, butterfly, transpose, pipeline, tree, masterworker, rowcol, \
     alltoallv, random, behaviours:K, values:K, and programs of the papers: {papers}",
    papers = Paper::ALL.map(|(name, _)| name).join(", ")
)]
pub struct UnknownPattern(pub String);

const PLAIN: [(&str, Pattern); 9] = [
    ("ring", Pattern::Ring),
    ("butterfly", Pattern::Butterfly),
    ("transpose", Pattern::Transpose),
    ("pipeline", Pattern::Pipeline),
    ("tree", Pattern::Tree),
    ("masterworker", Pattern::MasterWorker),
    ("rowcol", Pattern::RowColumn),
    ("alltoallv", Pattern::Alltoallv),
    ("random", Pattern::Random),
];

impl Pattern {
    /// What the pattern does on one rank, between `MPI_Init` and `MPI_Finalize`.
    pub fn run(self, rank: &mut Rank<'_>, steps: u32) {
        patterns::run(self, rank, steps);
    }

    /// What the number of ranks must be, if it may not be this.
    pub(crate) fn refuses(self, ranks: u32) -> Option<&'static str> {
        match self {
            Pattern::Paper(paper) => paper.refuses(ranks),
            _ => None,
        }
    }
}

impl FromStr for Pattern {
    type Err = UnknownPattern;

    fn from_str(name: &str) -> Result<Pattern, UnknownPattern> {
        let unknown = || UnknownPattern(name.to_owned());
        if let Some((_, pattern)) = PLAIN.iter().find(|(known, _)| *known == name) {
            return Ok(*pattern);
        }
        if let Some((_, paper)) = Paper::ALL.iter().find(|(known, _)| *known == name) {
            return Ok(Pattern::Paper(*paper));
        }
        if let Some((kind, k)) = name.split_once(':') {
            let k = k.parse().ok().filter(|k| *k > 0).ok_or_else(unknown)?;
            return match kind {
                "behaviours" => Ok(Pattern::Behaviours(k)),
                "values" => Ok(Pattern::Values(k)),
                _ => Err(unknown()),
            };
        }
        let (cart, rest) = name.strip_prefix("cart-").map_or((false, name), |rest| (true, rest));
        let rest = rest.strip_suffix('d').ok_or_else(unknown)?;
        let last = rest.len().checked_sub(1).ok_or_else(unknown)?;
        let (shape, dimensions) = rest.split_at_checked(last).ok_or_else(unknown)?;
        let dimensions = dimensions.parse().ok().filter(|d| (1..=4).contains(d)).ok_or_else(unknown)?;
        let (periodic, corners) = match shape {
            "stencil" => (false, false),
            "torus" => (true, false),
            "box" if !cart => (false, true),
            "boxtorus" if !cart => (true, true),
            _ => return Err(unknown()),
        };
        Ok(Pattern::Stencil { dimensions, periodic, cart, corners })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Pattern::Stencil { dimensions, periodic, cart, corners } => {
                let shape = match (periodic, corners) {
                    (false, false) => "stencil",
                    (true, false) => "torus",
                    (false, true) => "box",
                    (true, true) => "boxtorus",
                };
                write!(f, "{}{shape}{dimensions}d", if cart { "cart-" } else { "" })
            }
            Pattern::Behaviours(k) => write!(f, "behaviours:{k}"),
            Pattern::Values(k) => write!(f, "values:{k}"),
            Pattern::Paper(paper) => write!(f, "{}", paper.name()),
            plain => {
                let name = PLAIN.iter().find(|(_, known)| *known == plain).map_or("", |(name, _)| *name);
                write!(f, "{name}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        let stencils = ["stencil1d", "torus4d", "cart-stencil3d", "cart-torus2d", "box3d", "boxtorus3d"];
        for name in stencils
            .into_iter()
            .chain(PLAIN.map(|p| p.0))
            .chain(Paper::ALL.map(|p| p.0))
            .chain(["behaviours:9", "values:500"])
        {
            assert_eq!(name.parse::<Pattern>().map(|p| p.to_string()), Ok(name.to_owned()));
        }
        for name in
            ["", "d", "stencil", "stencil0d", "stencil5d", "cart-box3d", "behaviours:0", "ringd", "é3d", "3d"]
        {
            assert_eq!(name.parse::<Pattern>(), Err(UnknownPattern(name.to_owned())));
        }
    }
}
