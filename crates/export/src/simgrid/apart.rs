//! Collectives of some of the ranks, as messages.

use refrain_views::happenings::Collective;

use super::{Actions, Counted, size};

impl Actions {
    /// From and to everybody in rounds whose distance doubles; from or to a root, one after the other; or along a chain.
    /// `each` is how much is for each member, or from it, where the call of the root says so.
    pub(super) fn apart(
        &mut self,
        base: &str,
        collective: &Collective,
        each: Option<Vec<u64>>,
        counted: &mut Counted,
    ) {
        let group = collective.comm.group().to_vec();
        let Some(me) = group.iter().position(|rank| *rank == self.rank) else { return };
        let made = self.apart.entry(collective.comm.number).or_default();
        let tag = counted.apart(collective.comm.number, *made);
        *made += 1;
        let n = group.len() as u64;
        let part = |at: usize, otherwise: u64| {
            each.as_ref().and_then(|each| each.get(at)).copied().unwrap_or(otherwise)
        };
        let Collective { sent, received, root, .. } = *collective;
        let root = root.and_then(|root| usize::try_from(root).ok());
        let len = group.len();
        match (base, root) {
            ("bcast" | "scatter" | "scatterv", Some(root)) => {
                let each = if base == "bcast" { sent } else { sent / n };
                if me == root {
                    for at in (0..len).filter(|at| *at != root) {
                        self.line(format!("send {} {tag} {}", group[at], size(part(at, each))));
                    }
                } else {
                    self.line(format!("recv {} {tag} {}", group[root], size(received)));
                }
            }
            ("reduce" | "gather" | "gatherv", Some(root)) => {
                // Without the counts of each, what comes is not more than all of it.
                let each = if base == "gather" { received / n } else { received };
                if me == root {
                    for at in (0..len).filter(|at| *at != root) {
                        self.line(format!("recv {} {tag} {}", group[at], size(part(at, each))));
                    }
                } else {
                    self.line(format!("send {} {tag} {}", group[root], size(sent)));
                }
            }
            ("scan" | "exscan", _) => {
                if let Some(before) = me.checked_sub(1) {
                    self.line(format!("recv {} {tag} {}", group[before], size(sent)));
                }
                if let Some(after) = group.get(me + 1) {
                    self.line(format!("send {after} {tag} {}", size(sent)));
                }
            }
            // All the same: each round passes on what a rank gives, as much as is left to pass.
            _ => {
                let mut distance = 1;
                while distance < len {
                    let (to, from) = (group[(me + distance) % len], group[(me + len - distance) % len]);
                    // Another one may give more, but not more than all of what there is.
                    let (bytes, most) = (size(sent), size(sent.max(received)));
                    self.line(format!("isend {to} {tag} {bytes}"));
                    self.line(format!("recv {from} {tag} {most}"));
                    self.line(format!("wait {} {to} {tag}", self.rank));
                    distance *= 2;
                }
            }
        }
    }
}
