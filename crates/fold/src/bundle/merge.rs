//! Merging two bundles so that only what the other side lacks is handed over.
//!
//! The giver shows a [`Manifest`] (hashes and cohorts), the taker answers with what it [`Want`]s, the giver packs a
//! [`Parcel`]. In one process [`merge`] does the same three steps on the spot.

use std::collections::{HashMap, HashSet};

use crate::stream::Stream;

use super::classes::Kind;
use super::codec::{In, Out};
use super::hash::{self, Hash};
use super::lanes::{Number, StreamSet, Variant};
use super::sites::{Module, Sites, Stack};
use super::{
    Bundle, Class, Classes, Cohort, Error, Lane, Side, SideKind, Structure, SymbolEntry, Tally, get,
    lanes_of, pick,
};

/// A bundle by hashes. Cohorts refer to the lists here, which are in the giver's order.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// As [`Bundle::world`].
    pub world: u32,
    /// By content, with what was measured.
    pub symbols: Vec<(Hash, Tally, Classes)>,
    /// Hashes of the expansions, so they depend on no rank's numbering.
    pub structures: Vec<Hash>,
    /// By content.
    pub streams: Vec<Hash>,
    /// Whole: they are small.
    pub cohorts: Vec<Cohort>,
    /// Of more bits than the stacks are known by, so that two of one site are both brought, and noticed.
    pub sites: Vec<Hash>,
    /// By content.
    pub modules: Vec<Hash>,
}

/// What the taker of a manifest lacks, as indices into it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Want {
    /// Symbols.
    pub symbols: Vec<u32>,
    /// Structures.
    pub structures: Vec<u32>,
    /// Streams.
    pub streams: Vec<u32>,
    /// Call stacks.
    pub sites: Vec<u32>,
    /// Modules.
    pub modules: Vec<u32>,
}

/// What was wanted, in the same order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parcel {
    /// Bytes, lanes, site.
    pub symbols: Vec<(Box<[u8]>, u16, u64)>,
    /// Terminals are the giver's: indices into the manifest's symbols.
    pub structures: Vec<Structure>,
    /// Streams.
    pub streams: Vec<Stream>,
    /// Call stacks.
    pub stacks: Vec<Stack>,
    /// Modules.
    pub modules: Vec<Module>,
}

/// One bundle out of two of the same run. No rank's expansion depends on the order of merging.
pub fn merge(mut a: Bundle, mut b: Bundle) -> Result<Bundle, Error> {
    a.seal();
    b.seal();
    let (mine, manifest) = (Hashes::of(&a), b.manifest());
    let want = mine.missing(&manifest);
    let parcel = b.into_parcel(&want);
    a.absorb_wanted(mine, &want, manifest, parcel)?;
    Ok(a)
}

impl Bundle {
    /// What another needs to say what it lacks.
    pub fn manifest(&self) -> Manifest {
        let hashes = Hashes::of(self);
        Manifest {
            world: self.world,
            symbols: (hashes.symbols.into_iter().zip(&self.symbols))
                .map(|(hash, symbol)| (hash, symbol.tally, symbol.classes.clone()))
                .collect(),
            structures: hashes.structures,
            streams: hashes.streams,
            cohorts: self.cohorts.clone(),
            sites: hashes.sites,
            modules: hashes.modules,
        }
    }

    /// Long structures as bytes, since merging does not look into them: see [`super::Rules`].
    pub(super) fn seal(&mut self) {
        let mut symbols: Option<Vec<Hash>> = None;
        for structure in &mut self.structures {
            if let Structure::Rules(rules) = structure {
                let of = || self.symbols.iter().map(hash::of_symbol).collect();
                rules.seal(symbols.get_or_insert_with(of));
            }
        }
    }

    /// What of `manifest` this bundle does not have yet.
    pub fn missing(&self, manifest: &Manifest) -> Want {
        Hashes::of(self).missing(manifest)
    }

    /// The bytes of a [`Parcel`], without one: that would be a copy of everything wanted.
    pub fn parcel_bytes(&self, want: &Want) -> Result<Vec<u8>, Error> {
        let symbols: Vec<&SymbolEntry> = self.symbols.iter().collect();
        let structures: Vec<&Structure> = self.structures.iter().collect();
        let streams: Vec<&Stream> = self.streams.iter().collect();
        let stacks: Vec<&Stack> = self.sites.stacks.values().collect();
        let modules: Vec<&Module> = self.sites.modules.values().collect();
        let mut out = Out::default();
        out.list(&wanted(&symbols, "symbol", &want.symbols)?, |out, symbol| {
            out.block(&symbol.bytes);
            out.number(symbol.lanes.into());
            out.number(symbol.site);
        });
        out.list(&wanted(&structures, "structure", &want.structures)?, |out, one| out.structure(one));
        out.list(&wanted(&streams, "stream", &want.streams)?, |out, one| out.stream(one));
        out.list(&wanted(&stacks, "stack", &want.sites)?, |out, one| out.stack(one));
        out.list(&wanted(&modules, "module", &want.modules)?, |out, one| out.module(one));
        Ok(out.bytes)
    }

    /// What was wanted, moved out; `want` must be of this bundle.
    fn into_parcel(self, want: &Want) -> Parcel {
        let symbol = |entry: SymbolEntry| (entry.bytes, entry.lanes, entry.site);
        Parcel {
            symbols: pick(self.symbols, &want.symbols).into_iter().map(symbol).collect(),
            structures: pick(self.structures, &want.structures),
            streams: pick(self.streams, &want.streams),
            stacks: pick(self.sites.stacks.into_values().collect(), &want.sites),
            modules: pick(self.sites.modules.into_values().collect(), &want.modules),
        }
    }

    /// Takes in what `manifest` describes; `parcel` holds what [`Bundle::missing`] named. On an error this bundle is
    /// as it was.
    pub fn absorb(&mut self, manifest: Manifest, parcel: Parcel) -> Result<(), Error> {
        let mine = Hashes::of(self);
        let want = mine.missing(&manifest);
        self.absorb_wanted(mine, &want, manifest, parcel)
    }

    fn absorb_wanted(
        &mut self,
        mine: Hashes,
        want: &Want,
        manifest: Manifest,
        parcel: Parcel,
    ) -> Result<(), Error> {
        same_count("symbols", parcel.symbols.len(), want.symbols.len())?;
        same_count("structures", parcel.structures.len(), want.structures.len())?;
        same_count("streams", parcel.streams.len(), want.streams.len())?;
        let brought = Sites::of_parcel(&manifest, want, parcel.stacks, parcel.modules)?;
        let world = same_world(self.world, manifest.world)?;
        self.sites.check_join(&brought)?;

        let symbol_hashes: Vec<Hash> = manifest.symbols.iter().map(|s| s.0).collect();
        let symbol_of = targets(&symbol_hashes, &mine.symbols, &want.symbols);
        let structure_of = targets(&manifest.structures, &mine.structures, &want.structures);
        let stream_of = targets(&manifest.streams, &mine.streams, &want.streams);

        let mut symbols = self.symbols.clone();
        symbols.extend(parcel.symbols.into_iter().zip(&want.symbols).map(|((bytes, lanes, site), &from)| {
            let (_, tally, classes) = &manifest.symbols[from as usize];
            SymbolEntry { bytes, site, lanes, tally: *tally, classes: classes.clone() }
        }));
        let brought_symbols: HashSet<u32> = want.symbols.iter().copied().collect();
        for (from, (_, tally, classes)) in manifest.symbols.iter().enumerate() {
            if !brought_symbols.contains(&(from as u32)) {
                let known = &mut symbols[symbol_of[from] as usize];
                known.tally.add(*tally);
                known.classes.join(classes);
            }
        }

        let mut structures = Vec::with_capacity(parcel.structures.len());
        for (index, structure) in parcel.structures.into_iter().enumerate() {
            if !structure.is_valid() {
                return Err(Error::Structure { index });
            }
            for symbol in structure.mentioned() {
                get(&symbol_of, "symbol", symbol)?;
            }
            structures.push(structure.map_symbols(|t| symbol_of[t as usize]));
        }
        for (index, stream) in parcel.streams.iter().enumerate() {
            // To unpack blocks takes longer than all the rest, and nothing here needs their numbers.
            stream.validate_but_blocks().map_err(|_| Error::Stream { index })?;
        }

        let needed = |target: u32| match structures.get((target as usize).wrapping_sub(self.structures.len()))
        {
            Some(new) => lanes_of(new, &symbols),
            None => lanes_of(&self.structures[target as usize], &symbols),
        };
        let needs: HashMap<u32, usize> =
            structure_of.iter().map(|&target| (target, needed(target))).collect();
        let mut theirs = manifest.cohorts;
        for (index, cohort) in theirs.iter_mut().enumerate() {
            cohort.ranks.validate().map_err(|_| Error::Ranks { cohort: index })?;
            cohort.structure = *get(&structure_of, "structure", cohort.structure)?;
            for stream in cohort.all_lanes_mut().flat_map(Lane::streams_mut) {
                *stream = *get(&stream_of, "stream", *stream)?;
            }
            let need = needs[&cohort.structure];
            if cohort.lanes.len() != need {
                return Err(Error::Lanes { cohort: index, have: cohort.lanes.len(), need });
            }
        }
        // From here on nothing fails: what is wrong with functions of the rank is found by `validate`.
        let mut streams = std::mem::take(&mut self.streams);
        streams.extend(parcel.streams);
        let new_streams = want.streams.iter().map(|&from| manifest.streams[from as usize]);
        let mut table = StreamSet::with_hashes(streams, mine.streams.iter().copied().chain(new_streams));
        self.world = world;
        self.cohorts.extend(theirs);
        self.join_alike(&mut table);
        self.symbols = symbols;
        self.sites.join(&brought);
        self.structures.extend(structures);
        self.streams = table.streams;
        // Streams that have become one with others are not kept: what is held follows the distinct behaviours.
        self.number_streams();
        Ok(())
    }

    /// The whole bundle for transport or a spool: a manifest and a parcel of everything in it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let all = |len: usize| (0..len as u32).collect();
        let want = Want {
            symbols: all(self.symbols.len()),
            structures: all(self.structures.len()),
            streams: all(self.streams.len()),
            sites: all(self.sites.stacks.len()),
            modules: all(self.sites.modules.len()),
        };
        let mut out = Out::default();
        out.block(&self.manifest().to_bytes());
        // Indices up to each length always exist.
        out.block(&self.parcel_bytes(&want).unwrap_or_default());
        out.bytes
    }

    /// What [`Bundle::to_bytes`] wrote, validated. Safe on any bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Bundle, Error> {
        let mut from = In::new(bytes);
        let manifest = Manifest::from_bytes(from.block()?)?;
        let parcel = Parcel::from_bytes(from.block()?)?;
        from.end()?;
        let mut bundle = Bundle::default();
        bundle.absorb(manifest, parcel)?;
        bundle.validate()?;
        Ok(bundle)
    }
}

impl Cohort {
    /// Other members that made the same calls.
    pub(super) fn take_in(&mut self, mut other: Cohort, table: &mut StreamSet) {
        self.take_in_sides(&mut other, table);
        let lanes = std::mem::take(&mut self.lanes);
        let joined = lanes.into_iter().zip(other.lanes);
        self.lanes = joined.map(|(a, b)| a.join(&self.ranks, b, &other.ranks, table)).collect();
        self.ranks = self.ranks.union(&other.ranks);
        self.digest = self.digest.wrapping_add(other.digest);
    }
}

struct Hashes {
    symbols: Vec<Hash>,
    structures: Vec<Hash>,
    streams: Vec<Hash>,
    sites: Vec<Hash>,
    modules: Vec<Hash>,
}

impl Hashes {
    fn of(bundle: &Bundle) -> Hashes {
        let symbols: Vec<Hash> = bundle.symbols.iter().map(hash::of_symbol).collect();
        Hashes {
            structures: bundle.structures.iter().map(|s| hash::of_structure(s, &symbols)).collect(),
            streams: bundle.streams.iter().map(hash::of_stream).collect(),
            sites: bundle.sites.stacks.values().map(hash::of_stack).collect(),
            modules: bundle.sites.modules.values().map(hash::of_module).collect(),
            symbols,
        }
    }

    fn missing(&self, manifest: &Manifest) -> Want {
        Want {
            symbols: absent(manifest.symbols.iter().map(|s| s.0), &self.symbols),
            structures: absent(manifest.structures.iter().copied(), &self.structures),
            streams: absent(manifest.streams.iter().copied(), &self.streams),
            sites: absent(manifest.sites.iter().copied(), &self.sites),
            modules: absent(manifest.modules.iter().copied(), &self.modules),
        }
    }
}

/// Where in `theirs` something first appears that `mine` lacks.
fn absent<T: Copy + Eq + std::hash::Hash>(theirs: impl Iterator<Item = T>, mine: &[T]) -> Vec<u32> {
    let mut seen: HashSet<T> = mine.iter().copied().collect();
    theirs.enumerate().filter(|(_, hash)| seen.insert(*hash)).map(|(i, _)| i as u32).collect()
}

/// For each of `theirs` its index once the `wanted` ones are appended to `mine`.
fn targets(theirs: &[Hash], mine: &[Hash], wanted: &[u32]) -> Vec<u32> {
    let mut index_of: HashMap<Hash, u32> = HashMap::new();
    for (index, hash) in mine.iter().copied().chain(wanted.iter().map(|&w| theirs[w as usize])).enumerate() {
        index_of.entry(hash).or_insert(index as u32);
    }
    theirs.iter().map(|hash| index_of[hash]).collect()
}

/// One of the two may not know it.
fn same_world(mine: u32, theirs: u32) -> Result<u32, Error> {
    match (mine, theirs) {
        (mine, theirs) if mine == theirs => Ok(mine),
        (mine, 0) => Ok(mine),
        (0, theirs) => Ok(theirs),
        (mine, theirs) => Err(Error::Worlds { mine, theirs }),
    }
}

fn same_count(what: &'static str, have: usize, need: usize) -> Result<(), Error> {
    if have == need { Ok(()) } else { Err(Error::Parcel { what, have, need }) }
}

fn wanted<'a, T>(list: &[&'a T], what: &'static str, wanted: &[u32]) -> Result<Vec<&'a T>, Error> {
    wanted.iter().map(|&i| get(list, what, i).copied()).collect()
}

impl Sites {
    /// What came for what was wanted, which must be what it was called.
    fn of_parcel(
        manifest: &Manifest,
        want: &Want,
        stacks: Vec<Stack>,
        modules: Vec<Module>,
    ) -> Result<Sites, Error> {
        same_count("call stacks", stacks.len(), want.sites.len())?;
        same_count("modules", modules.len(), want.modules.len())?;
        let sites = want.sites.iter().map(|&i| manifest.sites[i as usize]).zip(stacks);
        let modules = want.modules.iter().map(|&i| manifest.modules[i as usize]).zip(modules);
        let mut brought = Sites::default();
        for (hash, stack) in sites {
            if hash != hash::of_stack(&stack) {
                return Err(Error::Site { symbol: None });
            }
            brought.add_stack(stack);
        }
        for (hash, module) in modules {
            if hash != hash::of_module(&module) {
                return Err(Error::Site { symbol: None });
            }
            brought.add_module(module);
        }
        Ok(brought)
    }
}

impl Manifest {
    /// Reads back with [`Manifest::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Out::default();
        out.number(self.world.into());
        out.list(&self.symbols, |out, (hash, tally, classes)| {
            out.wide(*hash);
            write_tally(out, tally);
            out.list(classes.list(), |out, class| {
                out.number(class.kind.bits.into());
                out.signed(class.kind.value);
                out.number(class.count);
                write_tally(out, &class.tally);
            });
            if !classes.is_empty() {
                out.number(classes.together.into());
            }
        });
        out.list(&self.structures, |out, hash| out.wide(*hash));
        out.list(&self.streams, |out, hash| out.wide(*hash));
        out.list(&self.cohorts, |out, cohort| {
            out.ranks(&cohort.ranks);
            out.number(cohort.structure.into());
            out.list(&cohort.lanes, write_lane);
            out.list(&cohort.sides, |out, side| {
                out.number(side.kind.0.into());
                out.list(&side.lanes, |out, lane| {
                    out.number(lane.is_some().into());
                    lane.iter().for_each(|lane| write_lane(out, lane));
                });
            });
            out.number(cohort.digest);
        });
        for keys in [&self.sites, &self.modules] {
            out.list(keys, |out, key| out.wide(*key));
        }
        out.bytes
    }

    /// Safe on any bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Manifest, Error> {
        let mut from = In::new(bytes);
        let manifest = Manifest {
            world: from.small()?,
            symbols: from.list(|from| {
                let (hash, tally) = (from.wide()?, read_tally(from)?);
                let classes = from.list(|from| {
                    let bits = from.small().map(|bits: u8| bits.min(64))?;
                    let kind = Kind { bits, value: from.signed()? };
                    Ok(Class { kind, count: from.number()?, tally: read_tally(from)? })
                })?;
                let together = !classes.is_empty() && from.number()? != 0;
                Ok((hash, tally, Classes::new(together, classes)))
            })?,
            structures: from.list(In::wide)?,
            streams: from.list(In::wide)?,
            cohorts: from.list(|from| {
                Ok(Cohort {
                    ranks: from.ranks()?,
                    structure: from.small()?,
                    lanes: from.list(read_lane)?,
                    sides: from.list(|from| {
                        let kind = SideKind(from.small()?);
                        let lane = |from: &mut In| match from.number()? {
                            0 => Ok(None),
                            _ => read_lane(from).map(Some),
                        };
                        Ok(Side { kind, lanes: from.list(lane)? })
                    })?,
                    digest: from.number()?,
                })
            })?,
            sites: from.list(In::wide)?,
            modules: from.list(In::wide)?,
        };
        from.end()?;
        Ok(manifest)
    }
}

fn write_tally(out: &mut Out, tally: &Tally) {
    [tally.total, tally.min, tally.max].into_iter().for_each(|number| out.number(number));
}

fn read_tally(from: &mut In) -> Result<Tally, Error> {
    Ok(Tally { total: from.number()?, min: from.number()?, max: from.number()? })
}

/// The number of variants, none for one stream on all ranks.
fn write_lane(out: &mut Out, lane: &Lane) {
    match lane {
        Lane::Same { stream, used } => {
            out.number(0);
            out.number((*stream).into());
            out.number(*used);
        }
        Lane::Varied(variants) => out.list(variants, |out, variant| {
            out.ranks(&variant.ranks);
            out.number(variant.stream.into());
            out.number(variant.used);
            out.list(&variant.numbers, |out, number| {
                out.number(number.place.into());
                out.rank_map(&number.values);
            });
        }),
    }
}

fn read_lane(from: &mut In) -> Result<Lane, Error> {
    let variants = from.list(|from| {
        Ok(Variant {
            ranks: from.ranks()?,
            stream: from.small()?,
            used: from.number()?,
            numbers: from.list(|from| Ok(Number { place: from.small()?, values: from.rank_map()? }))?,
        })
    })?;
    match variants.is_empty() {
        true => Ok(Lane::Same { stream: from.small()?, used: from.number()? }),
        false => Ok(Lane::Varied(variants)),
    }
}

impl Want {
    /// Reads back with [`Want::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Out::default();
        out.indices(&self.symbols);
        out.indices(&self.structures);
        out.indices(&self.streams);
        out.indices(&self.sites);
        out.indices(&self.modules);
        out.bytes
    }

    /// Safe on any bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Want, Error> {
        let mut from = In::new(bytes);
        let want = Want {
            symbols: from.indices()?,
            structures: from.indices()?,
            streams: from.indices()?,
            sites: from.indices()?,
            modules: from.indices()?,
        };
        from.end()?;
        Ok(want)
    }
}

impl Parcel {
    /// What [`Bundle::parcel_bytes`] wrote. Safe on any bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Parcel, Error> {
        let mut from = In::new(bytes);
        let parcel = Parcel {
            symbols: from.list(|from| Ok((from.block()?.into(), from.small()?, from.number()?)))?,
            structures: from.list(In::structure)?,
            streams: from.list(In::stream)?,
            stacks: from.list(In::stack)?,
            modules: from.list(In::module)?,
        };
        from.end()?;
        Ok(parcel)
    }
}
