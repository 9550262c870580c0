//! Values of the options for address traces.

use refrain_addresses::{Compression, Fields, Format, KINDS, kind, of_name};

/// `--from`: a format.
pub fn format(text: &str) -> Result<Format, String> {
    Format::named(text).ok_or_else(|| format!("formats are {}", formats()))
}

/// `--to`: a format, with how it is compressed: `pdt.gz`.
pub fn target(text: &str) -> Result<(Format, Compression), String> {
    let (stem, compression) = Compression::of_name(text);
    Ok((format(stem)?, compression))
}

pub fn formats() -> String {
    Format::ALL.map(Format::name).join(", ")
}

/// What a name says of the format to write.
pub fn target_of_name(name: &str) -> Option<(Format, Compression)> {
    let (format, compression) = of_name(name);
    Some((format?, compression))
}

/// One thing that `--drop` leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drop {
    Fields(Fields),
    Fetches,
}

pub fn drop(text: &str) -> Result<Drop, String> {
    match text {
        "fetches" => Ok(Drop::Fetches),
        name => Fields::named(name)
            .map(Drop::Fields)
            .ok_or_else(|| format!("it is one or more of {}, fetches", Fields::NAMES.join(", "))),
    }
}

/// One thing that `--fill` puts in: which field, and what.
pub fn fill(text: &str) -> Result<(usize, u64), String> {
    let form = || format!("it is FIELD=NUMBER with one of {}", Fields::NAMES.join(", "));
    let (name, value) = text.split_once('=').ok_or_else(form)?;
    let field = Fields::NAMES.iter().position(|known| *known == name).ok_or_else(form)?;
    let value = value.parse().map_err(|_| form())?;
    let most = [u64::MAX, u64::from(u32::MAX), u64::from(u16::MAX), 1, u64::MAX][field];
    if value > most {
        return Err(format!("{name} are {most} at most"));
    }
    Ok((field, value))
}

/// `--step`: an offset for all kinds (`8`) or for some (`0=8,1=8`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    kind: Option<usize>,
    offset: i16,
}

pub fn step(text: &str) -> Result<Step, String> {
    let form = || {
        let kinds: Vec<String> =
            kind::NAMES.iter().enumerate().map(|(n, name)| format!("{n} {name}")).collect();
        format!("it is an offset of -32768 to 32767, or KIND=OFFSET with a kind of {}", kinds.join(", "))
    };
    let (kind, offset) = match text.split_once('=') {
        Some((kind, offset)) => {
            (Some(kind.parse().ok().filter(|kind| *kind < KINDS).ok_or_else(form)?), offset)
        }
        None => (None, text),
    };
    Ok(Step { kind, offset: offset.parse().map_err(|_| form())? })
}

pub fn steps(chosen: &[Step]) -> [i16; KINDS] {
    let mut steps = [4; KINDS];
    for step in chosen {
        match step.kind {
            Some(kind) => steps[kind] = step.offset,
            None => steps = [step.offset; KINDS],
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        assert_eq!(target("pdt64.zst"), Ok((Format::Pdats64, Compression::Zstd)));
        assert_eq!(target("din"), Ok((Format::Din, Compression::None)));
        assert!(target("zip").unwrap_err().contains("lackey"));
        assert_eq!(fill("sizes=8"), Ok((2, 8)));
        assert!(fill("sizes=65536").unwrap_err().contains("65535"));
        assert!(fill("sizes").is_err() && fill("kinds=1").is_err());
        assert_eq!(drop("fetches"), Ok(Drop::Fetches));
        assert!(drop("kinds").unwrap_err().contains("times"));
        assert_eq!(steps(&[step("8").unwrap(), step("2=4").unwrap()]), [8, 8, 4, 8, 8, 8, 8, 8]);
        assert!(step("8=4").is_err() && step("40000").is_err());
    }
}
