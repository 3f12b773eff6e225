//! The heaps: a few large buffers in which slabs are placed as ranges.
//!
//! Placement is O(1) with coalescing (`offset-allocator`), in units of 256 bytes. The first and the last unit of each
//! heap belong to nobody: out-of-range accesses clamp to the ends of a binding. Above a heap's high-water mark its
//! memory was never used, and is zero.

use offset_allocator::{Allocation, Allocator};

use crate::driver::limits::ALIGNMENT_BYTES;
use crate::error::{Error, ErrorKind, Result};
use crate::node::MemoryMode;

/// The guard at each end of a heap.
pub(super) const GUARD_BYTES: u64 = ALIGNMENT_BYTES;
/// The first heap. Small, because binding a heap for the first time makes the driver clear all of it (platform
/// measurements: 64 MiB cost 58 to 74 ms on software adapters).
const FIRST_HEAP_BYTES: u64 = 4 << 20;
/// Heaps double with demand up to this size; larger slabs get a heap of their own size.
const LARGEST_GROWTH_BYTES: u64 = 256 << 20;
/// Slabs in one heap; beyond it a new heap is made.
const MAX_SLABS_PER_HEAP: u32 = 16 * 1024;

/// The name of a heap, never reused on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HeapId(pub(super) u32);

/// What may lie in a heap: constants are bound read-only, so they have heaps of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeapClass {
    Working,
    Constant,
    /// What arrives while recorded work waits for it: a slab that no work knows, in a heap of its own, and none after it.
    Landing,
}

impl From<Option<MemoryMode>> for HeapClass {
    fn from(mode: Option<MemoryMode>) -> Self {
        match mode {
            Some(MemoryMode::Constant) => HeapClass::Constant,
            _ => HeapClass::Working,
        }
    }
}

/// A heap without its buffer, so that the policy can be tested without a GPU.
#[derive(Debug)]
pub(super) struct Heap<B> {
    pub(super) id: HeapId,
    pub(super) class: HeapClass,
    pub(super) buffer: B,
    pub(super) size_bytes: u64,
    /// Bytes below it have been handed out before.
    pub(super) high_water: u64,
    pub(super) slab_count: u32,
    /// Made for one slab, so large that the allocator's rounding would not fit under the cap: it holds one at a time.
    pub(super) dedicated: bool,
    /// Its buffer could not be created: it takes no more slabs, and goes when it is empty.
    pub(super) failed: bool,
    /// Waits for slabs that are to be moved there: it takes no others.
    pub(super) reserved: bool,
    pub(super) allocator: Allocator,
}

impl<B> Heap<B> {
    fn place(&mut self, size_bytes: u64, alignment: u64) -> Option<SlabRange> {
        let units = u32::try_from(units_of(size_bytes, alignment)).ok()?;
        let capacity = self.size_bytes - 2 * GUARD_BYTES;
        if self.dedicated && (self.slab_count > 0 || u64::from(units) * ALIGNMENT_BYTES > capacity) {
            return None;
        }
        let allocation = self.allocator.allocate(units)?;
        let end = GUARD_BYTES + (u64::from(allocation.offset) + u64::from(units)) * ALIGNMENT_BYTES;
        let slab = SlabRange::at(self.id, allocation, size_bytes, alignment);
        let fresh_from = self.high_water.clamp(slab.offset, slab.offset + size_bytes);
        self.high_water = self.high_water.max(end);
        self.slab_count += 1;
        Some(SlabRange { fresh_from, ..slab })
    }
}

/// Where a slab lies.
pub(super) struct SlabRange {
    pub(super) heap: HeapId,
    /// Bytes from the start of the heap.
    pub(super) offset: u64,
    pub(super) size_bytes: u64,
    /// What the offset is a multiple of.
    pub(super) alignment: u64,
    /// When it was placed, bytes from here on had never been used: zero.
    pub(super) fresh_from: u64,
    /// It never moves, and neither does anything else in its heap.
    pub(super) pinned: bool,
    allocation: Allocation,
}

impl SlabRange {
    /// A slab in what the allocator of a heap gave for it.
    pub(super) fn at(heap: HeapId, allocation: Allocation, size_bytes: u64, alignment: u64) -> Self {
        let alignment = alignment.max(ALIGNMENT_BYTES);
        let offset = (GUARD_BYTES + u64::from(allocation.offset) * ALIGNMENT_BYTES).next_multiple_of(alignment);
        Self { heap, offset, size_bytes, alignment, fresh_from: offset, pinned: false, allocation }
    }
}

impl std::fmt::Debug for SlabRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SlabRange(heap {}, {}+{})", self.heap.0, self.offset, self.size_bytes)
    }
}

/// All heaps of a device.
#[derive(Debug)]
pub(super) struct Heaps<B> {
    pub(super) heaps: Vec<Heap<B>>,
    /// Given back, but still to be used by work that is recorded.
    retired: Vec<Heap<B>>,
    next_id: u32,
    /// The largest buffer that can be bound whole.
    cap_bytes: u64,
    /// For tests: every new heap has this size.
    fixed_bytes: Option<u64>,
    /// What all heaps together may take.
    budget_bytes: Option<u64>,
}

impl<B> Heaps<B> {
    pub(super) fn new(cap_bytes: u64, fixed_bytes: Option<u64>, budget_bytes: Option<u64>) -> Self {
        Self { heaps: Vec::new(), retired: Vec::new(), next_id: 0, cap_bytes, fixed_bytes, budget_bytes }
    }

    pub(super) fn get(&self, id: HeapId) -> Result<&Heap<B>> {
        self.heaps
            .iter()
            .chain(&self.retired)
            .find(|heap| heap.id == id)
            .ok_or_else(|| Error::bug(format!("heap {} is gone while something refers to it", id.0)))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Heap<B>> {
        self.heaps.iter()
    }

    pub(super) fn reserved_bytes(&self) -> u64 {
        self.heaps.iter().map(|heap| heap.size_bytes).sum()
    }

    /// Places a slab in the first heap with room; `None` if a new heap is needed.
    pub(super) fn place(&mut self, size_bytes: u64, alignment: u64, class: HeapClass) -> Option<SlabRange> {
        let usable = |heap: &&mut Heap<B>| heap.class == class && !heap.failed && !heap.reserved;
        self.heaps.iter_mut().filter(usable).find_map(|heap| heap.place(size_bytes, alignment))
    }

    /// Places a slab in that heap, for good: what is written to it runs ahead of what is recorded, moves included.
    pub(super) fn place_in(&mut self, id: HeapId, size_bytes: u64, alignment: u64) -> Option<SlabRange> {
        let heap = self.heaps.iter_mut().find(|heap| heap.id == id)?;
        heap.place(size_bytes, alignment).map(|slab| SlabRange { pinned: true, ..slab })
    }

    /// The size of the heap to make for a slab that found no room, after `freed_bytes` of heaps are given back.
    pub(super) fn new_heap_bytes(&self, size_bytes: u64, alignment: u64, freed_bytes: u64) -> Result<u64> {
        let needed = units_of(size_bytes, alignment) * ALIGNMENT_BYTES + 2 * GUARD_BYTES;
        if needed > self.cap_bytes {
            return Err(Error::say(
                ErrorKind::LimitExceeded,
                format_args!(
                    "a slab of {size_bytes} bytes is over the {}-byte limit of the device's storage bindings; split it",
                    self.cap_bytes - 2 * GUARD_BYTES
                ),
            ));
        }
        let reserved = self.reserved_bytes() - freed_bytes;
        let grown = self
            .fixed_bytes
            .unwrap_or_else(|| reserved.next_power_of_two().clamp(FIRST_HEAP_BYTES, LARGEST_GROWTH_BYTES));
        let rounded = round_up_to_bin(units_of(size_bytes, alignment)) * ALIGNMENT_BYTES + 2 * GUARD_BYTES;
        // Over the cap, or over the size that a test asked for, the heap is made to measure and holds this slab alone.
        let made_to_measure = rounded > self.cap_bytes || self.fixed_bytes.is_some();
        let least = if made_to_measure { needed } else { rounded };
        let wanted = grown.next_multiple_of(ALIGNMENT_BYTES).max(least).min(self.cap_bytes);
        match self.budget_bytes {
            Some(budget) if reserved + needed > budget => Err(Error::say(
                ErrorKind::OutOfMemory,
                format_args!(
                    "a slab of {size_bytes} bytes finds no room in the {reserved} bytes of the device's heaps, and a heap \
                     of {needed} more would exceed its budget of {budget}; finalize contexts, trim the device, or raise \
                     memory_budget_bytes"
                ),
            )),
            Some(budget) => Ok(wanted.min((budget - reserved) / ALIGNMENT_BYTES * ALIGNMENT_BYTES)),
            None => Ok(wanted),
        }
    }

    /// The size of a heap that holds such a slab and nothing else. It does not grow with the others: there is one for each
    /// copy that is on its way.
    pub(super) fn landing_heap_bytes(&self, size_bytes: u64) -> Result<u64> {
        self.new_heap_bytes(size_bytes, ALIGNMENT_BYTES, 0)?;
        Ok(units_of(size_bytes.max(1), ALIGNMENT_BYTES) * ALIGNMENT_BYTES + 2 * GUARD_BYTES)
    }

    /// Adds an empty heap around a buffer of `size_bytes`, made for a slab of that size and alignment.
    pub(super) fn add(&mut self, buffer: B, size_bytes: u64, class: HeapClass, slab: (u64, u64)) -> HeapId {
        let id = HeapId(self.next_id);
        self.next_id += 1;
        let capacity = (size_bytes - 2 * GUARD_BYTES) / ALIGNMENT_BYTES;
        let rounded = round_up_to_bin(units_of(slab.0, slab.1));
        let dedicated = rounded > capacity;
        let units = capacity.max(rounded) as u32;
        let allocator = Allocator::with_max_allocs(units, max_slabs(units));
        self.heaps.push(Heap {
            id,
            class,
            buffer,
            size_bytes,
            high_water: GUARD_BYTES,
            slab_count: 0,
            dedicated,
            failed: false,
            reserved: false,
            allocator,
        });
        id
    }

    /// Frees a slab's range. Later slabs may take it at once: the queue runs in order.
    pub(super) fn free(&mut self, range: SlabRange) {
        if let Some(heap) = self.heaps.iter_mut().find(|heap| heap.id == range.heap) {
            heap.allocator.free(range.allocation);
            heap.slab_count -= 1;
        }
    }

    /// Notes that a heap's buffer could not be created.
    pub(super) fn set_failed(&mut self, id: HeapId) {
        self.heaps.iter_mut().filter(|heap| heap.id == id).for_each(|heap| heap.failed = true);
    }

    /// Keeps a heap for slabs that are to be moved there.
    pub(super) fn reserve(&mut self, id: HeapId) {
        self.heaps.iter_mut().filter(|heap| heap.id == id).for_each(|heap| heap.reserved = true);
    }

    /// Bytes of the empty heaps.
    pub(super) fn empty_bytes(&self) -> u64 {
        self.heaps.iter().filter(|heap| heap.slab_count == 0).map(|heap| heap.size_bytes).sum()
    }

    /// Whether a heap can have so many bytes.
    pub(super) fn is_under_cap(&self, bytes: u64) -> bool {
        bytes <= self.cap_bytes
    }

    /// Whether so many bytes more are within the budget.
    pub(super) fn is_within_budget(&self, more_bytes: u64) -> bool {
        self.budget_bytes.is_none_or(|budget| self.reserved_bytes() + more_bytes <= budget)
    }

    /// Any empty heap.
    pub(super) fn empty(&self) -> Option<HeapId> {
        self.heaps.iter().find(|heap| heap.slab_count == 0).map(|heap| heap.id)
    }

    /// An empty heap that may go back to the driver. The largest empty heap of each class stays, so that a context that
    /// comes and goes creates no buffers; never a landing heap, whose memory was seen by recorded work.
    pub(super) fn spare(&self) -> Option<HeapId> {
        let mut kept: [Option<&Heap<B>>; 2] = [None, None];
        for heap in self.heaps.iter().filter(|heap| heap.slab_count == 0) {
            let slot = match heap.class {
                HeapClass::Working => &mut kept[0],
                HeapClass::Constant => &mut kept[1],
                HeapClass::Landing => return Some(heap.id),
            };
            match slot {
                _ if heap.failed || heap.reserved => return Some(heap.id),
                None => *slot = Some(heap),
                Some(other) if other.size_bytes < heap.size_bytes => return Some(other.id),
                Some(_) => return Some(heap.id),
            }
        }
        None
    }

    /// Takes out a heap that recorded work will still use.
    pub(super) fn retire(&mut self, id: HeapId) {
        let heap = self.remove(id);
        self.retired.extend(heap);
    }

    /// The heaps that are given back, but still to be used.
    pub(super) fn retired(&self) -> impl Iterator<Item = HeapId> {
        self.retired.iter().map(|heap| heap.id)
    }

    /// The retired heaps, when no recorded work uses them any more.
    pub(super) fn take_retired(&mut self) -> Vec<Heap<B>> {
        std::mem::take(&mut self.retired)
    }

    /// Takes out a heap.
    pub(super) fn remove(&mut self, id: HeapId) -> Option<Heap<B>> {
        self.heaps.iter().position(|heap| heap.id == id).map(|index| self.heaps.remove(index))
    }
}

/// The units that a slab asks the allocator for. It knows no alignment over its unit, so larger ones ask for as much
/// more as rounding up may cost.
pub(super) fn units_of(size_bytes: u64, alignment: u64) -> u64 {
    size_bytes.saturating_add(alignment.saturating_sub(ALIGNMENT_BYTES)).div_ceil(ALIGNMENT_BYTES)
}

/// How many slabs a heap of that many units may hold.
pub(super) fn max_slabs(units: u32) -> u32 {
    units.saturating_add(2).min(MAX_SLABS_PER_HEAP)
}

/// The least free region in which the allocator finds room for that many units: it keeps free regions in bins of a
/// float's size, three bits of mantissa, and looks from the next larger bin on.
fn round_up_to_bin(units: u64) -> u64 {
    let step = 1 << units.max(1).ilog2().saturating_sub(3);
    units.next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grow_and_place(heaps: &mut Heaps<()>, size: u64, alignment: u64) -> SlabRange {
        if let Some(range) = heaps.place(size, alignment, HeapClass::Working) {
            return range;
        }
        let bytes = heaps.new_heap_bytes(size, alignment, 0).unwrap();
        heaps.add((), bytes, HeapClass::Working, (size, alignment));
        heaps.place(size, alignment, HeapClass::Working).unwrap()
    }

    #[test]
    fn many_small_slabs_share_one_heap() {
        let mut heaps = Heaps::new(1 << 30, None, None);
        let slabs: Vec<_> = (0..1000).map(|_| grow_and_place(&mut heaps, 512, 256)).collect();
        assert_eq!(heaps.iter().count(), 1);
        let mut starts: Vec<_> = slabs.iter().map(|slab| slab.offset).collect();
        starts.sort_unstable();
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 512), "slabs overlap");
        assert!(starts[0] >= GUARD_BYTES, "the guard is used");
    }

    #[test]
    fn recycled_memory_is_not_fresh_and_the_rest_is() {
        let mut heaps = Heaps::new(1 << 30, None, None);
        let first = grow_and_place(&mut heaps, 1024, 256);
        assert_eq!(first.fresh_from, first.offset, "new memory is zero");
        heaps.free(first);
        let second = grow_and_place(&mut heaps, 2048, 256);
        assert_eq!(second.fresh_from - second.offset, 1024, "only the recycled part must be zeroed");
    }

    #[test]
    fn larger_alignments_are_honoured() {
        let mut heaps = Heaps::new(1 << 30, None, None);
        grow_and_place(&mut heaps, 256, 256);
        let slab = grow_and_place(&mut heaps, 100, 4096);
        assert_eq!(slab.offset % 4096, 0);
    }

    #[test]
    fn a_heap_never_exceeds_what_can_be_bound() {
        let heaps: Heaps<()> = Heaps::new(1 << 20, None, None);
        assert_eq!(heaps.new_heap_bytes(256, 256, 0).unwrap(), 1 << 20);
        assert_eq!(heaps.new_heap_bytes((1 << 20) - 512, 256, 0).unwrap(), 1 << 20);
        let error = heaps.new_heap_bytes((1 << 20) - 511, 256, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    }

    #[test]
    fn a_heap_has_room_for_the_slab_it_was_made_for() {
        for size in (1..9_000_000u64).step_by(9_973).chain([(8 << 20) - 512, 4_096_000, 7_340_033]) {
            for (cap, fixed) in [(8 << 20, None), (1 << 30, None), (8 << 20, Some(1536))] {
                let mut heaps: Heaps<()> = Heaps::new(cap, fixed, None);
                if size + 2 * GUARD_BYTES <= cap / ALIGNMENT_BYTES * ALIGNMENT_BYTES {
                    grow_and_place(&mut heaps, size.next_multiple_of(256), 256);
                }
            }
        }
    }

    /// Random allocations and frees: slabs are aligned, inside the guards, and disjoint.
    #[test]
    fn slabs_never_overlap() {
        let mut seed = 1u64;
        let mut random = |bound: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % bound
        };
        let mut heaps: Heaps<()> = Heaps::new(1 << 20, None, None);
        let mut live: Vec<SlabRange> = Vec::new();
        for _ in 0..20_000 {
            if random(5) < 2 && !live.is_empty() {
                let index = random(live.len() as u64) as usize;
                heaps.free(live.swap_remove(index));
            } else if live.len() < 200 {
                let scale = random(18) as u32;
                let size = (1 + random(1 << scale)).next_multiple_of(256);
                let alignment = 256 << random(3);
                let slab = grow_and_place(&mut heaps, size, alignment);
                let heap = heaps.get(slab.heap).unwrap();
                assert_eq!(slab.offset % alignment, 0);
                assert!(slab.offset >= GUARD_BYTES && slab.offset + size <= heap.size_bytes - GUARD_BYTES);
                for other in live.iter().filter(|other| other.heap == slab.heap) {
                    let apart = other.offset + other.size_bytes <= slab.offset || slab.offset + size <= other.offset;
                    assert!(apart, "{slab:?} overlaps {other:?}");
                }
                live.push(slab);
            }
            while let Some(spare) = heaps.spare() {
                heaps.remove(spare);
            }
        }
    }

    #[test]
    fn of_several_empty_heaps_the_largest_stays() {
        let mut heaps = Heaps::new(1 << 30, None, None);
        let small = grow_and_place(&mut heaps, 4096, 256);
        let large = grow_and_place(&mut heaps, 8 << 20, 256);
        let (kept, spare) = (large.heap, small.heap);
        assert_ne!(kept, spare);
        heaps.free(small);
        heaps.free(large);
        assert_eq!(heaps.spare(), Some(spare), "what comes and goes may need the large one again");
        heaps.remove(spare);
        assert_eq!(heaps.spare(), None);
    }

    #[test]
    fn one_empty_heap_stays() {
        let mut heaps = Heaps::new(1 << 30, Some(4096), None);
        let slabs: Vec<_> = (0..3).map(|_| grow_and_place(&mut heaps, 3000, 256)).collect();
        assert_eq!(heaps.iter().count(), 3);
        slabs.into_iter().for_each(|slab| heaps.free(slab));
        while let Some(spare) = heaps.spare() {
            heaps.remove(spare);
        }
        assert_eq!(heaps.iter().count(), 1);
    }

    #[test]
    fn the_budget_makes_heaps_smaller_and_then_refuses_with_the_numbers() {
        let mut heaps: Heaps<()> = Heaps::new(1 << 30, None, Some(1 << 20));
        let slab = grow_and_place(&mut heaps, 600 << 10, 256);
        assert_eq!(heaps.reserved_bytes(), 1 << 20, "the first heap would be 4 MiB");
        let error = heaps.new_heap_bytes(600 << 10, 256, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert!(error.to_string().contains("614912 more would exceed its budget of 1048576"), "{error}");
        heaps.free(slab);
        assert!(heaps.place(600 << 10, 256, HeapClass::Working).is_some());
    }
}
