//! Ranks on a Cartesian grid, numbered as MPI does: the last dimension runs fastest.

use refrain_model::grid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    pub dims: Vec<u32>,
    pub periodic: bool,
}

impl Grid {
    /// As near to a cube as the factors of `size` allow, longest dimension first (what `MPI_Dims_create` aims at).
    pub fn balanced(size: u32, dimensions: usize, periodic: bool) -> Grid {
        Grid { dims: grid::balanced(size, dimensions), periodic }
    }

    pub fn coords(&self, rank: u32) -> Vec<u32> {
        grid::coordinates(&self.dims, rank)
    }

    pub fn rank(&self, coords: &[u32]) -> u32 {
        self.dims.iter().zip(coords).fold(0, |rank, (dim, at)| rank * dim + at)
    }

    /// The rank that lies `by` away in each dimension, if there is one.
    pub fn neighbour(&self, rank: u32, by: &[i32]) -> Option<u32> {
        let mut coords = self.coords(rank);
        for ((at, &dim), &by) in coords.iter_mut().zip(&self.dims).zip(by) {
            let to = i64::from(*at) + i64::from(by);
            *at = if self.periodic {
                to.rem_euclid(dim.into()) as u32
            } else {
                u32::try_from(to).ok().filter(|to| *to < dim)?
            };
        }
        Some(self.rank(&coords))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(size: u32, dimensions: usize, dims: &[u32]) {
        let grid = Grid::balanced(size, dimensions, false);
        assert_eq!(grid.dims, dims);
        assert!((0..size).all(|rank| grid.rank(&grid.coords(rank)) == rank));
    }

    #[test]
    fn dimensions_are_balanced_and_ranks_keep_their_place() {
        check(1, 3, &[1, 1, 1]);
        check(64, 3, &[4, 4, 4]);
        check(64, 2, &[8, 8]);
        check(30, 3, &[5, 3, 2]);
        check(7, 2, &[7, 1]);
        check(1024, 4, &[8, 8, 4, 4]);
    }

    #[test]
    fn neighbours() {
        let open = Grid { dims: vec![3, 4], periodic: false };
        let torus = Grid { periodic: true, ..open.clone() };
        assert_eq!(open.neighbour(5, &[-1, 0]), Some(1));
        assert_eq!(open.neighbour(1, &[-1, 0]), None);
        assert_eq!(torus.neighbour(1, &[-1, 0]), Some(9));
        assert_eq!(torus.neighbour(11, &[1, 1]), Some(0));
    }
}
