//! Bringing the bundles of all ranks together on rank 0 in log2(P) pairwise phases.

use super::{Bundle, Error, Manifest, Parcel, RankTree, Want};

/// How bytes get from rank to rank: in order, whole, one partner at a time.
pub trait Link {
    /// Why bytes did not get there. An error of the merge itself is passed on as one.
    type Error;
    /// Gives bytes to another rank.
    fn send(&mut self, to: u32, bytes: &[u8]) -> Result<(), Self::Error>;
    /// Takes the next bytes that came from another rank.
    fn recv(&mut self, from: u32) -> Result<Vec<u8>, Self::Error>;
}

/// What one rank is left with.
#[derive(Debug, PartialEq)]
pub struct Gathered {
    /// Everything, on rank 0; nothing elsewhere.
    pub bundle: Option<Bundle>,
    /// Partners whose data could not be used, and why. What they (and those behind them) recorded is missing.
    pub lost: Vec<(u32, Error)>,
}

/// To be called by all `size` ranks, which bring what they have up the [`RankTree`]. A rank that recorded nothing takes part
/// with an empty bundle. Bad data from a partner costs that partner's part, not the exchange: the three messages are
/// exchanged in any case, so that nobody is left waiting.
pub fn gather<L: Link>(link: &mut L, rank: u32, size: u32, mut bundle: Bundle) -> Result<Gathered, L::Error> {
    let mut lost = Vec::new();
    bundle.seal();
    bundle.join_threads();
    let RankTree { below, above } = RankTree::of(rank, size);
    for from in below {
        take(link, from, &mut bundle, &mut lost)?;
    }
    match above {
        Some(to) => {
            give(link, to, &bundle, &mut lost)?;
            Ok(Gathered { bundle: None, lost })
        }
        None => Ok(Gathered { bundle: Some(bundle), lost }),
    }
}

fn give<L: Link>(
    link: &mut L,
    to: u32,
    bundle: &Bundle,
    lost: &mut Vec<(u32, Error)>,
) -> Result<(), L::Error> {
    link.send(to, &bundle.manifest().to_bytes())?;
    let answer = link.recv(to)?;
    let parcel = Want::from_bytes(&answer).and_then(|want| bundle.parcel_bytes(&want));
    link.send(
        to,
        &parcel.unwrap_or_else(|error| {
            lost.push((to, error));
            Vec::new()
        }),
    )
}

fn take<L: Link>(
    link: &mut L,
    from: u32,
    bundle: &mut Bundle,
    lost: &mut Vec<(u32, Error)>,
) -> Result<(), L::Error> {
    let manifest = Manifest::from_bytes(&link.recv(from)?);
    let want = manifest.as_ref().map(|m| bundle.missing(m)).unwrap_or_default();
    link.send(from, &want.to_bytes())?;
    // The bytes are not kept beside what they hold.
    let parcel = Parcel::from_bytes(&link.recv(from)?);
    let taken = manifest.and_then(|manifest| bundle.absorb(manifest, parcel?));
    lost.extend(taken.err().map(|error| (from, error)));
    Ok(())
}
