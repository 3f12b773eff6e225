//! Which binding each tensor of a kernel is reached through.
//!
//! WebGPU judges a buffer as a whole in each dispatch, so every heap that holds a tensor of the kernel is bound once,
//! whole, and its tensors are told apart by offsets in the parameter block (the pooled plan). The pipeline depends on
//! the pattern (which tensors share a heap), never on the locations.

use std::sync::Arc;

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
}

impl Pattern {
    /// The pattern of tensors that all live in one writable heap.
    pub fn one_heap(tensor_count: usize) -> Self {
        let binding_count = tensor_count.min(1);
        Self {
            pool_of_tensor: vec![0; tensor_count].into(),
            binding_of_pool: vec![0; binding_count],
            read_only: vec![false; binding_count],
        }
    }

    /// The binding of each tensor.
    pub fn bindings(&self) -> impl Iterator<Item = usize> {
        self.pool_of_tensor.iter().map(|&pool| self.binding_of_pool[pool as usize] as usize)
    }

    /// Whether two patterns of one kernel are equal. With one binding there is but one way to reach it.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_one_table = Arc::ptr_eq(&self.pool_of_tensor, &other.pool_of_tensor);
        self.read_only == other.read_only
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
}

impl BindPlan {
    /// A plan of tensors in pools that are yet to be bound.
    pub fn new(pool_of_tensor: Arc<[u32]>) -> Self {
        let pattern = Pattern { pool_of_tensor, binding_of_pool: Vec::new(), read_only: Vec::new() };
        Self { pattern, heaps: Vec::new() }
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
    fn more_heaps_than_bindings_are_refused_with_both_numbers() {
        let error = plan(&[0, 1, 2], &[(1, false), (2, false), (3, false)]).check(2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(error.to_string().contains("3 heaps ([1, 2, 3]), over the device's limit of 2"), "{error}");
    }
}
