//! Ranks on a Cartesian grid. The last coordinate runs fastest, as MPI numbers them.

/// The sides of a grid as near to a cube as the factors of `ranks` allow, longest first: what `MPI_Dims_create` aims at.
pub fn balanced(ranks: u32, dimensions: usize) -> Vec<u32> {
    let mut factors = Vec::new();
    let (mut left, mut factor) = (ranks, 2u32);
    while u64::from(factor).pow(2) <= u64::from(left) {
        while left.is_multiple_of(factor) {
            factors.push(factor);
            left /= factor;
        }
        factor += 1;
    }
    if left > 1 {
        factors.push(left);
    }
    let mut dims = vec![1; dimensions];
    for factor in factors.into_iter().rev() {
        if let Some(shortest) = dims.iter_mut().min() {
            *shortest *= factor;
        }
    }
    dims.sort_unstable_by(|a, b| b.cmp(a));
    dims
}

/// Where a rank lies.
pub fn coordinates(dims: &[u32], rank: u32) -> Vec<u32> {
    let mut left = rank;
    let mut at: Vec<u32> = dims.iter().rev().map(|dim| (left % dim, left /= dim).0).collect();
    at.reverse();
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids() {
        assert_eq!(balanced(1, 3), [1, 1, 1]);
        assert_eq!(balanced(36, 3), [4, 3, 3]);
        assert_eq!(balanced(7, 2), [7, 1]);
        assert_eq!(balanced(u32::MAX, 1), [u32::MAX]);
        assert_eq!(coordinates(&[4, 3, 3], 17), [1, 2, 2]);
    }
}
