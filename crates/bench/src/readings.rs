//! Tables of names and numbers, as programs print them, and the best of several.

use crate::Result;

/// The lowest number of each name, in the order in which names came.
#[derive(Debug, Default, PartialEq)]
pub struct Best(Vec<(String, f64)>);

impl Best {
    pub fn take(&mut self, name: &str, number: f64) {
        match self.0.iter_mut().find(|(there, _)| there == name) {
            Some((_, least)) => *least = least.min(number),
            None => self.0.push((name.to_owned(), number)),
        }
    }

    /// Lines of a name and a number.
    pub fn take_lines(&mut self, text: &str) -> Result<()> {
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, number] = words[..] else { return Err(format!("no name and number: {line}").into()) };
            self.take(name, number.parse().map_err(|_| format!("no number: {line}"))?);
        }
        Ok(())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Not a number where the name never came.
    pub fn of(&self, name: &str) -> f64 {
        self.0.iter().find(|(there, _)| there == name).map_or(f64::NAN, |(_, number)| *number)
    }
}

/// The lowest of several measurements.
pub fn best_of(times: usize, mut measure: impl FnMut() -> Result<f64>) -> Result<f64> {
    (0..times).try_fold(f64::INFINITY, |least, _| Ok(least.min(measure()?)))
}

/// The first number after this text; thousands may be marked by commas.
pub fn number_after(text: &str, mark: &str) -> Option<f64> {
    let rest = text[text.find(mark)? + mark.len()..].trim_start();
    let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == ',' || *c == '.').collect();
    digits.replace(',', "").trim_end_matches('.').parse().ok()
}

/// The first size after this text, in bytes: `13.4 MiB`.
pub fn size_after(text: &str, mark: &str) -> Option<f64> {
    let mut words = text[text.find(mark)? + mark.len()..].split_whitespace();
    let amount: f64 = words.next()?.parse().ok()?;
    let unit = words.next()?;
    let power = ["B", "KiB", "MiB", "GiB", "TiB"].iter().position(|name| *name == unit)?;
    Some(amount * 1024f64.powi(power as i32))
}

/// The last number before this text.
pub fn number_before(text: &str, mark: &str) -> Option<f64> {
    let word = text[..text.find(mark)?].split_whitespace().next_back()?;
    word.replace(',', "").parse().ok()
}

/// Numbers among the words of a line.
pub fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().filter_map(|word| word.trim_end_matches(['x', ',']).parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_the_lowest_of_each_name() {
        let mut best = Best::default();
        best.take_lines("b 3.5\na 10\n").unwrap();
        best.take_lines("a 9\nb 4\n").unwrap();
        assert_eq!(best.names().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!((best.of("a"), best.of("b")), (9.0, 3.5));
        assert!(best.of("c").is_nan());
    }

    #[test]
    fn what_is_no_table_is_an_error() {
        assert!(Best::default().take_lines("a b c").is_err());
        assert!(Best::default().take_lines("a b").is_err());
    }

    #[test]
    fn the_best_of_several_measurements() {
        let mut next = [3.0, 1.0, 2.0].into_iter();
        assert_eq!(best_of(3, || Ok(next.next().unwrap())).unwrap(), 1.0);
        assert!(best_of(2, || Err("no".into())).is_err());
    }

    #[test]
    fn numbers_in_sentences() {
        assert_eq!(number_after("folded into   1,234 symbols", "folded into"), Some(1234.0));
        assert_eq!(number_after("took 1.5.", "took"), Some(1.5));
        assert_eq!(number_after("nothing", "took"), None);
        assert_eq!(size_after("memory: 812 B at most", "memory: "), Some(812.0));
        assert_eq!(size_after("memory: 1.50 KiB at most", "memory: "), Some(1536.0));
        assert_eq!(size_after("memory: 2.00 GiB\n", "memory: "), Some(2147483648.0));
        assert_eq!(size_after("memory: 2.00 s", "memory: "), None);
        assert_eq!(number_before("4 ranks, 12,345 calls", " calls"), Some(12345.0));
        assert_eq!(numbers("din 12 1.50 2.00x -"), [12.0, 1.5, 2.0]);
    }
}
