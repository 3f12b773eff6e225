//! Packing: new places for slabs, so that fewer heaps hold them and what is free is in one piece.
//!
//! Pure planning; the moves are recorded in `compact`. Heap by heap, slabs slide down in the order of their offsets, and
//! slabs of later heaps, the last heap first, follow behind them as long as there is room. In that order no move
//! overwrites a slab that has yet to move: a slide ends at or below where the slab was, and later slabs lie above.

use offset_allocator::Allocator;

use crate::driver::gpu::heaps::{GUARD_BYTES, Heap, HeapClass, HeapId, Heaps, SlabRange, max_slabs, units_of};
use crate::driver::limits::ALIGNMENT_BYTES;
use crate::slab::loc::PoolId;
use crate::sorted_map::SortedMap;

/// A heap that is filled anew from its start, without gaps.
struct Room {
    heap: HeapId,
    allocator: Allocator,
    capacity: u32,
    used: u32,
    plug: u32,
}

impl Room {
    /// The allocator finds room only in regions that its rounding leaves large enough. So it gets more than there is,
    /// and what is too much is plugged in the end.
    fn new<B>(heap: &Heap<B>) -> Self {
        let capacity = ((heap.size_bytes - 2 * GUARD_BYTES) / ALIGNMENT_BYTES) as u32;
        // A power of two, which the allocator's rounding leaves as it is.
        let plug = capacity.next_power_of_two();
        // One node more for the plug, one for what is free, and two that the allocator wants to be left.
        let allocator = Allocator::with_max_allocs(capacity + plug, max_slabs(capacity) + 4);
        Self { heap: heap.id, allocator, capacity, used: 0, plug }
    }

    /// The place of a slab that moves, behind those before it.
    fn put(&mut self, slab: &SlabRange) -> Option<SlabRange> {
        let mut moved = self.put_new(slab.size_bytes, slab.alignment)?;
        moved.fresh_from = moved.offset + (slab.fresh_from - slab.offset);
        Some(moved)
    }

    /// The place of a new slab, behind those before it.
    fn put_new(&mut self, size_bytes: u64, alignment: u64) -> Option<SlabRange> {
        let units = u32::try_from(units_of(size_bytes, alignment)).ok()?;
        if units > self.capacity - self.used {
            return None;
        }
        let allocation = self.allocator.allocate(units)?;
        self.used += units;
        Some(SlabRange::at(self.heap, allocation, size_bytes, alignment))
    }

    fn end_bytes(&self) -> u64 {
        GUARD_BYTES + u64::from(self.used) * ALIGNMENT_BYTES
    }

    /// The allocator, with as much room as the heap has.
    fn close(mut self) -> Option<Allocator> {
        let rest = self.capacity - self.used;
        let rest = if rest > 0 { Some(self.allocator.allocate(rest)?) } else { None };
        self.allocator.allocate(self.plug)?;
        if let Some(rest) = rest {
            self.allocator.free(rest);
        }
        Some(self.allocator)
    }
}

/// New places, not taken up yet.
pub(super) struct Packing {
    /// Heaps that were filled anew, with the end of what is used.
    rooms: Vec<(HeapId, Allocator, u64)>,
    /// Slabs with their new places, in the order in which they must be moved. Some stay where they are.
    pub(super) places: Vec<(PoolId, SlabRange)>,
    /// The place of the slab that room is made for.
    pub(super) made: Option<SlabRange>,
    /// Bytes of the heaps that hold nothing then.
    pub(super) freed_bytes: u64,
}

/// A slab that finds no room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) size_bytes: u64,
    pub(super) alignment: u64,
    pub(super) class: HeapClass,
}

impl<B> Heaps<B> {
    /// Plans the packing of all slabs. A heap with a pinned slab, or that is not known to be there (`is_sound`), keeps its
    /// slabs and gets none. The slab `wanted` gets a place behind the others, if one has room.
    pub(super) fn pack(
        &self,
        wanted: Option<Wanted>,
        slabs: &SortedMap<PoolId, SlabRange>,
        is_sound: impl Fn(HeapId) -> bool,
    ) -> Option<Packing> {
        // What lies in each heap, by place.
        let mut left: Vec<Vec<(PoolId, &SlabRange)>> = vec![Vec::new(); self.heaps.len()];
        for (&pool_id, slab) in slabs.iter() {
            if let Some(here) = self.iter().position(|heap| heap.id == slab.heap).and_then(|at| left.get_mut(at)) {
                let before = here.iter().rposition(|(_, other)| other.offset < slab.offset);
                here.insert(before.map_or(0, |before| before + 1), (pool_id, slab));
            }
        }
        let is_movable = |(heap, here): (&Heap<B>, &Vec<(PoolId, &SlabRange)>)| {
            !heap.failed && is_sound(heap.id) && !here.iter().any(|(_, slab)| slab.pinned)
        };
        let movable: Vec<bool> = self.iter().zip(&left).map(is_movable).collect();
        let mut packing = Packing { rooms: Vec::new(), places: Vec::new(), made: None, freed_bytes: 0 };
        for (index, heap) in self.iter().enumerate() {
            if left[index].is_empty() {
                // Nothing lies here, or not any more.
                packing.freed_bytes += heap.size_bytes;
                continue;
            }
            if heap.dedicated || !movable[index] {
                continue;
            }
            let mut room = Room::new(heap);
            for (pool_id, slab) in std::mem::take(&mut left[index]) {
                packing.places.push((pool_id, room.put(slab)?));
            }
            for later in (index + 1..self.heaps.len()).rev() {
                if self.heaps[later].class == heap.class && movable[later] {
                    left[later].retain(|(pool_id, slab)| match room.put(slab) {
                        Some(place) => {
                            packing.places.push((*pool_id, place));
                            false
                        }
                        None => true,
                    });
                }
            }
            if let Some(Wanted { size_bytes, alignment, .. }) = wanted.filter(|wanted| wanted.class == heap.class)
                && packing.made.is_none()
                && let Some(mut made) = room.put_new(size_bytes, alignment)
            {
                made.fresh_from = heap.high_water.clamp(made.offset, made.offset + size_bytes);
                packing.made = Some(made);
            }
            let end = room.end_bytes();
            packing.rooms.push((heap.id, room.close()?, end));
        }
        Some(packing)
    }

    /// Plans to move slabs into an empty heap that has room for all of them.
    pub(super) fn pack_into(
        &self,
        heap: HeapId,
        pools: &[PoolId],
        slabs: &SortedMap<PoolId, SlabRange>,
    ) -> Option<Packing> {
        let heap = self.heaps.iter().find(|known| known.id == heap)?;
        if heap.slab_count > 0 || heap.failed {
            return None;
        }
        let mut room = Room::new(heap);
        let mut places = Vec::with_capacity(pools.len());
        for pool_id in pools {
            let slab = slabs.get(pool_id).filter(|slab| !slab.pinned)?;
            places.push((*pool_id, room.put(slab)?));
        }
        let end = room.end_bytes();
        Some(Packing { rooms: vec![(heap.id, room.close()?, end)], places, made: None, freed_bytes: 0 })
    }

    /// Takes up a packing: the places that it names are the slabs' from now on, and the place that was made is taken.
    /// Gives the moves, in order, adjacent ones as one; the bytes are the caller's.
    pub(super) fn adopt(
        &mut self,
        packing: Packing,
        slabs: &mut SortedMap<PoolId, SlabRange>,
    ) -> (Vec<Move>, Option<SlabRange>) {
        let Packing { rooms, places, made, .. } = packing;
        let mut moves: Vec<Move> = Vec::new();
        for (pool_id, to) in places {
            let Some(slab) = slabs.get_mut(&pool_id) else { continue };
            let next = Move::between(slab, &to);
            let from = std::mem::replace(slab, to);
            if rooms.iter().all(|(heap, _, _)| *heap != from.heap) {
                self.free(from);
            }
            match moves.last_mut() {
                _ if next.from == next.to => {}
                Some(last) if last.continues(&next) => last.len += next.len,
                _ => moves.push(next),
            }
        }
        for (id, allocator, end_bytes) in rooms {
            let slab_count = slabs.values().chain(&made).filter(|slab| slab.heap == id).count() as u32;
            if let Some(heap) = self.heaps.iter_mut().find(|heap| heap.id == id) {
                heap.high_water = heap.high_water.max(end_bytes);
                (heap.slab_count, heap.reserved, heap.allocator) = (slab_count, false, allocator);
            }
        }
        (moves, made)
    }
}

/// Bytes that go from one place to another, as a heap and bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) from: (HeapId, u64),
    pub(super) to: (HeapId, u64),
    pub(super) len: u64,
}

impl Move {
    fn between(from: &SlabRange, to: &SlabRange) -> Self {
        Self { from: (from.heap, from.offset), to: (to.heap, to.offset), len: from.size_bytes }
    }

    /// Whether the next move goes on where this one ends, on both sides.
    fn continues(&self, next: &Self) -> bool {
        let after = |(heap, offset): (HeapId, u64)| (heap, offset + self.len);
        after(self.from) == next.from && after(self.to) == next.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator of numbers.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }
    }

    /// Heaps with a model of what is in them: each byte unit holds the pool that wrote it.
    struct World {
        heaps: Heaps<()>,
        slabs: SortedMap<PoolId, SlabRange>,
        bytes: SortedMap<HeapId, Vec<u32>>,
        next: u32,
    }

    impl World {
        fn new(cap_bytes: u64, fixed_bytes: Option<u64>) -> Self {
            let heaps = Heaps::new(cap_bytes, fixed_bytes, None);
            Self { heaps, slabs: SortedMap::new(), bytes: SortedMap::new(), next: 1 }
        }

        fn alloc(&mut self, size: u64, alignment: u64, class: HeapClass) -> PoolId {
            let slab = self.heaps.place(size, alignment, class).unwrap_or_else(|| {
                let bytes = self.heaps.new_heap_bytes(size, alignment, 0).unwrap();
                let id = self.heaps.add((), bytes, class, (size, alignment));
                self.bytes.insert(id, vec![0; (bytes / ALIGNMENT_BYTES) as usize]);
                self.heaps.place(size, alignment, class).unwrap()
            });
            let pool_id = PoolId(self.next);
            self.next += 1;
            self.units(&slab).fill(pool_id.0);
            self.slabs.insert(pool_id, slab);
            pool_id
        }

        fn units(&mut self, slab: &SlabRange) -> &mut [u32] {
            let (from, len) = ((slab.offset / 256) as usize, (slab.size_bytes / 256) as usize);
            &mut self.bytes.get_mut(&slab.heap).unwrap()[from..from + len]
        }

        fn free(&mut self, pool_id: PoolId) {
            self.heaps.free(self.slabs.remove(&pool_id).unwrap());
        }

        /// Packs, moves the bytes as a device would, and removes what is empty. Gives the bytes moved.
        fn pack(&mut self, is_sound: impl Fn(HeapId) -> bool) -> u64 {
            let packing = self.heaps.pack(None, &self.slabs, is_sound).unwrap();
            let (moves, _) = self.heaps.adopt(packing, &mut self.slabs);
            for Move { from, to, len } in &moves {
                assert!(from.0 != to.0 || to.1 < from.1, "a slide goes down");
                let (start, end) = ((from.1 / 256) as usize, ((from.1 + len) / 256) as usize);
                let lifted = self.bytes.get(&from.0).unwrap()[start..end].to_vec();
                let target = self.bytes.get_mut(&to.0).unwrap();
                target[(to.1 / 256) as usize..][..lifted.len()].copy_from_slice(&lifted);
            }
            while let Some(empty) = self.heaps.empty() {
                self.heaps.remove(empty);
            }
            moves.iter().map(|moved| moved.len).sum()
        }

        fn check(&mut self) {
            let slabs = std::mem::take(&mut self.slabs);
            for (pool_id, slab) in slabs.iter() {
                let heap = self.heaps.get(slab.heap).unwrap();
                assert_eq!(slab.offset % slab.alignment, 0, "{slab:?} is not aligned");
                assert!(slab.offset >= GUARD_BYTES && slab.offset + slab.size_bytes <= heap.size_bytes - GUARD_BYTES);
                assert!(heap.high_water >= slab.offset + slab.size_bytes, "used memory counts as fresh");
                assert!(self.units(slab).iter().all(|unit| *unit == pool_id.0), "{pool_id} lost bytes");
            }
            self.slabs = slabs;
        }
    }

    #[test]
    fn slabs_keep_their_bytes_and_never_overlap_through_any_packing() {
        for (seed, cap, fixed) in
            [(1, 1 << 20, None), (2, 64 << 10, None), (3, 1 << 16, Some(8 << 10)), (4, 4096, None)]
        {
            let mut random = Random(seed);
            let mut world = World::new(cap, fixed);
            let mut live = Vec::new();
            let (mut packs, mut moved) = (0, 0);
            for _ in 0..4000 {
                match random.below(20) {
                    0..=7 if !live.is_empty() => world.free(live.swap_remove(random.below(live.len() as u64) as usize)),
                    8 => {
                        let unsound = HeapId(random.below(40) as u32);
                        moved += world.pack(|heap| heap != unsound);
                        packs += 1;
                        world.check();
                    }
                    _ if live.len() < 150 => {
                        let largest = (cap - 2 * GUARD_BYTES) / 4;
                        let scale = 1 + random.below(largest);
                        let size = (1 + random.below(scale)).next_multiple_of(256).min(largest / 256 * 256).max(256);
                        let alignment = [256, 256, 512, 1024][random.below(4) as usize].min(largest.max(256));
                        let class = [HeapClass::Working, HeapClass::Constant][(random.below(6) == 0) as usize];
                        live.push(world.alloc(size, alignment, class));
                    }
                    _ => {}
                }
            }
            world.check();
            assert!(packs > 50 && moved > 0);
        }
    }

    #[test]
    fn packing_twice_moves_nothing_the_second_time() {
        let mut random = Random(7);
        let mut world = World::new(1 << 16, Some(8 << 10));
        let pools: Vec<_> =
            (0..100).map(|_| world.alloc((1 + random.below(10)) * 256, 256, HeapClass::Working)).collect();
        pools.iter().step_by(3).for_each(|pool| world.free(*pool));
        let heaps = world.heaps.iter().count();
        assert!(world.pack(|_| true) > 0);
        assert!(world.heaps.iter().count() < heaps);
        assert_eq!(world.pack(|_| true), 0);
        world.check();
    }

    #[test]
    fn a_packed_heap_takes_what_exactly_fits_and_no_more() {
        let mut world = World::new(1 << 20, Some(64 << 10));
        let pools: Vec<_> = (0..63).map(|_| world.alloc(1024, 256, HeapClass::Working)).collect();
        assert_eq!(world.heaps.iter().count(), 1);
        pools.iter().step_by(2).for_each(|pool| world.free(*pool));
        world.pack(|_| true);
        // 65,536 bytes less two guards, less 31 slabs of 1,024: the allocator rounds such a request up by at most 1/8.
        let free = (64 << 10) - 512 - 31 * 1024;
        let made = |size_bytes| {
            let wanted = Wanted { size_bytes, alignment: 256, class: HeapClass::Working };
            world.heaps.pack(Some(wanted), &world.slabs, |_| true).unwrap().made
        };
        assert!(made(free + 256).is_none());
        let exact = made(free).unwrap();
        assert_eq!((exact.offset, exact.fresh_from), (256 + 31 * 1024, 256 + 63 * 1024), "what was used is not fresh");
        assert!(world.heaps.place(free + 256, 256, HeapClass::Working).is_none());
        assert!(world.heaps.place(free / 9 * 8 / 256 * 256, 256, HeapClass::Working).is_some());
    }

    #[test]
    fn the_last_heap_is_emptied_first() {
        let mut world = World::new(1 << 20, Some(4096));
        let pools: Vec<_> = (0..6).map(|_| world.alloc(1536, 256, HeapClass::Working)).collect();
        assert_eq!(world.heaps.iter().count(), 3);
        world.free(pools[0]);
        world.free(pools[2]);
        assert_eq!(world.pack(|_| true), 4 * 1536, "two slides, two copies");
        let left: Vec<_> = world.heaps.iter().map(|heap| (heap.id, heap.slab_count)).collect();
        assert_eq!(left, [(HeapId(0), 2), (HeapId(1), 2)]);
    }
}
