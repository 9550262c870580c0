//! The ranks come together: who is there, what keeps one from talking, and the messages between them.

use std::path::Path;
use std::time::Duration;

use refrain_encode::Peers;
use refrain_fold::bundle::Link;
use refrain_guest::process::apart::apart;
use refrain_guest::process::pages;
use refrain_mpi::{Family, Pmpi, Transport, TransportError};
use refrain_tracefile::claim::Job;
use refrain_tracefile::part;
use refrain_tracefile::private::Private;

use super::arrival::{self, Meeting, Met, Obstacle, Why};
use super::missed::these;
use crate::config::Config;
use crate::files::{
    LOCAL_RANKS, kept_name, launcher_says, meeting_place, meeting_prefix, parts, temporary_place,
};
use crate::hooks::Ending;
use crate::missing;
use crate::recording::{AllRequests, User, user};

/// The messages of this rank.
pub struct Wire<T> {
    /// `None`: there is no other rank.
    pub transport: Option<T>,
    /// A message could not be sent or received: the others wait for more in vain. No other message is tried, since each
    /// could take as long again.
    pub broken: bool,
    /// For tests: this rank dies after its first message.
    pub dies: bool,
}

const ALONE: TransportError = TransportError::NoPeer { rank: 0, size: 1 };

/// For one message of the merge. A partner may be merging for minutes.
pub const MOST_PATIENCE: Duration = Duration::from_secs(600);

/// For a message of a rank that is at work on something as long as the run, or is answered after all others. It ends
/// with the word that the exchange is called off; without that, after a day.
pub const LONG_PATIENCE: Duration = Duration::from_secs(24 * 3600);

impl<T: Transport> Wire<T> {
    /// From now on waits so long for one message.
    pub fn wait_at_most(&mut self, most: Duration) {
        if let Some(transport) = &mut self.transport {
            transport.wait_at_most(most);
        }
    }

    fn exchange<R>(
        &mut self,
        message: impl FnOnce(&T) -> Result<R, TransportError>,
    ) -> Result<R, TransportError> {
        if self.broken {
            return Err(TransportError::CalledOff);
        }
        let exchanged = self.transport.as_ref().ok_or(ALONE).and_then(message);
        if self.dies {
            // SAFETY: takes numbers only.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        self.broken = exchanged.is_err();
        exchanged
    }
}

impl<T: Transport> Link for Wire<T> {
    type Error = TransportError;

    fn send(&mut self, to: u32, bytes: &[u8]) -> Result<(), TransportError> {
        self.exchange(|transport| transport.send(to, bytes))
    }

    fn recv(&mut self, from: u32) -> Result<Vec<u8>, TransportError> {
        self.exchange(|transport| transport.recv(from))
    }
}

/// Waits until all ranks are here; `None` where there is one alone. Where they do not all come, or may not talk, the
/// reason, if it is for this rank to tell it.
pub fn together(
    config: &Config,
    pmpi: &Pmpi,
    (rank, size): (u32, u32),
    (user, ending): (User, Ending),
    parts: &Path,
) -> Result<Option<Meeting>, Option<String>> {
    if size == 1 {
        return Ok(None);
    }
    let prefix = meeting_prefix(config);
    let place = meeting_place(config, parts, &prefix);
    let (obstacle, time) = (obstacle(pmpi, user, ending), arrival::time_mark(&config.time));
    let own = arrival::Rank { rank, size, obstacle, time };
    match arrival::meet(&place, prefix, own, config.patience, || pmpi.progress()) {
        Ok(Met::All(meeting)) => Ok(Some(meeting)),
        // The others are in their own place still: one that is alone in another is not who knows.
        Ok(Met::NotAll(Some(Why::Missing(_)))) if own.obstacle == Some(Obstacle::User) && rank != 0 => {
            Err(None)
        }
        Ok(Met::NotAll(why)) => Err(why.map(|why| match why {
            Why::Missing(missing) => missing.message(config.patience, &place),
            Why::OtherTimes(ranks) => format!(
                "{} another REFRAIN_TIME than rank 0, and all must keep the times of calls alike",
                these(&ranks, "has", "have"),
            ),
            Why::Held(ranks, Obstacle::Receiving) => format!(
                "{} receives outstanding, which could take our messages for the program's",
                these(&ranks, "has", "have"),
            ),
            Why::Held(ranks, Obstacle::User) => {
                format!("{} another user's since MPI_Init", these(&ranks, "is", "are"))
            }
            Why::Held(ranks, Obstacle::Jumped) => {
                format!("{} left a call of MPI by a jump, from inside MPI", these(&ranks, "has", "have"))
            }
            Why::Held(ranks, Obstacle::Memory) => {
                format!("{} hardly any memory left", these(&ranks, "has", "have"))
            }
        })),
        // If this concerns rank 0, it says so; if not, rank 0 says that this one has not come.
        Err(error) => Err((rank == 0).then(|| {
            let (error, place) = (error.to_string(), place.display().to_string());
            let at = if error.contains(&place) { String::new() } else { format!(" in {place}") };
            format!("the ranks cannot meet{at}: {error}")
        })),
    }
}

/// What keeps this rank from talking over MPI.
pub fn obstacle(pmpi: &Pmpi, began_as: User, ending: Ending) -> Option<Obstacle> {
    if user() != began_as {
        Some(Obstacle::User)
    } else if missing::torn_out() {
        Some(Obstacle::Jumped)
    } else if ending != Ending::Stopped && receives(pmpi) {
        // Of a recording that stopped nobody knows what became of its requests since, or whether a thread is at them.
        Some(Obstacle::Receiving)
    } else if !has_memory() {
        Some(Obstacle::Memory)
    } else {
        None
    }
}

/// Whether there is more memory than MPI takes for a communicator, and we for a message or two.
fn has_memory() -> bool {
    const ENOUGH: usize = 8 << 20;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping wherever there is room, which goes again at once.
    unsafe {
        let start = pages::map_as(std::ptr::null_mut(), ENOUGH, protection, flags, -1, 0);
        start != libc::MAP_FAILED && libc::syscall(libc::SYS_munmap, start, ENOUGH) == 0
    }
}

/// Whether a receive of the program's is outstanding that could take what making a communicator sends. With the MPICH ABI
/// none could.
fn receives(pmpi: &Pmpi) -> bool {
    const RECEIVES: [&str; 8] = [
        "MPI_Irecv",
        "MPI_Irecv_c",
        "MPI_Recv_init",
        "MPI_Recv_init_c",
        "MPI_Isendrecv",
        "MPI_Isendrecv_c",
        "MPI_Isendrecv_replace",
        "MPI_Isendrecv_replace_c",
    ];
    if pmpi.abi().family == Family::Mpich {
        return false;
    }
    let mut found = false;
    AllRequests.others(u32::MAX, &mut |requests| {
        found |= requests.outstanding().any(|(id, handle, persistent)| {
            let receives =
                refrain_model::function_by_id(id).is_none_or(|function| RECEIVES.contains(&function.name));
            // Many programs do not free what they have made once for all.
            receives && !(persistent && pmpi.is_idle(handle).unwrap_or(false))
        });
        found
    });
    found
}

/// In `MPI_Init`, on rank 0. Files of an earlier meeting must not be taken for those of this one; a name tells them apart,
/// where there is one. And whoever is in the same place later sees that rank 0 was.
pub fn begin(config: &Config, size: i32, spawned: bool, alone: Option<u32>, job: Option<&Job>) {
    let prefix = meeting_prefix(config);
    let parts = parts(config, spawned, alone, job);
    if config.run.is_empty() && config.job.is_empty() {
        for place in [&parts, &temporary_place(&prefix)] {
            if let Ok(directory) = Private::open(place) {
                arrival::sweep(&directory, &prefix);
            }
        }
    }
    if size > 1 {
        arrival::leave_token(&meeting_place(config, &parts, &prefix), &prefix);
    }
}

/// In `MPI_Init`, where a host keeps its parts in a place of its own: one of its processes says where, to those who make a
/// trace of them. It also clears that place of what a dead run has left, where `--force` allows it.
pub fn own_place(config: &Config, own: &Path, place: &Path) {
    // Of chosen ranks the first of a host need not be one.
    if config.choice.ranks.is_none() && launcher_says(&LOCAL_RANKS).is_some_and(|rank| rank != 0) {
        return;
    }
    apart(|| {
        if let Ok(directory) = Private::make(place) {
            // It is there already, or cannot be left: whoever recovers has to be told.
            let _ = directory.leave(&kept_name(config), &own.to_string_lossy());
        }
        if let (true, Ok(directory)) = (config.force, Private::open(own)) {
            part::clear_of_others(&directory, &config.run);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A partner that never answers.
    #[derive(Default)]
    struct Stopped {
        waited_for: Cell<u32>,
    }

    impl Stopped {
        fn late<R>(&self, rank: u32) -> Result<R, TransportError> {
            self.waited_for.set(self.waited_for.get() + 1);
            Err(TransportError::Late { rank, seconds: 600 })
        }
    }

    impl Transport for Stopped {
        fn rank(&self) -> u32 {
            0
        }
        fn size(&self) -> u32 {
            2
        }
        fn send(&self, to: u32, _: &[u8]) -> Result<(), TransportError> {
            self.late(to)
        }
        fn recv(&self, from: u32) -> Result<Vec<u8>, TransportError> {
            self.late(from)
        }
        fn wait_at_most(&mut self, _: Duration) {}
    }

    #[test]
    fn a_rank_that_does_not_answer_is_waited_for_once() {
        let mut link = Wire { transport: Some(Stopped::default()), broken: false, dies: false };
        assert_eq!(link.recv(1), Err(TransportError::Late { rank: 1, seconds: 600 }));
        assert!(link.broken);
        assert_eq!(link.send(1, b"x"), Err(TransportError::CalledOff));
        assert_eq!(link.recv(1), Err(TransportError::CalledOff));
        assert_eq!(link.transport.unwrap().waited_for.get(), 1);
    }
}
