//! Ranges of heaps that must read as zero and are not zero yet.
//!
//! Clearing is put off until something is recorded that uses the heap: a node that comes and goes unused costs
//! nothing, and neighbours are cleared by one command.

use crate::driver::gpu::heaps::HeapId;

/// One range, in bytes from the start of the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZeroRange {
    pub(super) heap: HeapId,
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// Ranges that wait, by heap and offset: at most one per slab, at its start.
#[derive(Debug, Default)]
pub(super) struct PendingZeros {
    ranges: Vec<ZeroRange>,
}

impl PendingZeros {
    fn find(&self, heap: HeapId, offset: u64) -> Result<usize, usize> {
        self.ranges.binary_search_by(|range| (range.heap, range.offset).cmp(&(heap, offset)))
    }

    /// Notes a range of a slab that was just placed; no other range overlaps it.
    pub(super) fn add(&mut self, range: ZeroRange) {
        match self.find(range.heap, range.offset) {
            Ok(index) => self.ranges[index] = range,
            Err(index) => self.ranges.insert(index, range),
        }
    }

    /// Forgets the range that starts there: its slab is gone.
    pub(super) fn forget(&mut self, heap: HeapId, offset: u64) {
        if let Ok(index) = self.find(heap, offset) {
            self.ranges.remove(index);
        }
    }

    /// Takes out the ranges of a heap, adjacent ones as one.
    pub(super) fn take(&mut self, heap: HeapId) -> Vec<ZeroRange> {
        let mut taken: Vec<ZeroRange> = Vec::new();
        if self.ranges.is_empty() {
            return taken;
        }
        self.ranges.retain(|range| {
            if range.heap == heap {
                match taken.last_mut() {
                    Some(last) if last.offset + last.len == range.offset => last.len += range.len,
                    _ => taken.push(*range),
                }
            }
            range.heap != heap
        });
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(heap: u32, offset: u64, len: u64) -> ZeroRange {
        ZeroRange { heap: HeapId(heap), offset, len }
    }

    #[test]
    fn ranges_of_a_heap_are_taken_once_and_adjacent_ones_together() {
        let mut zeros = PendingZeros::default();
        for (heap, offset, len) in [(1, 1024, 256), (2, 256, 256), (1, 256, 256), (1, 512, 256), (1, 1280, 512)] {
            zeros.add(range(heap, offset, len));
        }
        assert_eq!(zeros.take(HeapId(1)), [range(1, 256, 512), range(1, 1024, 768)]);
        assert_eq!(zeros.take(HeapId(1)), []);
        assert_eq!(zeros.take(HeapId(2)), [range(2, 256, 256)]);
    }

    #[test]
    fn a_freed_slab_takes_its_range_along() {
        let mut zeros = PendingZeros::default();
        zeros.add(range(1, 256, 256));
        zeros.add(range(1, 512, 256));
        zeros.forget(HeapId(1), 256);
        zeros.forget(HeapId(2), 512);
        assert_eq!(zeros.take(HeapId(1)), [range(1, 512, 256)]);
    }
}
