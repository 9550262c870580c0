//! What a misspelt name was probably meant to be.

/// The one of `all` that takes the fewest changed letters, if those are few. Upper and lower case count as the same.
pub fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let few = (name.len() / 4).max(1);
    let near = all.map(|other| (distance(&name, &other.to_ascii_lowercase()), other));
    near.min_by_key(|(changes, _)| *changes).filter(|(changes, _)| *changes <= few).map(|(_, other)| other)
}

/// Letters to insert, remove or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b = b.as_bytes();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_changed() {
        for (a, b, expected) in [("", "", 0), ("a", "", 1), ("send", "sned", 2), ("bcast", "ibcast", 1)] {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a} {b}");
        }
    }

    #[test]
    fn far_is_no_suggestion() {
        let all = ["p2p", "coll", "MPI_Send"];
        assert_eq!(nearest("col", all.into_iter()), Some("coll"));
        assert_eq!(nearest("mpi_sned", all.into_iter()), Some("MPI_Send"));
        assert_eq!(nearest("window", all.into_iter()), None);
        assert_eq!(nearest("", all.into_iter()), None);
    }
}
