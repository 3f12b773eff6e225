//! Which node is where in the slabs that were made together: plain data, planned once and shared by every context that
//! allocates the same nodes again.

use std::cmp::Ordering;

use crate::node::{NodeId, TensorNode};

/// A node's place: which slab of the group, and how far into it.
#[derive(Clone, Debug)]
pub(crate) struct Resident {
    pub(crate) node: TensorNode,
    /// Index of the slab in its group.
    pub(crate) segment: u32,
    /// Bytes from the start of the slab.
    pub(crate) offset: u64,
}

/// The nodes of a group of slabs, by identity.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    residents: Vec<Resident>,
}

impl Layout {
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self { residents: Vec::with_capacity(count) }
    }

    pub(crate) fn len(&self) -> usize {
        self.residents.len()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Resident> {
        self.residents.iter()
    }

    /// The node at that position, by identity.
    pub(crate) fn at(&self, index: usize) -> Option<&Resident> {
        self.residents.get(index)
    }

    fn position(&self, id: NodeId) -> Result<usize, usize> {
        // Nodes are mostly laid out in the order in which they were made, and looked for where they are not.
        let (Some(first), Some(last)) = (self.residents.first(), self.residents.last()) else { return Err(0) };
        match (first.node.id().cmp(&id), last.node.id().cmp(&id)) {
            (Ordering::Greater, _) => Err(0),
            (_, Ordering::Less) => Err(self.residents.len()),
            _ => self.residents.binary_search_by(|resident| resident.node.id().cmp(&id)),
        }
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<&Resident> {
        self.position(id).ok().and_then(|index| self.residents.get(index))
    }

    /// Adds a node; false if it is there already.
    pub(crate) fn insert(&mut self, resident: Resident) -> bool {
        match self.position(resident.node.id()) {
            Ok(_) => false,
            Err(index) => {
                self.residents.insert(index, resident);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn nodes_are_found_by_identity_in_whatever_order_they_were_laid_out() {
        let nodes: Vec<_> = (0..5).map(|index| TensorNode::new(format!("n{index}"), DType::F32, [1])).collect();
        let mut layout = Layout::default();
        for (offset, index) in [3, 0, 4, 1].into_iter().enumerate() {
            assert!(layout.insert(Resident { node: nodes[index].clone(), segment: 0, offset: offset as u64 }));
        }
        assert!(!layout.insert(Resident { node: nodes[3].clone(), segment: 0, offset: 9 }), "it is there already");
        assert_eq!(layout.get(nodes[3].id()).map(|resident| resident.offset), Some(0));
        assert_eq!(layout.get(nodes[1].id()).map(|resident| resident.offset), Some(3));
        assert!(layout.get(nodes[2].id()).is_none());
        let ids: Vec<_> = layout.iter().map(|resident| resident.node.id()).collect();
        assert!(ids.is_sorted());
    }
}
