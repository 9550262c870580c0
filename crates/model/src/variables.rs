//! The environment variables by which a user speaks to Refrain.

use crate::choice::nearest;

/// What all of them begin with.
const MARK: &str = "REFRAIN_";
/// Those beginning so are for tests alone, and so are these.
const TESTS: &str = "REFRAIN_TEST_";
const OF_TESTS: [&str; 5] =
    ["REFRAIN_E2E", "REFRAIN_BIN", "REFRAIN_FUZZ_ROUNDS", "REFRAIN_MPI_CASE", "REFRAIN_THREAD_RUNS"];

const KNOWN: [&str; 22] = [
    "REFRAIN_OUT",
    "REFRAIN_FORCE",
    "REFRAIN_RANKS",
    "REFRAIN_ONLY",
    "REFRAIN_SKIP",
    "REFRAIN_WINDOW",
    "REFRAIN_PCONTROL",
    "REFRAIN_POINTERS",
    "REFRAIN_TIME",
    "REFRAIN_SPLIT",
    "REFRAIN_FOLD",
    "REFRAIN_STACKS",
    "REFRAIN_RECURSION",
    "REFRAIN_LOSSY",
    "REFRAIN_SAFE",
    "REFRAIN_PARTS",
    "REFRAIN_PATIENCE",
    "REFRAIN_SUMMARY",
    "REFRAIN_GRACE",
    "REFRAIN_LIBRARY",
    // Set by `refrain run`.
    "REFRAIN_COMMAND",
    "REFRAIN_RUN",
];

/// What is to be said of a variable that looks like one of ours and is none.
pub fn unknown_variable(name: &str) -> Option<String> {
    let known = name.starts_with(TESTS) || OF_TESTS.contains(&name) || KNOWN.contains(&name);
    if known || !name.starts_with(MARK) {
        return None;
    }
    let meant = nearest(name, KNOWN.into_iter()).map(|near| format!("; did you mean {near}?"));
    Some(format!("{name} is no variable of Refrain{}", meant.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::unknown_variable as said;

    #[test]
    fn variables() {
        assert_eq!((said("REFRAIN_TIME"), said("PATH"), said("REFRAIN_TEST_TAIL")), (None, None, None));
        assert_eq!(
            said("REFRAIN_STACK").as_deref(),
            Some("REFRAIN_STACK is no variable of Refrain; did you mean REFRAIN_STACKS?")
        );
        assert_eq!(
            said("REFRAIN_EVERYTHING").as_deref(),
            Some("REFRAIN_EVERYTHING is no variable of Refrain")
        );
    }
}
