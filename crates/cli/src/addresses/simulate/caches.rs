//! Caches, as a command line writes them: `32K,8,64`, or many at once: `8K..1M,1..16,64`.

use refrain_addresses::simulate::{
    Config, Geometry, Inclusion, Misfit, Pages, Policy, Prefetch, Protocol, Write, short_size,
};

use super::feed::Cores;

/// One cache. What it leaves open, the options for all caches say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    geometry: Geometry,
    words: Words,
}

/// What is said of a cache behind its size, ways and line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Words {
    policy: Option<Policy>,
    write: Option<Write>,
    allocate: Option<bool>,
    fetch: Option<bool>,
    sector: Option<u64>,
    prefetch: Option<Prefetch>,
    victims: u64,
    inclusion: Option<Inclusion>,
}

/// What caches are that do not say it themselves.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    pub policy: Policy,
    pub write: Write,
    pub allocate: bool,
    pub fetch: bool,
}

/// What may stand behind SIZE,WAYS,LINE.
const WORDS: &str = "after SIZE,WAYS,LINE come lru, fifo, random or plru; back or through; allocate, no-fetch or no-allocate; \
                     sector=32; victims=8; prefetch-miss, prefetch-always, prefetch-tagged or prefetch-stride; inclusive or exclusive";

impl Words {
    fn set(&mut self, word: &str) -> Result<(), String> {
        let prefetcher = || Prefetch::ALL.into_iter().find(|prefetch| prefetch.name() == word);
        match word {
            "allocate" => (self.allocate, self.fetch) = (Some(true), Some(true)),
            "no-fetch" => (self.allocate, self.fetch) = (Some(true), Some(false)),
            "no-allocate" => self.allocate = Some(false),
            "inclusive" => self.inclusion = Some(Inclusion::Inclusive),
            "exclusive" => self.inclusion = Some(Inclusion::Exclusive),
            word => match (policy(word), write(word), prefetcher(), word.split_once('=')) {
                (Ok(policy), ..) => self.policy = Some(policy),
                (_, Ok(write), ..) => self.write = Some(write),
                (_, _, Some(prefetch), _) => self.prefetch = Some(prefetch),
                (_, _, _, Some(("sector", bytes))) => self.sector = Some(size(bytes)?),
                (_, _, _, Some(("victims", lines))) => {
                    self.victims = lines.parse().map_err(|_| format!("{word}: {WORDS}"))?;
                }
                _ => return Err(format!("{word}: {WORDS}")),
            },
        }
        Ok(())
    }
}

impl Spec {
    pub fn config(&self, defaults: &Defaults) -> Config {
        let Words { policy, write, allocate, fetch, sector, prefetch, victims, inclusion } = self.words;
        Config {
            policy: policy.unwrap_or(defaults.policy),
            write: write.unwrap_or(defaults.write),
            allocate: allocate.unwrap_or(defaults.allocate),
            fetch: fetch.unwrap_or(defaults.fetch),
            sector,
            prefetch,
            victims,
            inclusion: inclusion.unwrap_or(Inclusion::Free),
            ..Config::new(self.geometry)
        }
    }
}

const FORM: &str = "a cache is SIZE,WAYS,LINE: 32K,8,64 is 32 KiB of 8 ways with lines of 64 bytes; 4K,full,64 has one set; \
                    8K..1M,1..16,64 is many caches";

/// `SIZE,WAYS,LINE` and then words of the policies. Each of the three may be a range, which stands for the powers of two in it
/// from its first number on; there is a cache for each combination that can be one.
pub fn specs(text: &str) -> Result<Vec<Spec>, String> {
    let mut words = text.split(',').map(str::trim);
    let (Some(sizes), Some(ways), Some(lines)) = (words.next(), words.next(), words.next()) else {
        return Err(FORM.to_owned());
    };
    let (sizes, lines) = (range(sizes, size)?, range(lines, size)?);
    let number = |text: &str| text.parse::<u64>().map_err(|_| FORM.to_owned());
    let ways = match ways {
        "full" => vec![None],
        ways => range(ways, number)?.into_iter().map(Some).collect(),
    };
    let mut geometries = Vec::new();
    for &size in &sizes {
        for &ways in &ways {
            for &line in &lines {
                geometries.push(match ways {
                    None => Geometry::fully_associative(size, line),
                    Some(ways) => Geometry::new(size, ways, line),
                });
            }
        }
    }
    let mut spec = Words::default();
    words.try_for_each(|word| spec.set(word))?;
    let mut found = geometries.into_iter().map(|geometry| {
        geometry.map(|geometry| Spec { geometry, words: spec }).map_err(|misfit| misfit.to_string())
    });
    // One that was written out must fit; of many, those do that can be.
    let first = found.next().ok_or_else(|| FORM.to_owned())?;
    let others: Vec<Spec> = found.by_ref().flatten().collect();
    match first {
        Err(why) if others.is_empty() => Err(why),
        first => Ok(first.into_iter().chain(others).collect()),
    }
}

/// `8`, or `1..16` for 1, 2, 4, 8, 16.
fn range(text: &str, one: impl Fn(&str) -> Result<u64, String>) -> Result<Vec<u64>, String> {
    let Some((from, to)) = text.split_once("..") else { return Ok(vec![one(text)?]) };
    let (from, to) = (one(from)?, one(to)?);
    if from == 0 || from > to {
        return Err(format!("{text}: a range goes up, from more than 0: 8K..1M is 8K, 16K and so on to 1M"));
    }
    Ok(std::iter::successors(Some(from), |n| n.checked_mul(2)).take_while(|n| *n <= to).collect())
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

/// `ENTRIES,WAYS,PAGE`: a TLB.
pub fn pages(text: &str) -> Result<Pages, String> {
    let form = "a TLB is ENTRIES,WAYS,PAGE: 64,4,4K has 64 entries, 4 ways and pages of 4 KiB; 16,full,2M is fully associative";
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    let [entries, ways, page] = words[..] else { return Err(form.to_owned()) };
    let entries: u64 = entries.parse().map_err(|_| form.to_owned())?;
    let ways = match ways {
        "full" => entries,
        ways => ways.parse().map_err(|_| form.to_owned())?,
    };
    Pages::new(entries, ways, size(page)?).map_err(|misfit| match misfit {
        Misfit::Page(_) => misfit.to_string(),
        _ => format!("entries / ways must be a power of two, and neither is 0: {form}"),
    })
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

/// `--coherence`: a protocol, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coherence(pub Option<Protocol>);

pub fn coherence(text: &str) -> Result<Coherence, String> {
    let found = Protocol::ALL.into_iter().find(|protocol| protocol.name() == text);
    match (found, text) {
        (None, "none") => Ok(Coherence(None)),
        (None, _) => Err(format!("it is one of none, {}", Protocol::ALL.map(Protocol::name).join(", "))),
        (protocol, _) => Ok(Coherence(protocol)),
    }
}

/// `--pin 0,1,0,1`: the core of each thread.
pub fn pins(text: &str) -> Result<Cores, String> {
    let core = |word: &str| word.trim().parse().ok().filter(|core| *core < MOST_PINNED);
    let pins: Option<Vec<usize>> = text.split(',').map(core).collect();
    match pins {
        Some(pins) => Ok(Cores::pinned(&pins)),
        None => Err(format!(
            "it is a list of cores, below {MOST_PINNED}: 0,0,1,1 runs threads 0 and 1 on core 0, 2 and 3 on core 1"
        )),
    }
}

/// Cores are numbered below this.
const MOST_PINNED: usize = 1024;

pub fn inclusion(inclusion: Inclusion) -> &'static str {
    match inclusion {
        Inclusion::Free => "free",
        Inclusion::Inclusive => "inclusive",
        Inclusion::Exclusive => "exclusive",
    }
}

/// As a command line writes it, with what is not the default.
pub fn written(config: &Config) -> String {
    let geometry = &config.geometry;
    let ways = match (geometry.sets(), geometry.ways()) {
        (1, ways) if ways > 1 => "full".to_owned(),
        (_, ways) => ways.to_string(),
    };
    let mut out = format!("{},{ways},{}", short_size(geometry.size()), short_size(geometry.line()));
    let mut word = |there: bool, word: &str| {
        if there {
            out.push(',');
            out.push_str(word);
        }
    };
    word(config.policy != Policy::Lru, config.policy.name());
    word(config.write != Write::Back, config.write.name());
    word(!config.allocate, "no-allocate");
    word(config.allocate && !config.fetch, "no-fetch");
    word(config.sector.is_some(), &format!("sector={}", config.sector.unwrap_or(0)));
    word(config.victims > 0, &format!("victims={}", config.victims));
    word(config.prefetch.is_some(), config.prefetch.map_or("", Prefetch::name));
    word(config.inclusion != Inclusion::Free, inclusion(config.inclusion));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Defaults =
        Defaults { policy: Policy::Lru, write: Write::Back, allocate: true, fetch: true };

    #[test]
    fn caches() {
        let config = |text| {
            let specs = specs(text).unwrap();
            assert_eq!(specs.len(), 1, "{text}");
            specs[0].config(&DEFAULTS)
        };
        let plain = config("32K,8,64");
        assert_eq!((plain.geometry.size(), plain.geometry.sets()), (32_768, 64));
        assert_eq!(plain, config("32768, 8, 64, allocate,lru,back"));
        let other = config("1MiB,16,128,fifo,through,no-allocate");
        assert_eq!((other.policy, other.write, other.allocate), (Policy::Fifo, Write::Through, false));
        assert_eq!(config("4K,full,64").geometry.ways(), 64);
        for text in [
            "32K,8,64,plru,no-fetch,sector=32,prefetch-tagged",
            "1K,1,64,victims=4,prefetch-stride",
            "1M,16,64,inclusive",
            "1M,16,64,exclusive",
            "32K,8,64",
            "4K,full,64",
            "1M,16,128,fifo,through,no-allocate",
            "1280K,10,64,random",
        ] {
            assert_eq!(written(&config(text)), text);
        }
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
            ("32K,8,64,mru", "random"),
            ("32K,8,64,victims=some", "victims=8"),
            ("32K,8,64,sector=x", "no size"),
            ("32K,8,64,prefetch", "prefetch-tagged"),
            ("64K..8K,1,64", "a range goes up"),
            ("0..8K,1,64", "from more than 0"),
            ("8K..,1,64", "no size"),
            ("8K,1..x,64", "SIZE,WAYS,LINE"),
            ("128..256,16..32,64", "make it 1K or more"),
        ] {
            let error = specs(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(line("48").is_err() && line("2").is_err());
        assert_eq!(line("128"), Ok(128));
        assert!(policy("mru").unwrap_err().contains("lru, fifo, random"));
        assert!(coherence("dragon").unwrap_err().contains("none, msi, mesi, moesi"));
        assert_eq!(
            (coherence("none"), coherence("moesi")),
            (Ok(Coherence(None)), Ok(Coherence(Some(Protocol::Moesi))))
        );
        assert_eq!(pins("1, 0,1"), Ok(Cores::pinned(&[1, 0, 1])));
        for wrong in ["", "0,,1", "0,x", "-1", "1024"] {
            assert!(pins(wrong).unwrap_err().contains("a list of cores"), "{wrong}");
        }
        assert!(write("around").unwrap_err().contains("back, through"));
    }

    #[test]
    fn tlbs() {
        assert_eq!(pages("64,4,4K"), Ok(Pages { entries: 64, ways: 4, page: 4096 }));
        assert_eq!(pages("16, full, 2M"), Ok(Pages { entries: 16, ways: 16, page: 2 << 20 }));
        for (text, why) in [
            ("64,4", "ENTRIES,WAYS,PAGE"),
            ("64,4,5000", "power of two of bytes"),
            ("65,4,4K", "power of two"),
            ("0,4,4K", "neither is 0"),
            ("x,4,4K", "ENTRIES"),
        ] {
            assert!(pages(text).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn ranges() {
        let shown = |text: &str| {
            let specs = specs(text).unwrap();
            let shown: Vec<String> = specs.iter().map(|spec| written(&spec.config(&DEFAULTS))).collect();
            shown.join(" ")
        };
        assert_eq!(shown("8K..32K,1..2,64"), "8K,1,64 8K,2,64 16K,1,64 16K,2,64 32K,1,64 32K,2,64");
        // Twice, four times the first number, up to the last.
        assert_eq!(shown("48K..200K,12,64,fifo"), "48K,12,64,fifo 96K,12,64,fifo 192K,12,64,fifo");
        assert_eq!(shown("1K,full,32..128"), "1K,full,32 1K,full,64 1K,full,128");
        // What cannot be a cache is left out: 128 bytes have no four lines of 64.
        assert_eq!(shown("128..256,1..4,64"), "128,1,64 128,full,64 256,1,64 256,2,64 256,full,64");
        assert_eq!(shown("8..8,1,4..4"), "8,1,4");
    }
}
