//! The words behind a part's name.

use std::str::FromStr;

use crate::Result;

pub struct Arguments<'a>(pub &'a [String]);

impl Arguments<'_> {
    /// The word at this place as a number, or what it is by default.
    pub fn number(&self, at: usize, default: u64) -> Result<u64> {
        self.0.get(at).map_or(Ok(default), |word| parse(word))
    }

    pub fn word<'w>(&'w self, at: usize, default: &'w str) -> &'w str {
        self.0.get(at).map_or(default, String::as_str)
    }

    /// All words from this place on as numbers, or these if there are none.
    pub fn numbers(&self, from: usize, default: &[u64]) -> Result<Vec<u64>> {
        match self.rest(from) {
            [] => Ok(default.to_vec()),
            words => words.iter().map(|word| parse(word)).collect(),
        }
    }

    pub fn rest(&self, from: usize) -> &[String] {
        self.0.get(from..).unwrap_or_default()
    }
}

pub fn parse<N: FromStr>(word: &str) -> Result<N> {
    word.parse().map_err(|_| format!("{word} is no number").into())
}

/// The words of an environment variable, or of a default.
pub fn from_environment(name: &str, default: &str) -> Vec<String> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty()).unwrap_or_else(|| default.to_owned());
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_numbers_or_defaults() {
        let words = ["4", "16", "x"].map(str::to_owned);
        let given = Arguments(&words);
        assert_eq!(given.number(0, 9).unwrap(), 4);
        assert_eq!(given.number(5, 9).unwrap(), 9);
        assert_eq!(given.number(2, 9).unwrap_err().to_string(), "x is no number");
        assert_eq!(Arguments(&words[..2]).numbers(0, &[1]).unwrap(), [4, 16]);
        assert_eq!(Arguments(&words[..2]).numbers(2, &[1, 2]).unwrap(), [1, 2]);
        assert!(given.numbers(0, &[]).is_err());
        assert_eq!((given.word(2, "y"), given.word(3, "y")), ("x", "y"));
    }

    #[test]
    fn an_empty_variable_is_none() {
        assert_eq!(from_environment("REFRAIN_BENCH_NO_SUCH_VARIABLE", "a  b"), ["a", "b"]);
    }
}
