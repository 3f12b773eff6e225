//! The map of a context: which node is where.
//!
//! It is immutable and extended by children, often by many nodes at once, so it is a short list of layers, newest last.
//! A child shares its parent's layers and adds one, which costs nothing per node; where there would be too many layers
//! the newest are merged, so that a long line of contexts has few, of growing sizes.

use std::fmt;
use std::sync::Arc;

use crate::node::{NodeId, TensorNode};
use crate::slab::layout::{Layout, Resident};
use crate::slab::loc::{BufferLoc, PoolId};

/// Layers at most: what a look-up may have to search.
const MAX_LAYERS: usize = 8;

/// Nodes that came together, and the pools of their slabs.
#[derive(Debug)]
pub(crate) struct Layer {
    layout: Arc<Layout>,
    /// The pool of each segment of the layout.
    pools: Vec<PoolId>,
}

impl Layer {
    pub(crate) fn new(layout: Arc<Layout>, pools: Vec<PoolId>) -> Self {
        Self { layout, pools }
    }

    fn loc(&self, resident: &Resident) -> Option<BufferLoc> {
        let pool_id = *self.pools.get(resident.segment as usize)?;
        Some(BufferLoc { pool_id, offset: resident.offset })
    }
}

/// The nodes of a context with their locations, by identity. Cheap to clone.
#[derive(Clone, Default)]
pub struct CtxBuffers {
    layers: Vec<Arc<Layer>>,
    len: usize,
}

impl CtxBuffers {
    /// An empty map.
    pub const fn new() -> Self {
        Self { layers: Vec::new(), len: 0 }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where a node is.
    pub fn get(&self, node: &TensorNode) -> Option<BufferLoc> {
        self.find(node.id())
    }

    /// Whether a node is there.
    pub fn contains(&self, node: &TensorNode) -> bool {
        self.find(node.id()).is_some()
    }

    /// Whether these are the very same nodes and places: a context, and those that share its nodes with it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.layers.len() == other.layers.len()
            && self.layers.iter().zip(&other.layers).all(|(one, other)| Arc::ptr_eq(one, other))
    }

    fn find(&self, id: NodeId) -> Option<BufferLoc> {
        self.layers.iter().rev().find_map(|layer| layer.layout.get(id).and_then(|resident| layer.loc(resident)))
    }

    /// Sets the location of a node; gives the one that it had.
    pub fn insert(&mut self, node: TensorNode, loc: BufferLoc) -> Option<BufferLoc> {
        let before = self.find(node.id());
        let mut layout = Layout::with_capacity(1);
        layout.insert(Resident { node, segment: 0, offset: loc.offset });
        self.push(Layer::new(Arc::new(layout), vec![loc.pool_id]));
        self.len -= usize::from(before.is_some());
        before
    }

    /// The nodes with their locations, in the order in which the nodes were made.
    pub fn iter(&self) -> impl Iterator<Item = (&TensorNode, BufferLoc)> {
        Iter { layers: &self.layers, next: vec![0; self.layers.len()] }
    }

    /// Adds nodes that are not there.
    pub(crate) fn push(&mut self, layer: Layer) {
        self.len += layer.layout.len();
        self.layers.push(Arc::new(layer));
        if self.layers.len() > MAX_LAYERS {
            self.merge_newest();
        }
    }

    /// Merges the last two layers, and those before them that are not larger than all behind them together.
    fn merge_newest(&mut self) {
        let mut first = self.layers.len();
        let mut total = 0;
        while let Some(layer) = first.checked_sub(1).and_then(|index| self.layers.get(index))
            && (self.layers.len() - first < 2 || layer.layout.len() <= total)
        {
            total += layer.layout.len();
            first -= 1;
        }
        let newest = self.layers.split_off(first);
        let (mut layout, mut pools) = (Layout::with_capacity(total), Vec::<PoolId>::new());
        for (node, loc) in (Iter { next: vec![0; newest.len()], layers: &newest }) {
            let segment = match pools.iter().rposition(|pool_id| *pool_id == loc.pool_id) {
                Some(segment) => segment,
                None => {
                    pools.push(loc.pool_id);
                    pools.len() - 1
                }
            };
            layout.insert(Resident { node: node.clone(), segment: segment as u32, offset: loc.offset });
        }
        self.layers.push(Arc::new(Layer::new(Arc::new(layout), pools)));
    }
}

/// All layers at once, by identity; where two have a node, the newer one's place counts.
struct Iter<'a> {
    layers: &'a [Arc<Layer>],
    next: Vec<usize>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a TensorNode, BufferLoc);

    fn next(&mut self) -> Option<Self::Item> {
        let mut first: Option<(&Resident, &Layer)> = None;
        for (layer, next) in self.layers.iter().zip(&self.next) {
            if let Some(resident) = layer.layout.at(*next)
                && first.is_none_or(|(found, _)| resident.node.id() <= found.node.id())
            {
                first = Some((resident, layer));
            }
        }
        let (resident, layer) = first?;
        for (layer, next) in self.layers.iter().zip(&mut self.next) {
            *next += usize::from(layer.layout.at(*next).is_some_and(|other| other.node.id() == resident.node.id()));
        }
        layer.loc(resident).map(|loc| (&resident.node, loc))
    }
}

impl FromIterator<(TensorNode, BufferLoc)> for CtxBuffers {
    fn from_iter<I: IntoIterator<Item = (TensorNode, BufferLoc)>>(places: I) -> Self {
        let mut buffers = Self::new();
        for (node, loc) in places {
            buffers.insert(node, loc);
        }
        buffers
    }
}

impl PartialEq for CtxBuffers {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for CtxBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(node, loc)| (node.to_string(), loc.to_string()))).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::dtype::DType;

    #[test]
    fn layers_are_one_map() {
        let nodes: Vec<_> = (0..300).map(|index| TensorNode::new(format!("n{index}"), DType::F32, [1])).collect();
        let (mut buffers, mut want) = (CtxBuffers::new(), BTreeMap::new());
        let mut lines = Vec::new();
        for step in 0..2000u64 {
            let node = &nodes[(step * 7919 % 300) as usize];
            let loc = BufferLoc { pool_id: PoolId(1 + (step % 90) as u32), offset: step * 256 };
            assert_eq!(buffers.insert(node.clone(), loc), want.insert(node.id(), loc));
            assert_eq!(buffers.len(), want.len());
            assert!(buffers.layers.len() <= MAX_LAYERS);
            if step % 500 == 0 {
                lines.push((buffers.clone(), want.clone()));
            }
        }
        lines.push((buffers, want));
        for (buffers, want) in lines {
            let all: Vec<_> = buffers.iter().map(|(node, loc)| (node.id(), loc)).collect();
            assert_eq!(all, want.iter().map(|(id, loc)| (*id, *loc)).collect::<Vec<_>>());
            assert!(nodes.iter().all(|node| buffers.get(node) == want.get(&node.id()).copied()));
        }
    }

    #[test]
    fn a_long_line_of_contexts_copies_each_node_a_few_times() {
        let mut buffers = CtxBuffers::new();
        for step in 0..4096u64 {
            let node = TensorNode::new("n", DType::F32, [1]);
            buffers.insert(node, BufferLoc { pool_id: PoolId(1), offset: step });
        }
        let sizes: Vec<_> = buffers.layers.iter().map(|layer| layer.layout.len()).collect();
        assert!(sizes.iter().zip(&sizes[1..]).all(|(older, newer)| older >= newer), "{sizes:?}");
    }
}
