//! The parts that a run leaves behind when all of its ranks are killed: `parts DIR PATTERN RANKS STEPS`. What `refrain recover` is
//! measured with.

use std::process::ExitCode;

use refrain_scale::{Pattern, Rank, Template};
use refrain_tracefile::private::Private;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("parts: {problem}\nusage: parts DIR PATTERN RANKS STEPS");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<(), String> {
    let [directory, pattern, ranks, steps] = words else { return Err("it takes four words".into()) };
    let pattern: Pattern =
        pattern.parse().map_err(|error: refrain_scale::UnknownPattern| error.to_string())?;
    let number = |word: &String| word.parse::<u32>().map_err(|_| format!("{word} is no number"));
    let (ranks, steps) = (number(ranks)?, number(steps)?);
    let path = std::path::Path::new(directory);
    Private::make(path).map_err(|error| format!("{directory}: {error}"))?;
    let template = Template::new();
    for number in 0..ranks {
        let mut rank = Rank::with_journal(&template, number, ranks);
        pattern.run(&mut rank, steps);
        let name = format!("{number}-nowhere-{}-0.part", number + 1);
        std::fs::write(path.join(name), rank.part()).map_err(|error| format!("{directory}: {error}"))?;
    }
    Ok(())
}
