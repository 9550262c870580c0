//! Numbers for people: thousands, sizes, durations, dates.

/// `12,340`
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `SIGSEGV`; `signal 99`
pub fn signal(number: i64) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let known = usize::try_from(number).ok().and_then(|at| NAMES.get(at.checked_sub(1)?));
    known.map_or_else(|| format!("signal {number}"), |name| format!("SIG{name}"))
}

/// `1 rank`, `12,340 ranks`
pub fn plural(n: u64, one: &str) -> String {
    let more = if one.ends_with('s') { "es" } else { "s" };
    format!("{} {one}{}", thousands(n), if n == 1 { "" } else { more })
}

/// With a capital at the start.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// `812 B`, `1.50 KiB`
pub fn size(bytes: u128) -> String {
    const UNITS: [&str; 9] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    scaled(bytes as f64, 1024.0, &UNITS)
}

/// `850 ns`, `1.50 us`, `2.25 s`
pub fn duration(nanoseconds: u64) -> String {
    const UNITS: [&str; 4] = ["ns", "us", "ms", "s"];
    if nanoseconds < 1000 {
        return format!("{nanoseconds} ns");
    }
    if nanoseconds < 120_000_000_000 {
        return scaled(nanoseconds as f64, 1000.0, &UNITS);
    }
    let seconds = nanoseconds / 1_000_000_000;
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if h > 0 { format!("{h} h {m:02} min {s:02} s") } else { format!("{m} min {s:02} s") }
}

/// Three significant digits with the largest unit that leaves something before the point.
fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // What would be printed as 1000 or 1024 of a unit is one of the next.
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", units[unit])
}

/// `0,3-5`, of numbers in order.
pub fn ranks(sorted: &[u32]) -> String {
    let mut out = String::new();
    let mut rest = sorted;
    while let Some(&first) = rest.first() {
        let run = rest.iter().zip(first..=u32::MAX).take_while(|(have, next)| **have == *next).count();
        if !out.is_empty() {
            out.push(',');
        }
        match run {
            1 => out.push_str(&first.to_string()),
            _ => out.push_str(&format!("{first}-{}", rest[run - 1])),
        }
        rest = &rest[run..];
    }
    out
}

/// `0,3-5,100-9900 by 100`, of numbers in order: what is as far apart each time is one entry, and of very many entries only the
/// first are told.
pub fn folded(sorted: &[u32]) -> String {
    /// So many that are equally far apart are worth it.
    const STRIDE: usize = 4;
    const ENTRIES: usize = 64;
    let mut entries = Vec::new();
    let mut rest = sorted;
    while let [first, after @ ..] = rest {
        let step = after.first().map_or(1, |second| second - first);
        let run = rest.windows(2).take_while(|two| two[1] - two[0] == step).count() + 1;
        let run = if step == 1 || run >= STRIDE { run } else { 1 };
        entries.push(match (run, step) {
            (1, _) => first.to_string(),
            (_, 1) => format!("{first}-{}", rest[run - 1]),
            _ => format!("{first}-{} by {step}", rest[run - 1]),
        });
        rest = &rest[run..];
        if entries.len() == ENTRIES && !rest.is_empty() {
            return format!("{} and {} more", entries.join(","), thousands(rest.len() as u64));
        }
    }
    entries.join(",")
}

/// `2026-03-14T15:09:26Z`, from seconds since 1970.
pub fn date(unix: i64) -> String {
    let (days, seconds) = (unix.div_euclid(86_400), unix.rem_euclid(86_400));
    // Years are counted from 1 March, so that the leap day is a year's last, in eras of 400 years (146,097 days).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on have 153 days in every five.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_off() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (12_340, "12,340"),
            (123_456, "123,456"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(thousands(n), text);
        }
        assert_eq!(plural(1, "rank"), "1 rank");
        assert_eq!(plural(0, "call"), "0 calls");
        assert_eq!(plural(2, "process"), "2 processes");
    }

    #[test]
    fn sizes() {
        for (n, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1536, "1.50 KiB"),
            (10 * 1024, "10.0 KiB"),
            (100 * 1024, "100 KiB"),
            (1024 * 1024 - 1, "1.00 MiB"),
            (5 << 30, "5.00 GiB"),
            (u128::from(u64::MAX), "16.0 EiB"),
        ] {
            assert_eq!(size(n), text);
        }
    }

    #[test]
    fn durations() {
        for (n, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1000, "1.00 us"),
            (999_999, "1.00 ms"),
            (1_500_000, "1.50 ms"),
            (2_250_000_000, "2.25 s"),
            (119_000_000_000, "119 s"),
            (120_000_000_000, "2 min 00 s"),
            (3_600_000_000_000, "1 h 00 min 00 s"),
        ] {
            assert_eq!(duration(n), text);
        }
    }

    #[test]
    fn rank_lists_fold() {
        assert_eq!(folded(&[]), "");
        assert_eq!(folded(&[7]), "7");
        assert_eq!(folded(&[0, 3, 4, 5]), "0,3-5");
        assert_eq!(folded(&[1, 3, 5]), "1,3,5");
        assert_eq!(folded(&(0..10_000).step_by(2).collect::<Vec<_>>()), "0-9998 by 2");
        assert_eq!(folded(&[0, 1, 2, 10, 20, 30, 40, 41]), "0-2,10-40 by 10,41");
        let squares: Vec<u32> = (0..1000).map(|n| n * n).collect();
        assert!(folded(&squares).ends_with(",4096 and 935 more"), "{}", folded(&squares));
    }

    #[test]
    fn rank_lists() {
        for (numbers, text) in [
            (&[][..], ""),
            (&[0], "0"),
            (&[0, 1], "0-1"),
            (&[0, 3, 4, 5, 9], "0,3-5,9"),
            (&[u32::MAX], "4294967295"),
        ] {
            assert_eq!(ranks(numbers), text);
        }
    }

    #[test]
    fn dates() {
        for (unix, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(unix), text);
        }
    }
}
