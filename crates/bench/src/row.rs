//! A row: what was measured, by names that stay the same from run to run.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize, Serializer};

/// One line of a table. `part`, `table` and `keys` say which; a comparison finds the same row of another run by them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub part: String,
    pub table: String,
    pub keys: IndexMap<String, String>,
    pub values: IndexMap<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// None: it could not be had within the time that was given for it.
    #[serde(serialize_with = "shortest")]
    pub amount: Option<f64>,
    pub unit: Unit,
    /// Whether it is another in each run although its unit is exact: a program polled, or a size has times in it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub varies: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    #[serde(rename = "ns")]
    Ns,
    #[serde(rename = "us")]
    Us,
    #[serde(rename = "ms")]
    Ms,
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "B")]
    Bytes,
    /// Of a trace that keeps times, which are others in each run.
    #[serde(rename = "B with times")]
    TimedBytes,
    /// Bytes for each call, reference or number.
    #[serde(rename = "B each")]
    BytesEach,
    #[serde(rename = "KiB")]
    KiB,
    #[serde(rename = "MiB")]
    MiB,
    #[serde(rename = "")]
    Count,
    #[serde(rename = "instructions")]
    Instructions,
    /// Millions a second.
    #[serde(rename = "M/s")]
    MillionsASecond,
    #[serde(rename = "x")]
    Ratio,
    /// Of two times.
    #[serde(rename = "x of time")]
    TimeRatio,
    /// Of times.
    #[serde(rename = "%")]
    Percent,
    /// Percent of a count.
    #[serde(rename = "% of all")]
    Share,
}

impl Unit {
    pub fn of(self, amount: impl Amount) -> Value {
        Value { amount: amount.amount(), unit: self, varies: false }
    }

    pub fn name(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::Us => "us",
            Unit::Ms => "ms",
            Unit::Seconds => "s",
            Unit::Bytes => "B",
            Unit::TimedBytes => "B with times",
            Unit::BytesEach => "B each",
            Unit::KiB => "KiB",
            Unit::MiB => "MiB",
            Unit::Count => "",
            Unit::Instructions => "instructions",
            Unit::MillionsASecond => "M/s",
            Unit::Ratio => "x",
            Unit::TimeRatio => "x of time",
            Unit::Percent => "%",
            Unit::Share => "% of all",
        }
    }

    /// Whether the same build on the same machine gives another value next time.
    fn noisy(self) -> bool {
        match self {
            Unit::Bytes
            | Unit::TimedBytes
            | Unit::BytesEach
            | Unit::Count
            | Unit::Instructions
            | Unit::Ratio
            | Unit::Share => false,
            Unit::Ns | Unit::Us | Unit::Ms | Unit::Seconds => true,
            Unit::KiB | Unit::MiB | Unit::MillionsASecond | Unit::TimeRatio | Unit::Percent => true,
        }
    }

    fn decimals(self) -> usize {
        match self {
            Unit::Bytes | Unit::TimedBytes | Unit::KiB | Unit::Count | Unit::Instructions => 0,
            Unit::Ns | Unit::Ms | Unit::MiB | Unit::MillionsASecond => 1,
            Unit::Us | Unit::Ratio | Unit::TimeRatio | Unit::Percent | Unit::Share => 2,
            Unit::BytesEach => 3,
            Unit::Seconds => 4,
        }
    }
}

impl Value {
    /// It is another in each run, so it is compared as a time is.
    pub fn varies(self) -> Value {
        Value { varies: true, ..self }
    }

    pub fn noisy(&self) -> bool {
        self.varies || self.unit.noisy()
    }

    /// From how many percent on a change is worth a line; so many for what is noisy.
    pub fn least_change(&self, noisy: f64) -> f64 {
        match self.unit {
            _ if self.noisy() => noisy,
            // A library that polls takes some more or less.
            Unit::Instructions => 2.0,
            Unit::TimedBytes => 5.0,
            _ => 0.0,
        }
    }

    /// As a table shows it.
    pub fn text(&self) -> String {
        self.amount.map_or_else(|| "-".to_owned(), |amount| format!("{amount:.*}", self.unit.decimals()))
    }

    /// With its unit, as a sentence shows it.
    pub fn words(&self) -> String {
        match self.amount {
            Some(_) => format!("{} {}", self.text(), self.unit.name()).trim_end().to_owned(),
            None => "none".to_owned(),
        }
    }
}

/// What a value can be made of.
pub trait Amount {
    fn amount(self) -> Option<f64>;
}

impl Amount for f64 {
    fn amount(self) -> Option<f64> {
        self.is_finite().then_some(self)
    }
}

impl Amount for u64 {
    fn amount(self) -> Option<f64> {
        Some(self as f64)
    }
}

impl<A: Amount> Amount for Option<A> {
    fn amount(self) -> Option<f64> {
        self.and_then(Amount::amount)
    }
}

/// A whole number is written without a point.
fn shortest<S: Serializer>(amount: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    match amount {
        Some(whole) if whole.fract() == 0.0 && whole.abs() < 1e15 => to.serialize_i64(*whole as i64),
        Some(other) => to.serialize_f64(*other),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn row(table: &str, keys: &[(&str, &str)], values: &[(&str, Value)]) -> Row {
        Row {
            part: "part".into(),
            table: table.into(),
            keys: keys.iter().map(|(name, key)| ((*name).into(), (*key).into())).collect(),
            values: values.iter().map(|(name, value)| ((*name).into(), *value)).collect(),
        }
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let there = row(
            "sizes",
            &[("program", "ring"), ("ranks", "4")],
            &[
                ("trace", Unit::Bytes.of(1234)),
                ("time", Unit::Ns.of(1.25)),
                ("none", Unit::Seconds.of(None::<f64>)),
                ("polls", Unit::Count.of(3).varies()),
            ],
        );
        let text = serde_json::to_string(&there).unwrap();
        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), there);
    }

    #[test]
    fn json_has_keys_in_order_and_whole_numbers_without_a_point() {
        let there = row(
            "t",
            &[("z", "1"), ("a", "2")],
            &[("v", Unit::Bytes.of(7)), ("none", Unit::Ms.of(None::<f64>))],
        );
        assert_eq!(
            serde_json::to_string(&there).unwrap(),
            r#"{"part":"part","table":"t","keys":{"z":"1","a":"2"},"values":{"v":{"amount":7,"unit":"B"},"none":{"amount":null,"unit":"ms"}}}"#
        );
    }

    #[test]
    fn a_unit_is_called_in_json_as_in_words() {
        for unit in [
            Unit::Ns,
            Unit::Us,
            Unit::Bytes,
            Unit::BytesEach,
            Unit::Count,
            Unit::MillionsASecond,
            Unit::TimeRatio,
            Unit::Percent,
            Unit::Share,
        ] {
            assert_eq!(serde_json::to_value(unit).unwrap(), unit.name());
        }
    }

    #[test]
    fn what_is_no_number_is_no_amount() {
        assert_eq!(Unit::Ratio.of(f64::NAN).amount, None);
        assert_eq!(Unit::Ratio.of(f64::NAN).text(), "-");
        assert_eq!(Unit::Count.of(12).words(), "12");
        assert_eq!(Unit::Ns.of(12.34).words(), "12.3 ns");
    }
}
