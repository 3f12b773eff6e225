//! Where the tensors of a kernel are: each by its pool's place in a list, and an offset.
//!
//! Which pools those are is said apart, so that whoever links the same kernel again and again shares the table, and says a
//! few pools instead of a location per tensor. What has to be checked of the tensors of one pool is worked out with it.

use std::sync::Arc;

use crate::error::Result;
use crate::node::TensorNode;
use crate::slab::loc::{BufferLoc, PoolId, check_range};
use crate::wgsl::spec::{KernelSpec, KernelTensor};

/// Per tensor of a kernel, which pool of a list it is in, and how far into it.
#[derive(Debug)]
pub struct SlotTable {
    /// Shared with the patterns of bindings.
    pub(crate) pool_of_tensor: Arc<[u32]>,
    offsets: Vec<u64>,
    pools: Vec<PoolUse>,
    /// The first tensor that does not start at a multiple of its elements.
    pub(crate) misaligned: Option<usize>,
}

/// What the tensors of one pool have in common.
#[derive(Debug)]
struct PoolUse {
    first: usize,
    /// Bytes from the start of the pool to behind the last of them; `u64::MAX` where nothing is that large.
    end_bytes: u64,
    first_written: Option<usize>,
}

/// A slot table, and its pools.
#[derive(Clone, Debug)]
pub struct Slots {
    pub(crate) table: Arc<SlotTable>,
    /// Each once, in the order in which the tensors name them.
    pub(crate) pools: Vec<PoolId>,
}

impl SlotTable {
    /// The table of a kernel whose tensors are where `locate` says, and its pools, each once.
    pub(crate) fn new<P: PartialEq>(
        spec: &KernelSpec,
        locate: &mut dyn FnMut(&KernelTensor) -> Result<(P, u64)>,
    ) -> Result<(Self, Vec<P>)> {
        let (mut pool_of_tensor, mut offsets) = (Vec::new(), Vec::new());
        let (mut names, mut pools): (Vec<P>, Vec<PoolUse>) = (Vec::new(), Vec::new());
        let mut misaligned = None;
        for (index, tensor) in spec.tensors.iter().enumerate() {
            let (name, offset) = locate(tensor)?;
            let pool = names.iter().rposition(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                pools.push(PoolUse { first: index, end_bytes: 0, first_written: None });
                names.len() - 1
            });
            if let Some(pool) = pools.get_mut(pool) {
                pool.end_bytes = pool.end_bytes.max(offset.saturating_add(tensor.node.size_bytes()));
                if tensor.access.writes() && pool.first_written.is_none() {
                    pool.first_written = Some(index);
                }
            }
            if misaligned.is_none() && offset % tensor.node.dtype().size_bytes() != 0 {
                misaligned = Some(index);
            }
            pool_of_tensor.push(pool as u32);
            offsets.push(offset);
        }
        Ok((Self { pool_of_tensor: pool_of_tensor.into(), offsets, pools, misaligned }, names))
    }

    /// The tensors in order: the position of the pool, and the offset in it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        self.pool_of_tensor.iter().zip(&self.offsets).map(|(&pool, &offset)| (pool as usize, offset))
    }
}

impl Slots {
    /// How many tensors there are.
    pub(crate) fn len(&self) -> usize {
        self.table.offsets.len()
    }

    /// Where a tensor is.
    pub(crate) fn loc(&self, tensor: usize) -> BufferLoc {
        let pool_id = self.pools[self.table.pool_of_tensor[tensor] as usize];
        BufferLoc { pool_id, offset: self.table.offsets[tensor] }
    }

    /// The first node in the pool at that position.
    pub(crate) fn first_node<'a>(&self, spec: &'a KernelSpec, pool: usize) -> &'a TensorNode {
        &spec.tensors[self.table.pools[pool].first].node
    }

    /// The first tensor in the pool at that position that the kernel writes.
    pub(crate) fn first_written(&self, pool: usize) -> Option<usize> {
        self.table.pools[pool].first_written
    }

    /// Refuses a slab of that size for the pool at that position, if a tensor would reach past its end.
    pub(crate) fn check_fits(&self, spec: &KernelSpec, pool: usize, size_bytes: u64) -> Result<()> {
        if self.table.pools[pool].end_bytes <= size_bytes {
            return Ok(());
        }
        let in_pool = self.table.iter().zip(&spec.tensors).filter(|((at, _), _)| *at == pool);
        for ((_, offset), KernelTensor { node, .. }) in in_pool {
            let loc = BufferLoc { pool_id: self.pools[pool], offset };
            check_range(loc, node.size_bytes(), size_bytes).map_err(|error| error.context(node))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::error::ErrorKind;
    use crate::wgsl::spec::Access;

    fn slots(places: &[(Access, u32, u64)]) -> (KernelSpec, Slots) {
        let node = |index| TensorNode::new(format!("n{index}"), DType::F32, [4]);
        let tensors = places.iter().enumerate();
        let spec = tensors.fold(KernelSpec::new("k", ""), |spec, (index, (access, ..))| {
            spec.tensor(format!("n{index}"), &node(index), *access)
        });
        let mut rest = places.iter();
        let mut locate = |_: &KernelTensor| Ok(rest.next().map(|&(_, pool, offset)| (PoolId(pool), offset)).unwrap());
        let (table, pools) = SlotTable::new(&spec, &mut locate).unwrap();
        (spec, Slots { table: Arc::new(table), pools })
    }

    #[test]
    fn pools_are_named_once_in_order_and_every_tensor_is_found_again() {
        let places = [(Access::Read, 7, 0), (Access::Read, 3, 256), (Access::Write, 7, 512), (Access::Write, 3, 0)];
        let (spec, slots) = slots(&places);
        assert_eq!(slots.pools, [PoolId(7), PoolId(3)]);
        let wanted: Vec<_> =
            places.iter().map(|&(_, pool, offset)| BufferLoc { pool_id: PoolId(pool), offset }).collect();
        assert_eq!((0..slots.len()).map(|tensor| slots.loc(tensor)).collect::<Vec<_>>(), wanted);
        assert_eq!((slots.first_written(0), slots.first_written(1)), (Some(2), Some(3)));
        assert_eq!(slots.first_node(&spec, 1).label(), "n1");
        assert_eq!(slots.table.misaligned, None);
    }

    #[test]
    fn a_slab_that_is_too_small_is_refused_for_the_first_tensor_that_does_not_fit() {
        let places = [(Access::Read, 1, 0), (Access::Read, 2, 4096), (Access::Read, 1, 256), (Access::Read, 1, 512)];
        let (spec, slots) = slots(&places);
        slots.check_fits(&spec, 0, 512 + 16).unwrap();
        let error = slots.check_fits(&spec, 0, 256).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ShapeMismatch);
        assert!(error.to_string().contains("\"n2\": 16 bytes at p1+256 reach past the 256 bytes"), "{error}");
        assert!(slots.check_fits(&spec, 1, 4096).is_err(), "each pool has its own end");
    }

    #[test]
    fn what_no_pool_can_hold_is_refused_and_a_start_between_elements_is_noted() {
        let (spec, far) = slots(&[(Access::Read, 1, u64::MAX - 3)]);
        assert_eq!(far.check_fits(&spec, 0, u64::MAX - 1).unwrap_err().kind(), ErrorKind::ShapeMismatch);
        let (_, odd) = slots(&[(Access::Read, 1, 4), (Access::Read, 1, 6), (Access::Read, 1, 2)]);
        assert_eq!(odd.table.misaligned, Some(1));
    }
}
