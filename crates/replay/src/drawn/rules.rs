//! What a rank may wait for, and what it expects before it does: the rules by which no rank waits for ever.

use super::clock::Time;
use super::steps::With;

/// A call that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub with: With,
    /// The last one of the rank.
    pub last: bool,
    /// It receives something.
    pub receives: bool,
    /// The time of what it waits for.
    pub until: Time,
    /// The rank has a call of some ranks before it, in this phase.
    pub some_ahead: bool,
}

impl Moment {
    /// Receives are posted for all messages that are sent up to then, and `early` nanoseconds more.
    pub fn horizon(&self, early: u64) -> Time {
        match self.last {
            true => Time::LAST,
            false => Time { ns: self.until.ns.saturating_add(early), rank: u32::MAX, ..self.until },
        }
    }

    /// Messages that are sent before then may be waited for.
    pub fn before(&self) -> Option<Time> {
        let waits = match self.with {
            _ if self.last => true,
            With::All => true,
            With::Some => false,
            With::Nobody => self.receives && !self.some_ahead,
        };
        waits.then_some(self.until)
    }

    /// Whether it may wait until what the rank has sent is received.
    pub fn sends_wait(&self) -> bool {
        self.last || self.with == With::Nobody && !self.some_ahead
    }
}

#[cfg(test)]
mod tests {
    use super::super::owed::Owed;
    use super::*;
    use fastrand::Rng;

    #[derive(Debug, Clone)]
    enum Does {
        Send(usize),
        Receive,
        All,
        /// Which of the collectives, and its members.
        Some(usize, Vec<usize>),
        End,
    }

    #[derive(Debug)]
    struct Event {
        does: Does,
        begin: Time,
        until: Time,
    }

    #[derive(Default)]
    struct Rank {
        events: Vec<Event>,
        at: usize,
        entered: bool,
        horizon: Option<Time>,
        owed: Owed<(usize, usize)>,
        waits_for: Vec<(usize, usize)>,
        sends_wait: bool,
    }

    type Rules = (Time, Option<Time>, bool);

    /// A run that came to its end, as one order of all that was done; then destinations are mixed up.
    fn run(random: &mut Rng) -> Vec<Rank> {
        let ranks = 2 + random.usize(..4);
        let mut scripts: Vec<Vec<Does>> = vec![Vec::new(); ranks];
        for step in 0..10 + random.usize(..40) {
            match random.usize(..10) {
                0 => scripts.iter_mut().for_each(|script| script.push(Does::All)),
                1 => {
                    let members: Vec<usize> = (0..ranks).filter(|_| random.usize(..2) == 0).collect();
                    for member in &members {
                        scripts[*member].push(Does::Some(step, members.clone()));
                    }
                }
                _ => {
                    let (from, to) = (random.usize(..ranks), random.usize(..ranks));
                    scripts[from].push(Does::Send(to));
                    scripts[to].push(Does::Receive);
                }
            }
        }
        for script in &mut scripts {
            let sends: Vec<usize> =
                (0..script.len()).filter(|at| matches!(script[*at], Does::Send(_))).collect();
            for at in &sends {
                script.swap(*at, sends[random.usize(..sends.len())]);
            }
            script.push(Does::End);
        }
        let timed = |(rank, script): (usize, Vec<Does>)| {
            // Clocks of ranks have little to do with each other.
            let speed = 1 + random.usize(..20);
            let mut now = Time { phase: 0, ns: 0, rank: rank as u32 };
            let mut events = Vec::new();
            for does in script {
                let begin = Time { ns: now.ns + 1 + random.usize(..speed * 10) as u64, ..now };
                let mut until = Time { ns: begin.ns + 1 + random.usize(..speed * 10) as u64, ..begin };
                now = until;
                if let Does::All = does {
                    until = Time { rank: now.rank, ..until.end_of_phase() };
                    now = Time { phase: now.phase + 1, ns: 0, ..now };
                }
                events.push(Event { does, begin, until });
            }
            Rank { events, ..Rank::default() }
        };
        scripts.into_iter().enumerate().map(timed).collect()
    }

    /// Whether all come to their end, if every send waits for its receive.
    fn ends(mut ranks: Vec<Rank>, rules: impl Fn(Moment) -> Rules) -> bool {
        let all: Vec<usize> = (0..ranks.len()).collect();
        loop {
            let mut got_on = false;
            for me in 0..ranks.len() {
                let Some(event) = ranks[me].events.get(ranks[me].at) else { continue };
                if !ranks[me].entered {
                    let with = match event.does {
                        Does::All => With::All,
                        Does::Some(..) => With::Some,
                        _ => With::Nobody,
                    };
                    let rest = ranks[me].events[ranks[me].at + 1..].iter();
                    let mut phase = rest.take_while(|later| later.until.phase == event.until.phase);
                    let (last, receives) =
                        (matches!(event.does, Does::End), matches!(event.does, Does::Receive));
                    let some_ahead = phase.any(|later| matches!(later.does, Does::Some(..)));
                    let (horizon, before, sends_wait) =
                        rules(Moment { with, last, receives, until: event.until, some_ahead });
                    let known = ranks[me].horizon;
                    let is_new = |time: Time| known.is_none_or(|known| known < time) && time <= horizon;
                    let mut new = Vec::new();
                    for (from, rank) in ranks.iter().enumerate() {
                        let sends = rank.events.iter().enumerate();
                        let mine = sends.filter(|(_, e)| matches!(e.does, Does::Send(to) if to == me));
                        new.extend(
                            mine.filter(|(_, e)| is_new(e.begin)).map(|(at, e)| (e.begin, (from, at))),
                        );
                    }
                    let rank = &mut ranks[me];
                    new.into_iter().for_each(|(time, message)| rank.owed.expect(time, message));
                    rank.horizon = Some(known.map_or(horizon, |known| known.max(horizon)));
                    rank.owed.receive(u64::from(receives));
                    while let Some(message) = before.and_then(|before| rank.owed.due(before)) {
                        rank.waits_for.push(message);
                    }
                    if last {
                        rank.waits_for.extend(std::iter::from_fn(|| rank.owed.next()));
                    }
                    (rank.entered, rank.sends_wait) = (true, sends_wait);
                    got_on = true;
                }
                let has_come = |rank: usize, at: usize| {
                    ranks[rank].at > at || ranks[rank].at == at && ranks[rank].entered
                };
                let event = &ranks[me].events[ranks[me].at];
                let meet = |member: &usize| {
                    let same = |e: &Event| match (&e.does, &event.does) {
                        (Does::Some(a, _), Does::Some(b, _)) => a == b,
                        (Does::All, Does::All) => e.until.phase == event.until.phase,
                        _ => false,
                    };
                    has_come(*member, ranks[*member].events.iter().position(same).unwrap())
                };
                let done = match &event.does {
                    Does::Send(to) => {
                        !ranks[me].sends_wait
                            || ranks[*to].horizon.is_some_and(|horizon| horizon >= event.begin)
                    }
                    Does::All => all.iter().all(meet),
                    Does::Some(_, members) => members.iter().all(meet),
                    Does::Receive | Does::End => true,
                };
                if done && ranks[me].waits_for.iter().all(|(from, at)| has_come(*from, *at)) {
                    let rank = &mut ranks[me];
                    (rank.at, rank.entered, got_on) = (rank.at + 1, false, true);
                    rank.waits_for.clear();
                }
            }
            if ranks.iter().all(|rank| rank.at == rank.events.len()) {
                return true;
            }
            if !got_on {
                return false;
            }
        }
    }

    #[test]
    fn by_the_rules_no_rank_waits_for_ever() {
        let stuck = |rules: &dyn Fn(Moment) -> Rules| {
            (0..2000).filter(|seed| !ends(run(&mut Rng::with_seed(*seed)), rules)).count()
        };
        assert_eq!(stuck(&|now| (now.horizon(0), now.before(), now.sends_wait())), 0);
        assert_eq!(stuck(&|now| (now.horizon(30), now.before(), now.sends_wait())), 0);
        // Each of them is needed.
        let waits = |now: Moment| now.receives.then_some(Time::LAST).or(now.before());
        assert!(stuck(&|now| (now.horizon(0), waits(now), now.sends_wait())) > 0);
        let some = |now: Moment| Moment { some_ahead: false, ..now };
        assert!(stuck(&|now| (now.horizon(0), some(now).before(), now.sends_wait())) > 0);
        assert!(stuck(&|now| (now.horizon(0), now.before(), true)) > 0);
        let less = |now: Moment| Time { ns: now.until.ns / 2, ..now.horizon(0) };
        assert!(stuck(&|now| (less(now), now.before(), now.sends_wait())) > 0);
    }
}
