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
}

/// A pattern together with the heaps of one link, in binding order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindPlan {
    /// What the pipeline depends on.
    pub pattern: Pattern,
    /// Per binding, its heap.
    pub heaps: Vec<u32>,
}

/// Plans the bindings of tensors that live in those heaps. `heaps[i]` is the heap of tensor `i` and whether that heap
/// holds constants.
///
/// # Errors
/// [`ErrorKind::LimitExceeded`] where there are more heaps than storage bindings.
pub fn plan_bindings(heaps: &[(u32, bool)], storage_buffers: u32) -> Result<BindPlan> {
    let mut plan = BindPlan {
        pattern: Pattern { binding_of_tensor: Vec::with_capacity(heaps.len()), read_only: Vec::new() },
        heaps: Vec::new(),
    };
    for &(heap, read_only) in heaps {
        let binding = plan.heaps.iter().position(|&bound| bound == heap).unwrap_or_else(|| {
            plan.heaps.push(heap);
            plan.pattern.read_only.push(read_only);
            plan.heaps.len() - 1
        });
        plan.pattern.binding_of_tensor.push(binding as u32);
    }
    if plan.heaps.len() > storage_buffers as usize {
        return Err(Error::new(
            ErrorKind::LimitExceeded,
            format!(
                "its tensors lie in {} heaps ({:?}), over the device's limit of {storage_buffers} storage bindings; \
                 allocate them in fewer, larger slabs, or open the device with the adapter's own limits",
                plan.heaps.len(),
                plan.heaps
            ),
        ));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_heap_is_bound_once_in_order_of_first_use() {
        let plan = plan_bindings(&[(7, false), (3, true), (7, false), (9, false)], 8).unwrap();
        assert_eq!(plan.pattern.binding_of_tensor, [0, 1, 0, 2]);
        assert_eq!(plan.pattern.read_only, [false, true, false]);
        assert_eq!(plan.heaps, [7, 3, 9]);
    }

    #[test]
    fn more_heaps_than_bindings_are_refused_with_both_numbers() {
        let error = plan_bindings(&[(1, false), (2, false), (3, false)], 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(error.to_string().contains("3 heaps ([1, 2, 3]), over the device's limit of 2"), "{error}");
    }
}
