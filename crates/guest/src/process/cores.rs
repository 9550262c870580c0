//! The cores that the process may use.

use std::fs;

/// What the system lets the process use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Allowed {
    /// Cores that any of its threads may run on, as the system lists them: `0-3,8`. Empty where it does not tell.
    pub list: String,
    /// A limit on the time of all processes of a control group together, in thousandths of a core, and that group.
    pub limit: Option<(u64, String)>,
}

/// Reads files of the system: nothing for the path of a call.
pub fn allowed() -> Allowed {
    let mut cores: Vec<u32> = Vec::new();
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        cores.extend(list.and_then(numbers).unwrap_or_default());
    }
    cores.sort_unstable();
    cores.dedup();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let limit = group.and_then(|group| {
        limit(group, |group| fs::read_to_string(format!("/sys/fs/cgroup{group}/cpu.max")).ok())
    });
    Allowed { list: list(&cores), limit }
}

/// The numbers of a list like `0-3,8`.
pub fn numbers(list: &str) -> Option<Vec<u32>> {
    /// More cores than any machine has.
    const MOST: u32 = 1 << 20;
    let mut found = Vec::new();
    for piece in list.trim().split(',') {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last >= MOST {
            return None;
        }
        found.extend(first..=last);
    }
    Some(found)
}

/// The other way round, of numbers in order.
fn list(cores: &[u32]) -> String {
    let runs = cores.chunk_by(|a, b| a + 1 == *b);
    let text = |run: &[u32]| match run {
        [one] => one.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    };
    runs.map(text).collect::<Vec<_>>().join(",")
}

/// The tightest limit of a group and of those that it is in: each has a file with a quota and a period, or `max`.
fn limit(group: &str, file: impl Fn(&str) -> Option<String>) -> Option<(u64, String)> {
    let mut tightest: Option<(u64, String)> = None;
    let mut group = group.trim_end_matches('/');
    loop {
        let text = file(group).unwrap_or_default();
        let mut words = text.split_whitespace().map(str::parse::<u64>);
        if let (Some(Ok(quota)), Some(Ok(period @ 1..))) = (words.next(), words.next()) {
            let limit = quota.saturating_mul(1000) / period;
            if tightest.as_ref().is_none_or(|(least, _)| limit < *least) {
                tightest = Some((limit, group.to_owned()));
            }
        }
        match group.rsplit_once('/') {
            Some((above, _)) => group = above,
            None => return tightest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        assert_eq!(numbers("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(list(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(list(&[]), "");
        assert_eq!((numbers(""), numbers("0-x"), numbers("0-4294967295")), (None, None, None));
    }

    #[test]
    fn the_tightest_limit_counts() {
        let files = |group: &str| {
            Some(match group {
                "/jobs/one" => "max 100000\n".to_owned(),
                "/jobs" => "150000 100000\n".to_owned(),
                "" => "400000 100000\n".to_owned(),
                _ => return None,
            })
        };
        assert_eq!(limit("/jobs/one", files), Some((1500, "/jobs".to_owned())));
        assert_eq!(limit("/", files), Some((4000, String::new())));
        assert_eq!(limit("/elsewhere", |_| None), None);
    }

    #[test]
    fn this_process_may_use_a_core() {
        let own = allowed();
        assert!(own.list.is_empty() || !numbers(&own.list).unwrap().is_empty());
    }
}
