//! How variables get from the command line to the ranks: LD_PRELOAD and the REFRAIN_ ones must get there. Most launchers pass on
//! all of the environment unless they are told not to. Open MPI's passes none to other hosts; `run` tells it to.

use std::ffi::OsString;

use super::Problem;

/// Which option, or variable, of a launcher keeps variables back. `words` are all behind it.
pub fn kept_back(
    launcher: &str,
    words: &[String],
    env: impl Fn(&str) -> Option<OsString>,
) -> Option<Problem> {
    let name = launcher.rsplit('/').next().unwrap_or(launcher);
    let stem = name.split('.').next().unwrap_or(name);
    // Up to the program: what is behind it may look the same. An option's value is its next word, or behind `=`.
    let value = |options: &[&str]| {
        words.iter().enumerate().find_map(|(at, word)| {
            let (option, value) = word.split_once('=').map_or((word.as_str(), None), |(o, v)| (o, Some(v)));
            let value = value.or_else(|| words.get(at + 1).map(String::as_str));
            options.contains(&option).then(|| (word.clone(), value.unwrap_or_default().to_owned()))
        })
    };
    let problem = |told: String, help: &str| {
        let what = format!("{told} keeps variables from the ranks: they would not be traced");
        Some(Problem { what, help: help.to_owned() })
    };
    match stem {
        "srun" => {
            let by_option = value(&["--export"]).map(|(_, value)| ("--export".to_owned(), value));
            let by_variable = || {
                let value = env("SLURM_EXPORT_ENV")?;
                Some(("SLURM_EXPORT_ENV".to_owned(), value.to_string_lossy().into_owned()))
            };
            let (who, list) = by_option.or_else(by_variable)?;
            let all = list.split(',').any(|word| word == "ALL");
            if all {
                return None;
            }
            problem(format!("srun with {who}={list}"), "Use --export=ALL, or ALL with others behind it.")
        }
        "mpiexec" | "mpirun" => {
            let none = ["-genvnone", "-envnone", "-genvlist", "-envlist"];
            let option = words.iter().find(|word| none.contains(&word.as_str()))?;
            problem(format!("{name} with {option}"), "Leave it out: Hydra passes on all variables by itself.")
        }
        "flux" => {
            let rule =
                value(&["--env"]).filter(|(_, rule)| rule.starts_with("-*") || rule.starts_with("-/.*"));
            let (_, rule) = rule.or_else(|| value(&["--env-remove"]).filter(|(_, rule)| rule == "*"))?;
            problem(format!("flux with the rule {rule}"), "Add --env=LD_PRELOAD --env='REFRAIN_*' behind it.")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let found = kept_back(&words[0], &words[1..], |_| None);
        let told = found.map(|problem| problem.what).unwrap_or_default();
        assert!(
            if expected.is_empty() { told.is_empty() } else { told.starts_with(expected) },
            "{line}: {told}"
        );
    }

    #[test]
    fn what_keeps_variables_back() {
        check("srun -n 4 ./app", "");
        check("srun --export=ALL,A=1 ./app", "");
        check("srun --export=NONE ./app", "srun with --export=NONE keeps");
        check("srun --export A,B ./app", "srun with --export=A,B keeps");
        check("/usr/bin/mpiexec.hydra -genvnone ./app", "mpiexec.hydra with -genvnone keeps");
        check("mpiexec -genv A 1 ./app", "");
        check("flux run -n4 --env=-* ./app", "flux with the rule -* keeps");
        check("flux run --env=A=1 ./app", "");
        check("aprun -n 4 ./app", "");
        let by_variable = |_: &str| Some(OsString::from("NONE"));
        assert!(kept_back("srun", &["./app".into()], by_variable).is_some());
    }
}
