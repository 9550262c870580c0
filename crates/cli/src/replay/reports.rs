//! What ranks say in the end, and all of it together.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use refrain_tracefile::Trace;
use refrain_views::human::{duration, size, thousands};
use refrain_views::replayable::draws;

use super::ReplayFlags;
use crate::failure::Failure;

/// A directory for what ranks say and for the program's files. It goes when the replay is over.
pub struct Reports(pub PathBuf);

impl Reports {
    pub fn new(scratch: Option<&Path>) -> Result<Reports, Failure> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let name = format!("refrain-replay-{}-{:x}", std::process::id(), now.as_nanos());
        let path = scratch.map_or_else(std::env::temp_dir, Path::to_owned).join(name);
        std::fs::create_dir(&path).map_err(|error| {
            Failure::new(format!("{}: {error}", path.display()))
                .help("a replay needs a directory that can be written to: --scratch names another")
        })?;
        // Ranks may be started in another directory than this one.
        Ok(Reports(path.canonicalize().unwrap_or(path)))
    }

    pub fn sum(&self, ranks: &[u32]) -> Sum {
        let mut sum = Sum::default();
        for rank in ranks {
            let file = self.0.join(format!("rank-{rank}"));
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            // One that found no room is cut short.
            if !text.starts_with("made ") {
                sum.silent += 1;
                continue;
            }
            for line in text.lines() {
                let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
                let number = || rest.parse::<u64>().unwrap_or(0);
                match word {
                    "made" => sum.made += number(),
                    "polls" => sum.polls += number(),
                    "unmatched" => sum.unmatched += number(),
                    "differences" => sum.differences += number(),
                    "different" => sum.lines.push(format!("rank {rank}, {rest}")),
                    "left-out" => sum.left_out += number(),
                    "memory" => sum.memory = sum.memory.max(number()),
                    "gaps" => sum.gaps = rest.to_owned(),
                    // As that of a trace is: by the clock of its first rank.
                    "wall" if sum.wall == 0 => sum.wall = number(),
                    _ => {}
                }
            }
        }
        sum
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Debug, Default)]
pub struct Sum {
    made: u64,
    polls: u64,
    unmatched: u64,
    pub differences: u64,
    lines: Vec<String>,
    /// Ranks that said nothing, on other machines perhaps.
    pub silent: u32,
    /// Calls that were left out with the files.
    left_out: u64,
    /// The most that a rank had, in bytes.
    memory: u64,
    /// Where the computation between calls was taken from.
    gaps: String,
    /// From `MPI_Init` to `MPI_Finalize`, in nanoseconds.
    wall: u64,
}

impl Sum {
    /// Of so many ranks.
    pub fn text(&self, trace: &Trace, ranks: usize, flags: &ReplayFlags) -> String {
        let mut text = String::new();
        let (wall, recorded) = (self.wall, trace.meta.wall_ns);
        if self.silent as usize == ranks {
            return "the ranks left no word here of what they did\n".to_owned();
        }
        let _ = write!(
            text,
            "{ranks} ranks made {} calls again in {} after MPI_Init; recorded: {}",
            thousands(self.made),
            duration(wall),
            duration(recorded)
        );
        let share = |of: u64| format!("{:.1} % of it", 100.0 * wall as f64 / of.max(1) as f64);
        let speed = flags.speed.unwrap_or(1.0);
        let computation = match &*self.gaps {
            "single" => Some("as recorded, call by call"),
            "distributions" => {
                Some("drawn for each kind of call after another, as much in all as each rank did")
            }
            "means" => Some("as much in all as each rank did, spread evenly over its calls"),
            _ => None,
        };
        match computation {
            None => {
                let each = self.made as f64 / ranks.max(1) as f64 / (wall.max(1) as f64 / 1e9);
                let _ =
                    writeln!(text, "; as fast as it can, {} calls a second and rank", thousands(each as u64));
            }
            Some(computation) => {
                if speed == 1.0 {
                    let _ = writeln!(text, ", {}", share(recorded));
                } else {
                    let aim = (recorded as f64 / speed) as u64;
                    let _ = writeln!(text, ", at speed {speed} {}, {}", duration(aim), share(aim));
                }
                let times =
                    if flags.compute == 1.0 { String::new() } else { format!(", times {}", flags.compute) };
                let _ = writeln!(text, "computation between calls: {computation}{times}");
            }
        }
        if draws(trace, flags.seed).is_some() {
            let seed = flags.seed;
            let _ =
                writeln!(text, "destinations and counts of messages: drawn from histograms (--seed {seed})");
        }
        if self.memory > 0 {
            let _ = writeln!(text, "memory of a rank: {} at most", size(self.memory.into()));
        }
        if self.left_out > 0 {
            let _ = writeln!(text, "{} calls were left out with the files", thousands(self.left_out));
        }
        if self.polls > 0 {
            let _ = writeln!(text, "{} polls that had found nothing were left out", thousands(self.polls));
        }
        if self.unmatched > 0 {
            let _ = writeln!(
                text,
                "{} receives from any source may have got another message: the trace does not say who sent theirs",
                thousands(self.unmatched)
            );
        }
        if self.silent > 0 {
            let _ = writeln!(text, "{} ranks left no word here of what they did", self.silent);
        }
        if flags.check && self.differences == 0 && self.silent == 0 {
            let of = if self.left_out > 0 { " that was made" } else { "" };
            let _ = writeln!(text, "equal: every outcome{of} is that of the trace");
        } else if self.differences > 0 {
            let _ = writeln!(text, "different: {} calls had another outcome", thousands(self.differences));
            self.lines.iter().take(10).for_each(|line| {
                let _ = writeln!(text, "  {line}");
            });
        }
        text
    }
}
