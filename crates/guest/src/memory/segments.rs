//! From an address to a name: which segment, and how far into it.
//!
//! Names are small numbers, given to a segment when a traced call first mentions it and taken back when it is freed, the
//! smallest first. Ranks that do the same thing so use the same names, whatever their addresses.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use refrain_fold::FastMap;

use super::area::{AREAS, Area, gpu_key, heap_key, mapping_key};
use super::bitmap::Bitmap;
use super::freed::{Freed, Reader};
use super::gpu::driver;
use super::gpu::table::{Segment, SegmentTable};
use super::mappings::Mappings;
use super::statics::Modules;
use super::{gpu, live};
use crate::process::stack;

/// Addresses whose places are remembered: at first, and at most. Powers of two.
const CACHED: usize = 64;
const MOST_CACHED: usize = 1024;
/// Addresses outside any segment that get a name of their own; later ones are recorded as numbers.
const MOST_STRAYS: usize = 1 << 16;

/// An address by name: which segment, and how far into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located {
    pub area: Area,
    /// Which GPU, as the program numbers them, for [`Area::Gpu`]; otherwise 0.
    pub device: u32,
    pub segment: u32,
    pub offset: i64,
}

/// Where allocations are looked up; the process's own, or a test's.
#[derive(Clone, Copy)]
struct Sources {
    heap: &'static Bitmap,
    mappings: &'static Mappings,
    gpu: &'static SegmentTable,
    /// Who else may know an address.
    driver: fn(usize) -> Option<Segment>,
    freed: &'static Freed,
}

/// The names in use. One caller at a time.
pub struct Segments {
    sources: Sources,
    reader: Reader,
    cache: Box<[Cached]>,
    /// How often a place that was still good made room for another.
    lost: usize,
    /// Cached places of other generations are stale.
    generation: u32,
    names: Map,
    /// By area: mappings share the heap's.
    pools: [Pool; AREAS],
    modules: Modules,
    stack: Map,
    strays: Map,
}

#[derive(Clone, Copy)]
struct Cached {
    pointer: usize,
    generation: u32,
    place: Located,
}

impl Default for Segments {
    fn default() -> Self {
        Self::new()
    }
}

impl Segments {
    pub fn new() -> Self {
        Self::over(Sources {
            heap: &live::HEAP,
            mappings: &live::MAPPINGS,
            gpu: &gpu::GPU,
            driver: driver::ask,
            freed: &live::FREED,
        })
    }

    fn over(sources: Sources) -> Self {
        Self {
            sources,
            reader: Reader::default(),
            cache: empty(CACHED),
            lost: 0,
            generation: 1,
            names: Map::default(),
            pools: Default::default(),
            modules: Modules::default(),
            stack: Map::default(),
            strays: Map::default(),
        }
    }

    /// Where `pointer` points, by name.
    #[inline]
    pub fn locate(&mut self, pointer: usize) -> Located {
        if self.sources.freed.news(&self.reader) {
            self.take_back();
        }
        let cached = &self.cache[slot(pointer, self.cache.len())];
        if cached.pointer == pointer && cached.generation == self.generation {
            return cached.place;
        }
        self.search(pointer)
    }

    /// Changes whenever a segment that has a name is released.
    #[inline]
    pub fn generation(&mut self) -> u32 {
        if self.sources.freed.news(&self.reader) {
            self.take_back();
        }
        self.generation
    }

    /// How much of what was freed the generation knows of: see `Freed::epoch`.
    pub fn seen(&self) -> usize {
        self.reader.epoch()
    }

    /// Whether a place stays what it is until the generation changes.
    pub fn keeps(&self, pointer: usize) -> bool {
        let cached = &self.cache[slot(pointer, self.cache.len())];
        (cached.pointer == pointer && cached.generation == self.generation)
            || self.stack.contains_key(&pointer)
    }

    #[inline(never)]
    fn search(&mut self, pointer: usize) -> Located {
        const FIRST_PAGE: usize = 4096;
        if pointer < FIRST_PAGE {
            return number(pointer);
        }
        if stack::current().contains(&pointer) {
            return stray(&mut self.stack, Area::Stack, pointer);
        }
        let Sources { heap, mappings, gpu, driver, freed } = self.sources;
        // First, since a runtime may take its memory from where others do.
        if let Some(segment) = gpu.find(pointer) {
            if segment.id == 0 {
                let place = self.on_gpu(segment, pointer);
                return self.keep(pointer, place);
            }
            // Not kept: it may be gone, and another in its place.
            if driver(pointer) == Some(segment) {
                return self.on_gpu(segment, pointer);
            }
            self.sweep_gpu();
        }
        if let Some(start) = heap.find(pointer) {
            let place = self.named(heap_key(start), Area::Heap, start, pointer, || heap.set_named(start));
            // One past a segment's end another may begin later: not for keeping.
            return if heap.length(start).is_some_and(|length| pointer < start + length) {
                self.keep(pointer, place)
            } else {
                place
            };
        }
        if let Some(start) = mappings.find(pointer) {
            let place =
                self.named(mapping_key(start), Area::Heap, start, pointer, || mappings.set_named(start));
            return self.keep(pointer, place);
        }
        // What was in no module before is not looked for again: that would take the loader's lock in every call.
        if let Some(&segment) = self.strays.get(&pointer) {
            return place(Area::Other, segment, 0);
        }
        if let Some((segment, offset)) = self.modules.find(pointer) {
            return self.keep(pointer, place(Area::Static, segment, offset));
        }
        if let Some(segment) = driver(pointer) {
            // So that names that are free again are used first, as if frees were seen.
            self.sweep_gpu();
            gpu.insert(segment, |old| freed.push(gpu_key(old.start, old.area)));
            return self.on_gpu(segment, pointer);
        }
        // Not kept either: an allocation may cover it next time.
        stray(&mut self.strays, Area::Other, pointer)
    }

    fn on_gpu(&mut self, segment: Segment, pointer: usize) -> Located {
        let Segment { start, area, device, .. } = segment;
        let table = self.sources.gpu;
        let place = self.named(gpu_key(start, area), area, start, pointer, || table.set_named(start));
        Located { device, ..place }
    }

    /// Takes back the names of what the driver has freed.
    #[cold]
    fn sweep_gpu(&mut self) {
        let Sources { gpu, driver, freed, .. } = self.sources;
        gpu.sweep(
            |segment| driver(segment.start) == Some(segment),
            |old| freed.push(gpu_key(old.start, old.area)),
        );
        if freed.news(&self.reader) {
            self.take_back();
        }
    }

    fn keep(&mut self, pointer: usize, place: Located) -> Located {
        if self.cache[slot(pointer, self.cache.len())].generation == self.generation {
            self.lost += 1;
            self.grow();
        }
        let at = slot(pointer, self.cache.len());
        self.cache[at] = Cached { pointer, generation: self.generation, place };
        place
    }

    /// A larger cache for a program with more buffers than it has room for.
    fn grow(&mut self) {
        let length = self.cache.len();
        if self.lost >= length && length < MOST_CACHED {
            self.cache = empty(4 * length);
            self.lost = 0;
        }
    }

    fn named(
        &mut self,
        key: usize,
        area: Area,
        start: usize,
        pointer: usize,
        mark: impl FnOnce(),
    ) -> Located {
        let segment = *self.names.entry(key).or_insert_with(|| {
            mark();
            self.pools[area as usize].take()
        });
        place(area, segment, pointer.wrapping_sub(start) as i64)
    }

    /// Puts the names of freed segments back into the pool.
    #[cold]
    fn take_back(&mut self) {
        let Self { names, pools, .. } = self;
        let mut give = |key: usize, name| pools[pool_of(key)].give(name);
        let whole = self.sources.freed.drain(&mut self.reader, |key| {
            if let Some(name) = names.remove(&key) {
                give(key, name);
            }
        });
        if !whole {
            let Sources { heap, mappings, gpu, .. } = self.sources;
            names.retain(|&key, &mut name| {
                let alive = match key & 15 {
                    0 => heap.is_named(key),
                    1 => mappings.is_named(key - 1),
                    _ => gpu.is_named(key & !15),
                };
                if !alive {
                    give(key, name);
                }
                alive
            });
        }
        self.generation = self.generation.wrapping_add(1);
    }
}

/// The area whose names a segment's key draws on.
fn pool_of(key: usize) -> usize {
    match key & 15 {
        0 | 1 => Area::Heap as usize,
        area => area,
    }
}

fn place(area: Area, segment: u32, offset: i64) -> Located {
    Located { area, device: 0, segment, offset }
}

fn number(pointer: usize) -> Located {
    place(Area::Number, 0, pointer as i64)
}

/// Each address outside any segment is a segment of its own, as long as there are not too many.
fn stray(known: &mut Map, area: Area, pointer: usize) -> Located {
    let count = known.len();
    if count >= MOST_STRAYS && !known.contains_key(&pointer) {
        return number(pointer);
    }
    place(area, *known.entry(pointer).or_insert(count as u32), 0)
}

fn empty(length: usize) -> Box<[Cached]> {
    vec![Cached { pointer: 0, generation: 0, place: number(0) }; length].into()
}

fn slot(pointer: usize, length: usize) -> usize {
    mix(pointer as u64) as usize & (length - 1)
}

/// Numbers that are not in use, smallest first.
#[derive(Debug, Default)]
struct Pool {
    free: BinaryHeap<Reverse<u32>>,
    next: u32,
}

impl Pool {
    fn take(&mut self) -> u32 {
        match self.free.pop() {
            Some(Reverse(name)) => name,
            None => {
                self.next += 1;
                self.next - 1
            }
        }
    }

    fn give(&mut self, name: u32) {
        self.free.push(Reverse(name));
    }
}

/// Addresses differ in the middle bits; a multiplication carries them to the top.
#[inline]
fn mix(value: u64) -> u64 {
    value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29
}

type Map = FastMap<usize, u32>;

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        /// What the driver allocated behind our back.
        static UNSEEN: RefCell<Vec<Segment>> = const { RefCell::new(Vec::new()) };
    }

    struct Process {
        sources: Sources,
        segments: Segments,
        /// How many the driver made.
        allocations: u64,
    }

    impl Process {
        fn new() -> Self {
            UNSEEN.take();
            let sources = Sources {
                heap: Box::leak(Bitmap::boxed()),
                mappings: Box::leak(Box::new(Mappings::new())),
                gpu: Box::leak(Box::new(SegmentTable::new())),
                driver: |pointer| {
                    let holds = |s: &&Segment| s.start <= pointer && pointer < s.end;
                    UNSEEN.with_borrow(|unseen| unseen.iter().find(holds).copied())
                },
                freed: Box::leak(Box::new(Freed::new())),
            };
            Self { sources, segments: Segments::over(sources), allocations: 0 }
        }

        /// `+a:size` allocate, `-a` free, `m a:size` map, `u a:size` unmap, `?a` locate; `d`, `v`, `h` are allocations on
        /// device 3, managed and on the host, `f` frees any of them; `a` and `r`
        /// are the driver's, unseen.
        fn step(&mut self, step: &str) -> Option<String> {
            let number = |text: &str| usize::from_str_radix(text, 16).unwrap();
            let (what, rest) = step.split_at(1);
            let (start, size) = rest.split_once(':').unwrap_or((rest, "0"));
            let (start, size) = (number(start), number(size));
            let Sources { heap, mappings, gpu, freed, .. } = self.sources;
            let gone = |old: Segment| freed.push(gpu_key(old.start, old.area));
            let runtime =
                |area, device| gpu.insert(Segment { start, end: start + size, area, device, id: 0 }, gone);
            match what {
                "+" => heap.insert(start, size),
                "-" if heap.remove(start) => freed.push(heap_key(start)),
                "-" => {}
                "m" => mappings.insert(start, size),
                "u" => mappings.remove(start, size, |gone| freed.push(mapping_key(gone))),
                "d" => runtime(Area::Gpu, 3),
                "v" => runtime(Area::Managed, 0),
                "h" => runtime(Area::Pinned, 0),
                "f" => gpu.remove(start, gone),
                "a" => UNSEEN.with_borrow_mut(|unseen| {
                    unseen.retain(|s| s.start != start);
                    self.allocations += 1;
                    let id = self.allocations;
                    unseen.push(Segment { start, end: start + size, area: Area::Gpu, device: 7, id });
                }),
                "r" => UNSEEN.with_borrow_mut(|unseen| unseen.retain(|s| s.start != start)),
                _ => {
                    let Located { area, device, segment, offset } = self.segments.locate(start);
                    let device = if area == Area::Gpu { device.to_string() } else { String::new() };
                    return Some(format!("{area:?}{device}#{segment}+{offset:x}"));
                }
            }
            None
        }
    }

    fn check(steps: &str, expected: &str) {
        let mut process = Process::new();
        let said: Vec<String> = steps.split(' ').filter_map(|step| process.step(step)).collect();
        assert_eq!(said.join(" "), expected, "for {steps:?}");
    }

    #[test]
    fn names_follow_use_not_allocation() {
        check("?0 ?1 ?fff", "Number#0+0 Number#0+1 Number#0+fff");
        check("+10000:40 +20000:40 ?20010 ?10000 ?2003f", "Heap#0+10 Heap#1+0 Heap#0+3f");
        check("+10000:40 ?10000 ?10000 -10000 ?10000", "Heap#0+0 Heap#0+0 Other#0+0");
        check("+10000:40 ?10010 -10000 +10000:40 ?10010", "Heap#0+10 Heap#0+10");
        check("+10000:40 +20000:40 ?10000 ?20000 -10000 +30000:8 ?30000", "Heap#0+0 Heap#1+0 Heap#0+0");
        check("?50000 ?60000 ?50000", "Other#0+0 Other#1+0 Other#0+0");
        check("?50000 +50000:10 ?50000", "Other#0+0 Heap#0+0");
    }

    #[test]
    fn the_smallest_free_name_comes_first() {
        check(
            "+10000:8 +20000:8 +30000:8 ?10000 ?20000 ?30000 -20000 -10000 +40000:8 +50000:8 +60000:8 ?40000 ?50000 ?60000",
            "Heap#0+0 Heap#1+0 Heap#2+0 Heap#0+0 Heap#1+0 Heap#3+0",
        );
    }

    #[test]
    fn the_end_of_a_segment_is_its_own_until_another_begins_there() {
        check("+10000:40 ?10040 +10040:10 ?10040 ?10041", "Heap#0+40 Heap#1+0 Heap#1+1");
    }

    #[test]
    fn mappings_are_segments_and_allocations_in_them_are_nearer() {
        check("m100000:2000 ?100010 ?101fff ?102000", "Heap#0+10 Heap#0+1fff Other#0+0");
        check("m100000:2000 +100000:20 ?100000 ?101000", "Heap#0+0 Heap#1+1000");
        check("m100000:2000 ?100010 u100000:1000 ?100010 ?101010", "Heap#0+10 Other#0+0 Heap#0+10");
    }

    #[test]
    fn each_kind_of_gpu_memory_has_names_of_its_own() {
        check("+10000:40 d20000:40 ?20010 ?10000 ?20000", "Gpu3#0+10 Heap#0+0 Gpu3#0+0");
        check("d20000:40 v30000:40 h40000:40 ?40008 ?30008 ?20008", "Pinned#0+8 Managed#0+8 Gpu3#0+8");
        check("d20000:64 d20100:64 ?20100 ?20000 ?20064", "Gpu3#0+0 Gpu3#1+0 Other#0+0");
        check(
            "d20000:40 h30000:40 ?20000 ?30000 f20000 d50000:8 ?50000 ?30000",
            "Gpu3#0+0 Pinned#0+0 Gpu3#0+0 Pinned#0+0",
        );
        check("d20000:40 ?20000 f20000 ?20000", "Gpu3#0+0 Other#0+0");
        check("d20000:40 ?20000 f20000 h20000:40 ?20010", "Gpu3#0+0 Pinned#0+10");
    }

    /// A stand-in, or a runtime that takes host memory from the C library.
    #[test]
    fn a_runtime_s_allocation_is_nearer_than_what_it_is_part_of() {
        check(
            "+20000:1000 m40000:1000 h20100:40 v40100:40 ?20110 ?20000 ?40110",
            "Pinned#0+10 Heap#0+0 Managed#0+10",
        );
    }

    #[test]
    fn the_driver_knows_what_no_hook_saw() {
        check("a50001000:100 ?50001010 ?500010f0 ?50001100", "Gpu7#0+10 Gpu7#0+f0 Other#0+0");
        check("a20000:40 a30000:40 ?20000 ?30000 d20000:40 ?20010", "Gpu7#0+0 Gpu7#1+0 Gpu3#0+10");
        check("a20000:40 +20000:20 ?20000 ?20030", "Heap#0+0 Gpu7#0+30");
    }

    #[test]
    fn the_driver_tells_allocations_apart() {
        check("a20000:40 a30000:40 ?20000 ?30000 r20000 a40000:40 ?40000", "Gpu7#0+0 Gpu7#1+0 Gpu7#0+0");
        check("a20000:40 a30000:40 ?20000 ?30000 r20000 a20000:40 ?20000", "Gpu7#0+0 Gpu7#1+0 Gpu7#0+0");
        check("a20000:100 ?20080 r20000 a20040:100 ?20080 ?20100", "Gpu7#0+80 Gpu7#0+40 Gpu7#0+c0");
        check("a20000:40 ?20000 r20000 ?20000 a20000:40 ?20010", "Gpu7#0+0 Other#0+0 Gpu7#0+10");
    }

    #[test]
    fn gpu_names_survive_a_flood_of_frees() {
        let mut process = Process::new();
        for round in 0..3 {
            let at = |i: usize| 0x10_0000 + i * 256;
            for i in 0..2000 {
                process.step(&format!("d{:x}:20", at(i)));
                let said = process.step(&format!("?{:x}", at(i)));
                assert_eq!(said, Some(format!("Gpu3#{i}+0")), "{round}");
            }
            (0..2000).for_each(|i| drop(process.step(&format!("f{:x}", at(i)))));
        }
    }

    #[test]
    fn stack_and_static_memory_have_names_of_their_own() {
        static STATIC: [u64; 4] = [1; 4];
        let local = [2_u64; 4];
        let mut process = Process::new();
        let mut at = |pointer: usize| process.segments.locate(pointer);
        let first = at(&raw const STATIC as usize);
        assert_eq!((first.area, first.segment), (Area::Static, 0));
        assert_eq!(at(&raw const STATIC as usize + 8).offset, first.offset + 8);
        for (i, value) in local.iter().enumerate() {
            assert_eq!(at(value as *const u64 as usize), place(Area::Stack, i as u32, 0));
        }
    }

    #[test]
    fn more_strays_than_names_are_numbers() {
        let mut process = Process::new();
        for i in 0..MOST_STRAYS + 2 {
            let place = process.segments.locate(0x10_0000 + i * 8);
            assert_eq!(place.area == Area::Other, i < MOST_STRAYS, "{i}");
        }
        assert_eq!(process.segments.locate(0x10_0000).area, Area::Other);
    }

    /// Many named segments freed at once, more than the queue holds.
    #[test]
    fn names_survive_a_flood_of_frees() {
        let mut process = Process::new();
        for round in 0..3 {
            for i in 0..3000 {
                process.step(&format!("+{:x}:20", 0x10_0000 + i * 64));
                assert_eq!(
                    process.step(&format!("?{:x}", 0x10_0000 + i * 64)),
                    Some(format!("Heap#{i}+0")),
                    "{round}"
                );
            }
            (0..3000).for_each(|i| drop(process.step(&format!("-{:x}", 0x10_0000 + i * 64))));
        }
    }
}
