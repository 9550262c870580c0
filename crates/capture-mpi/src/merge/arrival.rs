//! Who is there at the end: the ranks meet in the directory of the parts, by files, before they talk over MPI.
//!
//! A rank may never come: it is not traced, or dead, or stopped. Nothing that MPI offers can be waited for with a bound
//! and stays out of the program's way: a collective on its communicator would be one more among its own, a message could
//! be taken by its receives. So each rank leaves a file that says that it has come. Rank 0 looks until all are there, and
//! leaves the word to go; whoever loses patience before leaves the word that nobody goes. Both words have one name, of
//! which there can be one only: all ranks do the same. Who comes late finds the word and obeys.
//!
//! That word can be trusted although the file may be an earlier run's. The files of a run carry its name, and where it
//! has none rank 0 has swept the directory in `MPI_Init`. And "go" is left after all have come, so that a rank which
//! finds it when it comes knows that it is of another run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use refrain_encode::hash_symbol;
use refrain_fold::ranks::RankList;
use refrain_guest::process::host;
use refrain_guest::process::waited::Waited;
use refrain_model::time::Time;
use refrain_tracefile::private::Private;

use super::missed::Missed;

/// For so long a rank gives up its core between two looks; then it sleeps so long.
const BRIEFLY: Duration = Duration::from_millis(1);
const NAP: Duration = Duration::from_millis(1);
/// Between two looks at the directory: at first, and at most.
const OFTEN: Duration = Duration::from_micros(100);
const SELDOM: Duration = Duration::from_millis(50);
/// What one rank more adds to that, so that all together ask a file server at most 20,000 times a second.
const FOR_EACH: Duration = Duration::from_micros(50);

/// For so long at least a rank that has come and cannot look any more waits until it can again.
const LAST: Duration = Duration::from_secs(60);

/// Left by rank 0 in `MPI_Init`: who does not find it is in another place.
const TOKEN: &str = "root";
const SIGN: &str = "sign";
const GO: &str = "go";
const LEAVE: &str = "leave";

/// The file that says what was decided, in the directory of the meeting, and what a rank leaves there that does not come
/// because it may not even allocate: see `recorder::interrupted`.
pub fn decision(place: &Path, prefix: &str) -> PathBuf {
    place.join(format!("{prefix}decision"))
}
pub const NOBODY_GOES: &std::ffi::CStr = c"leave";

/// One of the ranks that come.
#[derive(Debug, Clone, Copy)]
pub struct Rank {
    pub rank: u32,
    pub size: u32,
    /// Why this one may not talk over MPI: then nobody does.
    pub obstacle: Option<Obstacle>,
    /// How it keeps the times of calls: the messages depend on it, so that nobody talks if ranks differ.
    pub time: u64,
}

/// Of each rank that has come, how it keeps times.
type Marks = BTreeMap<u32, u64>;

/// 0 where times of single calls are not kept.
pub fn time_mark(time: &Time) -> u64 {
    if time.of_every_call() { hash_symbol(time.to_string().as_bytes(), 0).max(1) } else { 0 }
}

/// Where one of these holds for a rank, a call of MPI could fail there while it waits for ever on all others; or the program
/// would notice. They are behind the rank in the name of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// A receive is outstanding that could take a message of ours.
    Receiving,
    /// The process has become another user's since MPI began: what it shared with others it may not be able to share now.
    User,
    /// There is hardly any memory left.
    Memory,
    /// The program has left MPI by a jump in the midst of a call, and nobody can say what MPI is in the middle of.
    Jumped,
}

impl Obstacle {
    const ALL: [Obstacle; 4] = [Obstacle::Receiving, Obstacle::User, Obstacle::Memory, Obstacle::Jumped];

    fn word(self) -> &'static str {
        match self {
            Obstacle::Receiving => "receiving",
            Obstacle::User => "user",
            Obstacle::Memory => "memory",
            Obstacle::Jumped => "jumped",
        }
    }
}

#[derive(Debug)]
pub enum Met {
    All(Meeting),
    /// The one that has decided this knows why.
    NotAll(Option<Why>),
}

#[derive(Debug, PartialEq, Eq)]
pub enum Why {
    /// Some did not come.
    Missing(Missed),
    /// These have come, and may not talk.
    Held(RankList, Obstacle),
    /// These keep times otherwise than rank 0 does.
    OtherTimes(RankList),
}

/// What a look at the directory says.
enum Look {
    Wait,
    Again,
    Go,
    Leave(Option<Why>),
}

enum Verdict {
    Wait,
    Go,
    Leave(Why),
}

/// The place where all ranks have met.
#[derive(Debug)]
pub struct Meeting {
    directory: Private,
    /// Begins the names of all files.
    prefix: String,
}

impl Meeting {
    fn name(&self, what: impl std::fmt::Display) -> OsString {
        format!("{}{what}", self.prefix).into()
    }

    fn decision(&self) -> io::Result<Option<String>> {
        self.directory.word(&self.name("decision"))
    }

    /// Whether this rank is the one that decided.
    fn decide(&self, word: &str) -> io::Result<bool> {
        is_new(self.directory.leave(&self.name("decision"), word))
    }

    /// Those that are there, each with how it keeps times, and of these the ones that may not talk.
    fn present(&self) -> io::Result<(Marks, Vec<(u32, Obstacle)>)> {
        let (mut present, mut held) = (BTreeMap::new(), Vec::new());
        for name in self.directory.names()? {
            let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(&self.prefix)) else { continue };
            let (rank, more) = rest.split_once('.').unwrap_or((rest, ""));
            let Ok(rank) = rank.parse() else { continue };
            present.insert(rank, more.parse().unwrap_or(0));
            held.extend(Obstacle::ALL.into_iter().find(|known| known.word() == more).map(|why| (rank, why)));
        }
        Ok((present, held))
    }

    /// What this rank would decide, if nobody has.
    fn verdict(&self, own: Rank, late: bool) -> io::Result<Verdict> {
        let (present, held) = self.present()?;
        let missing: RankList = (0..own.size).filter(|rank| !present.contains_key(rank)).collect();
        if let (true, Some(&(_, why))) = (missing.is_empty(), held.first()) {
            let ranks = held.iter().filter(|(_, other)| *other == why).map(|(rank, _)| *rank);
            return Ok(Verdict::Leave(Why::Held(ranks.collect(), why)));
        }
        let others = present.iter().filter(|(_, time)| Some(*time) != present.get(&0));
        let others: RankList = others.map(|(rank, _)| *rank).collect();
        if missing.is_empty() && !others.is_empty() {
            return Ok(Verdict::Leave(Why::OtherTimes(others)));
        }
        Ok(match (missing.is_empty(), late) {
            (true, _) if own.rank == 0 => Verdict::Go,
            // Rank 0 has come and does not decide: it is stopped, or dead.
            (true, true) => Verdict::Leave(Why::Missing(self.missed(RankList::single(0))?)),
            (false, true) => Verdict::Leave(Why::Missing(self.missed(missing)?)),
            (_, false) => Verdict::Wait,
        })
    }

    /// What is known here of those that did not come.
    fn missed(&self, ranks: RankList) -> io::Result<Missed> {
        let token = self.directory.word(&self.name(TOKEN))?;
        Ok(Missed::new(ranks, &self.directory.names()?, token.is_some()))
    }

    fn look(&self, own: Rank, late: bool) -> io::Result<Look> {
        match self.decision()?.as_deref() {
            None => {}
            Some(GO) => return Ok(Look::Go),
            Some(_) => return Ok(Look::Leave(None)),
        }
        if own.rank != 0 && !late {
            return Ok(Look::Wait);
        }
        Ok(match self.verdict(own, late)? {
            Verdict::Wait => Look::Wait,
            Verdict::Go => {
                self.decide(GO)?;
                Look::Again
            }
            Verdict::Leave(why) if self.decide(LEAVE)? => Look::Leave(Some(why)),
            Verdict::Leave(_) => Look::Again,
        })
    }

    fn name_of(&self, own: Rank) -> OsString {
        match own.obstacle {
            Some(why) => self.name(format_args!("{}.{}", own.rank, why.word())),
            None if own.time != 0 => self.name(format_args!("{}.{}", own.rank, own.time)),
            None => self.name(own.rank),
        }
    }

    fn come(&self, own: Rank) -> io::Result<()> {
        let name = self.name_of(own);
        // There may be one of an earlier run without a name.
        self.directory.create_anew(&name).map(drop)
    }

    /// Tells the others not to wait for this rank any more. Whether it is the first to do so.
    pub fn call_off(&self) -> bool {
        is_new(self.directory.leave(&self.name("off"), "off")).unwrap_or(true)
    }

    pub fn is_off(&self) -> bool {
        self.directory.word(&self.name("off")).is_ok_and(|word| word.is_some())
    }

    /// The word that rank 0 changes as long as it is at work; see `sign`.
    pub fn sign(&self) -> io::Result<Option<String>> {
        self.directory.word(&self.name(SIGN))
    }

    /// Where rank 0 leaves it.
    pub fn place_of_sign(&self) -> (PathBuf, OsString) {
        (self.directory.path().to_owned(), self.name(SIGN))
    }

    /// Removes the files of the meeting. Not before all have gone on.
    pub fn end(self) {
        sweep(&self.directory, &self.prefix);
    }

    /// Removes the files of the meeting, and its directory where nothing else is in it. Not before all have gone on.
    pub fn clear(self) {
        sweep(&self.directory, &self.prefix);
        // Where there are parts it stays.
        let _ = self.directory.remove_itself();
    }
}

fn is_new(left: io::Result<()>) -> io::Result<bool> {
    match left {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Rank 0 will come here.
pub fn leave_token(place: &Path, prefix: &str) {
    // Who does not see it takes this place for another.
    let _ = Private::make(place)
        .and_then(|directory| directory.leave(format!("{prefix}{TOKEN}").as_ref(), &host::name()));
}

/// Removes what an earlier meeting of that name left.
pub fn sweep(directory: &Private, prefix: &str) {
    for name in directory.names().unwrap_or_default() {
        if name.to_str().is_some_and(|name| name.starts_with(prefix)) {
            // What cannot be removed is only in the way.
            let _ = directory.remove(&name);
        }
    }
}

/// Comes to the meeting of that name and waits until it is decided. Meanwhile `progress` lets MPI get on: a rank that is
/// not there yet may wait for something that this one has sent.
pub fn meet(
    place: &Path,
    prefix: String,
    own: Rank,
    patience: Duration,
    progress: impl Fn(),
) -> io::Result<Met> {
    let meeting = Meeting { directory: Private::make(place)?, prefix };
    match meeting.decision()?.as_deref() {
        None => {}
        Some(GO) => meeting.directory.remove(&meeting.name("decision"))?,
        Some(_) => return Ok(Met::NotAll(None)),
    }
    meeting.come(own)?;
    let seldom = SELDOM.max(FOR_EACH * own.size);
    let (mut waited, mut look) = (Duration::ZERO, Duration::ZERO);
    let mut clock = Waited::default();
    loop {
        if waited >= look {
            match meeting.look(own, waited >= patience) {
                Ok(Look::Wait) => {}
                // Somebody may have been faster: what stands is what the next look finds.
                Ok(Look::Again) => continue,
                Ok(Look::Go) => {
                    // All look for the decision alone now. Rank 0 would have to remove ten thousand of them.
                    let _ = meeting.directory.remove(&meeting.name_of(own));
                    return Ok(Met::All(meeting));
                }
                Ok(Look::Leave(why)) => return Ok(Met::NotAll(why)),
                // The others count on this rank, which has come: it may not leave before nobody can. No file can be opened
                // for the moment, perhaps.
                Err(error) if waited >= (patience * 2).max(LAST) => return Err(error),
                Err(_) => {}
            }
            look = waited + (waited / 8).clamp(OFTEN, seldom);
        }
        progress();
        if waited < BRIEFLY {
            thread::yield_now();
        } else {
            thread::sleep(NAP);
        }
        waited = clock.so_far();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::prefix;

    const LONG: Duration = Duration::from_secs(600);
    const SHORT: Duration = Duration::from_millis(20);

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("refrain-meet-{name}-{}", std::process::id()))
    }

    fn come(place: &Path, rank: u32, size: u32, patience: Duration) -> Met {
        let own = Rank { rank, size, obstacle: None, time: 0 };
        meet(place, prefix("run"), own, patience, || ()).unwrap()
    }

    /// What each of these ranks meets with.
    fn all(place: &Path, size: u32, ranks: &[Rank], patience: Duration) -> Vec<Met> {
        thread::scope(|scope| {
            let met = ranks.iter().map(|&own| {
                let own = Rank { size, ..own };
                scope.spawn(move || meet(place, prefix("run"), own, patience, || ()).unwrap())
            });
            let met: Vec<_> = met.collect();
            met.into_iter().map(|met| met.join().unwrap()).collect()
        })
    }

    fn ranks(numbers: &[u32]) -> Vec<Rank> {
        numbers.iter().map(|&rank| Rank { rank, size: 0, obstacle: None, time: 0 }).collect()
    }

    fn files(place: &Path) -> usize {
        std::fs::read_dir(place).map_or(0, Iterator::count)
    }

    #[test]
    fn all_ranks_meet_and_leave_nothing() {
        let place = place("all");
        for size in [1, 2, 7] {
            let met = all(&place, size, &ranks(&(0..size).collect::<Vec<_>>()), LONG);
            let meetings: Vec<Meeting> = met
                .into_iter()
                .map(|met| match met {
                    Met::All(meeting) => meeting,
                    Met::NotAll(why) => panic!("{why:?}"),
                })
                .collect();
            assert!(meetings.iter().all(|meeting| !meeting.is_off()));
            assert_eq!((meetings[0].call_off(), meetings[0].call_off()), (true, false));
            assert!(meetings.iter().all(Meeting::is_off));
            meetings.into_iter().next().unwrap().clear();
            assert!(!place.exists());
        }
    }

    #[test]
    fn one_says_who_is_missing_and_all_leave_also_who_comes_late() {
        let place = place("missing");
        for missing in 0..3 {
            let there: Vec<u32> = (0..3).filter(|rank| *rank != missing).collect();
            let met = all(&place, 3, &ranks(&there), SHORT);
            let told: Vec<&Why> = met
                .iter()
                .filter_map(|met| match met {
                    Met::All(_) => panic!("without rank {missing}"),
                    Met::NotAll(why) => why.as_ref(),
                })
                .collect();
            // The other may not have come when the first lost its patience.
            let [Why::Missing(missed)] = told[..] else { panic!("{told:?}") };
            assert!(missed.ranks.contains(missing), "{missed:?}");
            assert!(matches!(come(&place, missing, 3, LONG), Met::NotAll(None)));
            std::fs::remove_dir_all(&place).unwrap();
        }
    }

    #[test]
    fn a_receive_that_is_outstanding_keeps_all_apart() {
        let place = place("receiving");
        let mut three = ranks(&[0, 1, 2]);
        three[1].obstacle = Some(Obstacle::Receiving);
        three[2].obstacle = Some(Obstacle::Receiving);
        let met = all(&place, 3, &three, LONG);
        let Met::NotAll(Some(Why::Held(ranks, Obstacle::Receiving))) = &met[0] else { panic!("{met:?}") };
        assert_eq!(*ranks, RankList::from_sorted(&[1, 2]));
        assert!(met[1..].iter().all(|met| matches!(met, Met::NotAll(None))), "{met:?}");
        std::fs::remove_dir_all(&place).unwrap();
    }

    /// One that waits for questions and one that sends what it merged would take these for each other.
    #[test]
    fn ranks_that_keep_times_in_different_ways_do_not_talk() {
        let place = place("times");
        let mark = |word: &str| time_mark(&Time::read(word).unwrap());
        let marks = ["exact", "binned=1.2", "binned=1.3", "mean"].map(mark);
        assert_eq!(marks[3], 0);
        for other in &marks[1..] {
            let mut three = ranks(&[0, 1, 2]);
            three[0].time = marks[0];
            three[1].time = *other;
            three[2].time = marks[0];
            let met = all(&place, 3, &three, LONG);
            let told: Vec<&Why> = met
                .iter()
                .filter_map(|met| match met {
                    Met::All(_) => panic!("with different times"),
                    Met::NotAll(why) => why.as_ref(),
                })
                .collect();
            assert_eq!(told, [&Why::OtherTimes(RankList::single(1))]);
            std::fs::remove_dir_all(&place).unwrap();
        }
    }

    #[test]
    fn what_another_run_left_decides_nothing() {
        let place = place("stale");
        let directory = Private::make(&place).unwrap();
        let name = |what: &str| OsString::from(format!("{}{what}", prefix("run")));
        // A word to go that was there before this rank came, and files of ranks that are not of this run.
        directory.leave(&name("decision"), GO).unwrap();
        directory.create(&name("1")).unwrap();
        assert!(matches!(come(&place, 1, 2, SHORT), Met::NotAll(Some(_))));
        std::fs::remove_dir_all(&place).unwrap();
        // Those of a run with another name stay, too.
        let directory = Private::make(&place).unwrap();
        let other = OsString::from(format!("{}decision", prefix("other")));
        directory.leave(&other, LEAVE).unwrap();
        directory.create(&OsString::from(format!("{}1", prefix("other")))).unwrap();
        let met = all(&place, 2, &ranks(&[0, 1]), LONG);
        for met in met {
            let Met::All(meeting) = met else { panic!("{met:?}") };
            sweep(&meeting.directory, &meeting.prefix);
        }
        assert_eq!(files(&place), 2);
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn rank_0_that_does_not_decide_is_missing() {
        let place = place("undecided");
        Private::make(&place).unwrap().create(&OsString::from(format!("{}0", prefix("run")))).unwrap();
        let Met::NotAll(Some(why)) = come(&place, 1, 2, SHORT) else { panic!() };
        let Why::Missing(missed) = why else { panic!("{why:?}") };
        assert_eq!(missed.ranks, RankList::single(0));
        std::fs::remove_dir_all(&place).unwrap();
    }
}
