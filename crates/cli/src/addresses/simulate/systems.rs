//! From the options to the caches: which configurations are asked for.

use refrain_addresses::simulate::{Config, Level, Policy, System, Write};

use super::caches::{Defaults, Spec};
use super::{Simulate, Switch};
use crate::failure::Failure;

/// More configurations than these are not simulated in one pass.
const MOST: usize = 4096;
/// Nor as many lines, all together: their bookkeeping takes 8 bytes each.
const MOST_LINES: u64 = 1 << 30;

/// Every combination of what was asked for, with the last option the fastest to change.
pub fn systems(flags: &Simulate, cores: usize) -> Result<Vec<System>, Failure> {
    let seed = flags.seed.unwrap_or(0);
    let mut all = vec![Vec::new()];
    let mut missing: Option<usize> = None;
    for (number, level) in (1..).zip(levels(flags)) {
        let choices = choices(flags, &level);
        if let (false, Some(missing)) = (choices.is_empty(), missing) {
            return Err(Failure::new(format!("there is a level {number} and no level {missing}"))
                .help("levels follow each other: --l1, --l2 and so on"));
        }
        if choices.is_empty() {
            missing = missing.or(Some(number));
            if number == 1 {
                return Err(Failure::new("there is no first-level cache").help(
                    "say which: `--l1d 32K,8,64 --l1i 32K,8,64`, or `--l1 32K,8,64` for all; `--curve` does all sizes at once",
                ));
            }
            continue;
        }
        if all.len() * choices.len() > MOST {
            return Err(Failure::new(format!("these are more than {MOST} configurations"))
                .help("take shorter ranges, or fewer of them; `--curve` does all sizes at once"));
        }
        let above = |levels: &Vec<Level>| {
            let longer = |level: &Level| [&levels[..], &[*level]].concat();
            choices.iter().map(longer).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(above).collect();
    }
    let lines = all.iter().flatten().map(|level| {
        let geometries = configs(level).into_iter().map(|config| config.geometry);
        geometries.map(|geometry| geometry.size() / geometry.line()).sum::<u64>()
    });
    if all.len() > 1 && lines.sum::<u64>() > MOST_LINES {
        return Err(Failure::new(format!("these configurations have more than {MOST_LINES} lines in all"))
            .help("take shorter ranges, or smaller caches"));
    }
    let random = |config: &Config| config.policy == Policy::Random;
    if flags.seed.is_some() && !all.iter().flatten().flat_map(configs).any(|config| random(&config)) {
        return Err(Failure::new("--seed is for random caches, and none of these is"));
    }
    let levels = all.first().map_or(0, Vec::len);
    let private = flags.private.map(usize::from);
    if let Some(private) = private.filter(|private| *private > levels) {
        return Err(Failure::new(format!("--private {private}: there are not so many levels")));
    }
    // Of several cores, the last level is for all of them, if it is not the only one.
    let private = private.unwrap_or(if cores > 1 { (levels - 1).max(1) } else { levels });
    let coherence = flags.protocol();
    let system = |levels: Vec<Level>| System {
        cores,
        private,
        seed,
        classify: flags.classes,
        coherence,
        ..System::new(levels)
    };
    Ok(all.into_iter().map(system).collect())
}

/// What was asked for of one level: for all, for fetches, for data.
struct Asked<'a> {
    unified: &'a [Vec<Spec>],
    instructions: &'a [Vec<Spec>],
    data: &'a [Vec<Spec>],
}

fn levels(flags: &Simulate) -> Vec<Asked<'_>> {
    let level = |unified, instructions, data| Asked { unified, instructions, data };
    vec![
        level(&flags.l1, &flags.l1i, &flags.l1d),
        level(&flags.l2, &flags.l2i, &flags.l2d),
        level(&flags.l3, &flags.l3i, &flags.l3d),
        level(&flags.l4, &flags.l4i, &flags.l4d),
        level(&flags.l5, &flags.l5i, &flags.l5d),
    ]
}

fn configs(level: &Level) -> Vec<Config> {
    match *level {
        Level::Unified(config) => vec![config],
        Level::Split { instructions, data } => instructions.into_iter().chain(data).collect(),
    }
}

/// What the level may be.
fn choices(flags: &Simulate, asked: &Asked<'_>) -> Vec<Level> {
    let defaults = Defaults {
        policy: flags.policy.unwrap_or(Policy::Lru),
        write: flags.write.unwrap_or(Write::Back),
        allocate: flags.allocate != Some(Switch::Off),
        fetch: flags.allocate != Some(Switch::NoFetch),
    };
    let config = |spec: &Spec| spec.config(&defaults);
    if !asked.unified.is_empty() {
        return asked.unified.iter().flatten().map(|spec| Level::Unified(config(spec))).collect();
    }
    let one_or_none = |specs: &[Vec<Spec>]| -> Vec<Option<Config>> {
        match specs {
            [] => vec![None],
            specs => specs.iter().flatten().map(|spec| Some(config(spec))).collect(),
        }
    };
    if asked.instructions.is_empty() && asked.data.is_empty() {
        return Vec::new();
    }
    let (instructions, data) = (one_or_none(asked.instructions), one_or_none(asked.data));
    let pair = |instructions: &Option<Config>| {
        let instructions = *instructions;
        data.iter().map(move |data| Level::Split { instructions, data: *data }).collect::<Vec<_>>()
    };
    instructions.iter().flat_map(pair).collect()
}
