//! Caches, as a command line writes them: `32K,8,64`.

use refrain_addresses::simulate::{Config, Geometry, Policy, Write};

/// One cache. What it leaves open, the options for all caches say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    geometry: Geometry,
    policy: Option<Policy>,
    write: Option<Write>,
    allocate: Option<bool>,
}

impl Spec {
    pub fn config(&self, policy: Policy, write: Write, allocate: bool) -> Config {
        Config {
            geometry: self.geometry,
            policy: self.policy.unwrap_or(policy),
            write: self.write.unwrap_or(write),
            allocate: self.allocate.unwrap_or(allocate),
        }
    }
}

/// `SIZE,WAYS,LINE` and then words of the policies.
pub fn spec(text: &str) -> Result<Spec, String> {
    let form = "a cache is SIZE,WAYS,LINE: 32K,8,64 is 32 KiB of 8 ways with lines of 64 bytes; 4K,full,64 has one set";
    let mut words = text.split(',').map(str::trim);
    let (Some(whole), Some(ways), Some(line)) = (words.next(), words.next(), words.next()) else {
        return Err(form.to_owned());
    };
    let (whole, line) = (size(whole)?, size(line)?);
    let geometry = match ways {
        "full" => Geometry::fully_associative(whole, line),
        ways => Geometry::new(whole, ways.parse().map_err(|_| form.to_owned())?, line),
    };
    let geometry = geometry.map_err(|misfit| misfit.to_string())?;
    let mut spec = Spec { geometry, policy: None, write: None, allocate: None };
    for word in words {
        match word {
            "allocate" => spec.allocate = Some(true),
            "no-allocate" => spec.allocate = Some(false),
            word => match (policy(word), write(word)) {
                (Ok(policy), _) => spec.policy = Some(policy),
                (_, Ok(write)) => spec.write = Some(write),
                _ => {
                    return Err(format!(
                        "{word}: after SIZE,WAYS,LINE come lru, fifo or random; back or through; allocate or no-allocate"
                    ));
                }
            },
        }
    }
    Ok(spec)
}

/// `64`, `32K`, `1M`, `2G`; KiB and KB are the same.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return Err(format!("{text} is no size: write bytes, or 32K, 1M, 2G; 1280K for 1.25M")),
    };
    let number: u64 =
        number.parse().map_err(|_| format!("{text} is no size: write bytes, or 32K, 1M, 2G"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("{text} is too large"))
}

/// `--line`: bytes of a line, where there is no more to a cache.
pub fn line(text: &str) -> Result<u64, String> {
    let line = size(text)?;
    Geometry::new(line, 1, line).map(|_| line).map_err(|misfit| misfit.to_string())
}

pub fn policy(text: &str) -> Result<Policy, String> {
    Policy::ALL
        .into_iter()
        .find(|policy| policy.name() == text)
        .ok_or_else(|| format!("it is one of {}", Policy::ALL.map(Policy::name).join(", ")))
}

pub fn write(text: &str) -> Result<Write, String> {
    Write::ALL
        .into_iter()
        .find(|write| write.name() == text)
        .ok_or_else(|| format!("it is one of {}", Write::ALL.map(Write::name).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches() {
        let config = |text| spec(text).map(|spec: Spec| spec.config(Policy::Lru, Write::Back, true)).unwrap();
        let plain = config("32K,8,64");
        assert_eq!((plain.geometry.size(), plain.geometry.sets()), (32_768, 64));
        assert_eq!(plain, config("32768, 8, 64, allocate,lru,back"));
        let other = config("1MiB,16,128,fifo,through,no-allocate");
        assert_eq!((other.policy, other.write, other.allocate), (Policy::Fifo, Write::Through, false));
        assert_eq!(config("4K,full,64").geometry.ways(), 64);
    }

    #[test]
    fn what_is_no_cache() {
        for (text, why) in [
            ("32K", "SIZE,WAYS,LINE"),
            ("32K,8", "32K,8,64"),
            ("32K,x,64", "SIZE,WAYS,LINE"),
            ("1.25M,10,64", "1280K"),
            ("K,8,64", "no size"),
            ("20000000000G,8,64", "too large"),
            ("32K,8,60", "power of two"),
            ("30K,8,64", "16K or 32K"),
            ("32K,8,64,plru", "random"),
        ] {
            let error = spec(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(line("48").is_err() && line("2").is_err());
        assert_eq!(line("128"), Ok(128));
        assert!(policy("mru").unwrap_err().contains("lru, fifo, random"));
        assert!(write("around").unwrap_err().contains("back, through"));
    }
}
