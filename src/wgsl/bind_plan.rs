//! Which binding each tensor of a kernel is reached through.
//!
//! WebGPU judges a buffer as a whole in each dispatch, so every heap that holds a tensor of the kernel is bound once,
//! whole, and its tensors are told apart by offsets in the parameter block (the pooled plan). The pipeline depends on
//! the pattern (which tensors share a heap), never on the locations.
//!
//! Some kernels are better off with a binding for each tensor (the direct plan): a heap whose tensors have several types is bound
//! as words, one with narrow or atomic stores as atomics. That is legal where the bindings are not too many and no two have bytes
//! in common that one may write; a heap with a written tensor is bound `read_write` for all of them.

use std::sync::Arc;

use crate::driver::limits::ALIGNMENT_BYTES;
use crate::error::{Error, ErrorKind, Result};
use crate::node::List;

/// Which tensors share a binding. Equal patterns of one kernel share one pipeline.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Per tensor, its pool: see [`crate::wgsl::slots::SlotTable`].
    pub pool_of_tensor: Arc<[u32]>,
    /// Per pool, its binding.
    pub binding_of_pool: Vec<u32>,
    /// Per binding, whether it is bound read-only: heaps of constants are.
    pub read_only: Vec<bool>,
    /// Whether each tensor has a binding of its own, which starts where it does.
    pub is_direct: bool,
}

impl Pattern {
    /// The pattern of tensors that all live in one writable heap.
    pub fn one_heap(tensor_count: usize) -> Self {
        let binding_count = tensor_count.min(1);
        Self {
            pool_of_tensor: vec![0; tensor_count].into(),
            binding_of_pool: vec![0; binding_count],
            read_only: vec![false; binding_count],
            is_direct: false,
        }
    }

    /// The pattern of tensors that have a binding each.
    pub fn direct(read_only: Vec<bool>) -> Self {
        let bindings: Vec<u32> = (0..read_only.len() as u32).collect();
        Self { pool_of_tensor: bindings.clone().into(), binding_of_pool: bindings, read_only, is_direct: true }
    }

    /// The binding of each tensor.
    pub fn bindings(&self) -> impl Iterator<Item = usize> {
        self.pool_of_tensor.iter().map(|&pool| self.binding_of_pool[pool as usize] as usize)
    }

    /// Whether two patterns of one kernel are equal. With one binding there is but one way to reach it.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_one_table = Arc::ptr_eq(&self.pool_of_tensor, &other.pool_of_tensor);
        self.read_only == other.read_only
            && self.is_direct == other.is_direct
            && (self.read_only.len() == 1
                || is_one_table && self.binding_of_pool == other.binding_of_pool
                || self.bindings().eq(other.bindings()))
    }
}

/// A pattern together with the heaps of one link, in binding order.
#[derive(Clone, Debug)]
pub struct BindPlan {
    /// What the pipeline depends on.
    pub pattern: Pattern,
    /// Per binding, its heap.
    pub heaps: Vec<u32>,
    /// Per binding of the direct plan, its start in the heap and its length, in bytes.
    pub ranges: Vec<(u64, u64)>,
}

/// Bytes that a binding's length is a multiple of: vectors of four.
const BINDING_BYTES: u64 = 16;

impl BindPlan {
    /// A plan of tensors in pools that are yet to be bound.
    pub fn new(pool_of_tensor: Arc<[u32]>) -> Self {
        let pattern = Pattern { pool_of_tensor, binding_of_pool: Vec::new(), read_only: Vec::new(), is_direct: false };
        Self { pattern, heaps: Vec::new(), ranges: Vec::new() }
    }

    /// The direct plan of tensors that lie from such bytes on in the heaps of this plan, and have so many; else why it is not
    /// legal.
    ///
    /// # Errors
    /// Why, in words.
    pub fn direct(
        &self,
        tensors: impl Iterator<Item = (u64, u64)>,
        storage_buffers: u32,
    ) -> std::result::Result<Self, &'static str> {
        let mut heaps = Vec::new();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let mut read_only = Vec::new();
        for (binding, (start, len)) in self.pattern.bindings().zip(tensors) {
            let (heap, len) = (self.heaps[binding], len.max(1).next_multiple_of(BINDING_BYTES));
            if !start.is_multiple_of(ALIGNMENT_BYTES) {
                return Err("a tensor starts where no binding can");
            }
            let meets = |(other, range): (&u32, &(u64, u64))| {
                *other == heap && range.0 < start + len && start < range.0 + range.1
            };
            if !self.pattern.read_only[binding] && heaps.iter().zip(&ranges).any(meets) {
                return Err("two tensors have bytes in common");
            }
            heaps.push(heap);
            ranges.push((start, len));
            read_only.push(self.pattern.read_only[binding]);
        }
        if heaps.len() > storage_buffers as usize {
            return Err("the device has fewer bindings");
        }
        Ok(Self { pattern: Pattern::direct(read_only), heaps, ranges })
    }

    /// Binds the next pool, which is in that heap; `read_only` says whether the heap holds constants.
    pub fn bind_pool(&mut self, heap: u32, read_only: bool) {
        let known = self.heaps.iter().position(|&bound| bound == heap);
        let binding = known.unwrap_or_else(|| {
            self.heaps.push(heap);
            self.pattern.read_only.push(read_only);
            self.heaps.len() - 1
        });
        self.pattern.binding_of_pool.push(binding as u32);
    }

    /// Refuses more heaps than a kernel may bind.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`].
    pub fn check(&self, storage_buffers: u32) -> Result<()> {
        if self.heaps.len() <= storage_buffers as usize {
            return Ok(());
        }
        Err(Error::say(
            ErrorKind::LimitExceeded,
            format_args!(
                "its tensors lie in {} heaps ({}), over the device's limit of {storage_buffers} storage bindings; \
                 allocate them in fewer, larger slabs, or open the device with the adapter's own limits",
                self.heaps.len(),
                List(&self.heaps)
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(pool_of_tensor: &[u32], heap_of_pool: &[(u32, bool)]) -> BindPlan {
        let mut plan = BindPlan::new(pool_of_tensor.into());
        heap_of_pool.iter().for_each(|&(heap, read_only)| plan.bind_pool(heap, read_only));
        plan
    }

    #[test]
    fn each_heap_is_bound_once_in_order_of_first_use() {
        let plan = plan(&[0, 1, 2, 0, 3], &[(7, false), (3, true), (7, false), (9, false)]);
        plan.check(8).unwrap();
        assert_eq!(plan.pattern.bindings().collect::<Vec<_>>(), [0, 1, 0, 0, 2]);
        assert_eq!(plan.pattern.read_only, [false, true, false]);
        assert_eq!(plan.heaps, [7, 3, 9]);
    }

    #[test]
    fn patterns_are_the_same_where_every_tensor_has_the_same_binding_whatever_its_pool() {
        let heaps = [(7, false), (9, false), (7, false)];
        let pattern = |pools: &[u32], heaps: &[(u32, bool)]| plan(pools, heaps).pattern;
        let known = pattern(&[0, 1, 2], &heaps);
        assert!(known.is_same(&known.clone()));
        assert!(known.is_same(&pattern(&[0, 1, 0], &heaps[..2])));
        assert!(!known.is_same(&pattern(&[0, 1, 1], &heaps[..2])));
        let moved = Pattern { binding_of_pool: vec![0, 1, 1], ..known.clone() };
        assert!(!known.is_same(&moved), "one table, but another binding");
        assert!(!known.is_same(&pattern(&[0, 1, 2], &[(7, false), (9, true), (7, false)])), "bound otherwise");
        assert!(Pattern::one_heap(3).is_same(&pattern(&[0, 1, 0], &[(7, false), (7, false)])));
    }

    #[test]
    fn each_tensor_has_a_binding_of_its_own_where_that_is_legal() {
        let plan = plan(&[0, 1, 1, 0], &[(7, false), (3, true)]);
        let tensors = [(512, 40), (0, 4), (0, 4), (256, 256)];
        let direct = plan.direct(tensors.into_iter(), 4).unwrap();
        assert_eq!(direct.heaps, [7, 3, 3, 7]);
        assert_eq!(direct.ranges, [(512, 48), (0, 16), (0, 16), (256, 256)], "constants may meet");
        assert_eq!(direct.pattern.read_only, [false, true, true, false]);
        assert!(!direct.pattern.is_same(&plan.pattern));
        let refused = |tensors: [(u64, u64); 4], limit| plan.direct(tensors.into_iter(), limit).unwrap_err();
        assert_eq!(refused(tensors, 3), "the device has fewer bindings");
        assert_eq!(refused([(512, 4), (0, 4), (0, 4), (512, 4)], 4), "two tensors have bytes in common");
        assert_eq!(refused([(512, 4), (0, 4), (0, 4), (256, 257)], 4), "two tensors have bytes in common");
        assert_eq!(refused([(512, 4), (0, 4), (4, 4), (256, 4)], 4), "a tensor starts where no binding can");
        let one = Pattern::one_heap(1);
        assert!(!one.is_same(&Pattern::direct(vec![false])), "the text of accessors is another");
    }

    #[test]
    fn more_heaps_than_bindings_are_refused_with_both_numbers() {
        let error = plan(&[0, 1, 2], &[(1, false), (2, false), (3, false)]).check(2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(error.to_string().contains("3 heaps ([1, 2, 3]), over the device's limit of 2"), "{error}");
    }
}
