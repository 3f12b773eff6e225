//! Which binding each tensor of a kernel is reached through.
//!
//! WebGPU judges a buffer as a whole in each dispatch, so every heap that holds a tensor of the kernel is bound once,
//! whole, and its tensors are told apart by offsets in the parameter block (the pooled plan). The pipeline depends on
//! the pattern (which tensors share a heap), never on the locations.

use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};

/// Which tensors share a binding. Equal patterns of one kernel share one pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Pattern {
    /// Per tensor, its binding.
    pub binding_of_tensor: Vec<u32>,
    /// Per binding, whether it is bound read-only: heaps of constants are.
    pub read_only: Vec<bool>,
}

impl Pattern {
    /// The pattern of tensors that all live in one writable heap.
    pub fn one_heap(tensor_count: usize) -> Self {
        Self { binding_of_tensor: vec![0; tensor_count], read_only: vec![false; tensor_count.min(1)] }
    }

    /// Whether two patterns of one kernel are equal. With one binding there is but one way to reach it.
    pub fn is_same(&self, other: &Self) -> bool {
        self.read_only == other.read_only
            && (self.read_only.len() == 1 || self.binding_of_tensor == other.binding_of_tensor)
    }
}

/// A pattern together with the heaps of one link, in binding order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindPlan {
    /// What the pipeline depends on.
    pub pattern: Pattern,
    /// Per binding, its heap.
    pub heaps: Vec<u32>,
}

impl BindPlan {
    /// A plan of no tensors, with room for so many.
    pub fn with_capacity(tensor_count: usize) -> Self {
        let pattern = Pattern { binding_of_tensor: Vec::with_capacity(tensor_count), read_only: Vec::new() };
        Self { pattern, heaps: Vec::new() }
    }

    /// The binding of a heap; `read_only` says whether it holds constants.
    pub fn binding_of(&mut self, heap: u32, read_only: bool) -> u32 {
        let known = self.heaps.iter().position(|&bound| bound == heap);
        let binding = known.unwrap_or_else(|| {
            self.heaps.push(heap);
            self.pattern.read_only.push(read_only);
            self.heaps.len() - 1
        });
        binding as u32
    }

    /// Refuses more heaps than a kernel may bind.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`].
    pub fn check(&self, storage_buffers: u32) -> Result<()> {
        if self.heaps.len() <= storage_buffers as usize {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::LimitExceeded,
            format!(
                "its tensors lie in {} heaps ({:?}), over the device's limit of {storage_buffers} storage bindings; \
                 allocate them in fewer, larger slabs, or open the device with the adapter's own limits",
                self.heaps.len(),
                self.heaps
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(heaps: &[(u32, bool)]) -> BindPlan {
        let mut plan = BindPlan::with_capacity(heaps.len());
        for &(heap, read_only) in heaps {
            let binding = plan.binding_of(heap, read_only);
            plan.pattern.binding_of_tensor.push(binding);
        }
        plan
    }

    #[test]
    fn each_heap_is_bound_once_in_order_of_first_use() {
        let plan = plan(&[(7, false), (3, true), (7, false), (9, false)]);
        plan.check(8).unwrap();
        assert_eq!(plan.pattern.binding_of_tensor, [0, 1, 0, 2]);
        assert_eq!(plan.pattern.read_only, [false, true, false]);
        assert_eq!(plan.heaps, [7, 3, 9]);
    }

    #[test]
    fn more_heaps_than_bindings_are_refused_with_both_numbers() {
        let error = plan(&[(1, false), (2, false), (3, false)]).check(2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(error.to_string().contains("3 heaps ([1, 2, 3]), over the device's limit of 2"), "{error}");
    }
}
