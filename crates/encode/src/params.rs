//! Questions about functions and parameters that the call table alone answers.

use refrain_model::{Class, Function, Kind};

use crate::shape::Shape;

/// The communicator whose ranks a status of this call speaks of; without one, the world.
pub(crate) fn comm_param(f: &'static Function) -> Option<usize> {
    Shape::of(f).comm
}

/// Whether a call speaks of a file.
pub(crate) fn speaks_of_a_file(f: &Function) -> bool {
    f.params.iter().any(|p| p.kind == Kind::Handle(Class::File))
}

/// Which parameters of a function say what is sent and what is expected: rank and tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    pub comm: usize,
    pub sent: Option<(usize, usize)>,
    pub expected: Option<(usize, usize)>,
    /// Order alone does not decide.
    pub(crate) wild: bool,
}

impl Message {
    /// `None` for functions that are not about single messages.
    pub fn of(f: &'static Function) -> Option<Message> {
        let index = |name: &str| f.params.iter().position(|p| p.name == name);
        let pair = |rank: &str, tags: [&str; 2]| {
            let rank = index(rank).filter(|&at| matches!(f.params[at].kind, Kind::Peer(_)))?;
            Some((rank, tags.iter().find_map(|tag| index(tag))?))
        };
        let (sent, expected) = (pair("dest", ["sendtag", "tag"]), pair("source", ["recvtag", "tag"]));
        (sent.is_some() || expected.is_some()).then_some(())?;
        let wild = f.persistent || f.name.to_ascii_lowercase().contains("probe");
        Some(Message { comm: comm_param(f)?, sent, expected, wild })
    }
}
