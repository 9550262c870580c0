//! What a user asks of a replay, as words that `refrain replay` passes to each rank.

use refrain_model::Numbers;

/// As words on the command line: `check`, `speed=2`, ...
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Compare outcomes with the trace.
    pub check: bool,
    /// 0: without computation; otherwise computation takes its recorded time divided by this. None: 1 where times were kept.
    pub speed: Option<f64>,
    /// Computation takes so many times as long.
    pub compute: f64,
    /// Ranks sleep where they compute, instead of keeping a core busy.
    pub sleep: bool,
    /// Messages are so many times as long.
    pub message_size: f64,
    /// Without files.
    pub no_io: bool,
    /// Make polls that had found nothing too.
    pub polls: bool,
    /// Of what is in buffers.
    pub seed: u64,
    /// A rank that is in one call for so many seconds gives up, if nobody watches it. 0: never.
    pub patience: u64,
    /// Only these ranks of the recorded run.
    pub ranks: Option<Numbers>,
    /// Calls are read whose arrays have up to so many elements.
    pub elements: Option<u64>,
    /// Calls with more data than so many MiB are refused.
    pub memory: Option<u32>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            check: false,
            speed: None,
            compute: 1.0,
            sleep: false,
            message_size: 1.0,
            no_io: false,
            polls: false,
            seed: 0,
            patience: 0,
            ranks: None,
            elements: None,
            memory: None,
        }
    }
}

impl Options {
    /// The first word that is none of them is the error.
    pub fn read<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Options, String> {
        let mut options = Options::default();
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let bad = || format!("{word} is no option of a replay");
            let number = || value.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(bad);
            let whole = || value.parse::<u64>().map_err(|_| bad());
            match name {
                "check" => options.check = true,
                "sleep" => options.sleep = true,
                "no-io" => options.no_io = true,
                "polls" => options.polls = true,
                "speed" => options.speed = Some(number()?),
                "compute" => options.compute = number()?,
                "message-size" => options.message_size = number()?,
                "seed" => options.seed = whole()?,
                "patience" => options.patience = whole()?,
                "memory" => options.memory = Some(value.parse().map_err(|_| bad())?),
                "elements" => options.elements = Some(whole()?),
                "ranks" => options.ranks = Some(value.parse().map_err(|_| bad())?),
                _ => return Err(bad()),
            }
        }
        Ok(options)
    }

    /// What recorded computation is multiplied by, where the trace has times.
    pub fn factor(&self) -> f64 {
        match self.speed {
            Some(0.0) => 0.0,
            Some(speed) => self.compute / speed,
            None => self.compute,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_options() {
        let read = |text: &str| Options::read(text.split_whitespace());
        assert_eq!(read(""), Ok(Options::default()));
        let some = read("check speed=2 compute=0.5 sleep seed=7 elements=9").unwrap();
        assert!(some.check && some.sleep && some.seed == 7 && some.elements == Some(9));
        assert_eq!(some.factor(), 0.25);
        assert_eq!(read("speed=0 compute=3").unwrap().factor(), 0.0);
        for bad in ["speed=-1", "speed=x", "spede=1", "seed=1.5", "compute=inf"] {
            assert_eq!(read(bad), Err(format!("{bad} is no option of a replay")));
        }
    }
}
