//! Values of the options for address traces.

use refrain_addresses::simulate::Geometry;
use refrain_addresses::{Compression, Fields, Format, KINDS, Sample, kind, of_name};

use super::simulate::caches;

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

/// `--filter`: a cache, and whether what it writes back goes on too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    pub geometry: Geometry,
    pub write_backs: bool,
}

pub fn filter(text: &str) -> Result<Cache, String> {
    let form = "it is SIZE,WAYS,LINE: 32K,8,64; write-backs may follow";
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    let (size, ways, line, write_backs) = match words[..] {
        [size, ways, line] => (size, ways, line, false),
        [size, ways, line, "write-backs"] => (size, ways, line, true),
        _ => return Err(form.to_owned()),
    };
    let (size, line) = (caches::size(size)?, caches::size(line)?);
    let geometry = match ways {
        "full" => Geometry::fully_associative(size, line),
        ways => Geometry::new(size, ways.parse().map_err(|_| form.to_owned())?, line),
    };
    Ok(Cache { geometry: geometry.map_err(|misfit| misfit.to_string())?, write_backs })
}

/// `--sample`: so many references out of every so many (`1000/100000`), or of times (`times=1000/100000`).
pub fn sample(text: &str) -> Result<Sample, String> {
    let form =
        "it is N/M, the first N of every M references, or times=N/M, of every M units of time; N is 1 to M";
    let (times, numbers) = match text.strip_prefix("times=") {
        Some(numbers) => (true, numbers),
        None => (false, text),
    };
    let (take, of) = numbers.split_once('/').ok_or(form)?;
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| form.to_owned());
    let (take, of) = (number(take)?, number(of)?);
    if take == 0 || take > of {
        return Err(form.to_owned());
    }
    Ok(if times { Sample::Times { take, of } } else { Sample::References { take, of } })
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

    #[test]
    fn thinning() {
        let cache = filter("32K,8,64").unwrap();
        assert_eq!((cache.geometry.sets(), cache.write_backs), (64, false));
        assert!(filter("1K,full,64,write-backs").unwrap().write_backs);
        for wrong in ["32K,8", "32K,8,64,lru", "32K,x,64", "32K,8,60", ""] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
        assert_eq!(sample("10/1000"), Ok(Sample::References { take: 10, of: 1000 }));
        assert_eq!(sample("times=1/2"), Ok(Sample::Times { take: 1, of: 2 }));
        for wrong in ["10", "0/10", "11/10", "0/0", "a/b", "times=3", "-1/10"] {
            assert!(sample(wrong).is_err(), "{wrong}");
        }
    }
}
