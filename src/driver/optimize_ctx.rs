//! The computations of virtual nodes along a line of contexts.
//!
//! A virtual node has the values from when the routine that leaves it ran last. A later routine computes it from what is there
//! when it runs itself, so it is refused where that was written in between, or lies elsewhere.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::loops::virtuals::Computation;
use crate::node::TensorNode;
use crate::slab::loc::BufferLoc;

/// A virtual node with its computation.
#[derive(Clone, Debug)]
pub(crate) struct Virtual {
    pub(crate) node: TensorNode,
    pub(crate) computation: Arc<Computation>,
    left: Arc<Left>,
}

/// What is known of the routine that left it.
#[derive(Debug, Default)]
struct Left {
    routine: String,
    /// The device, and where what it reads is there.
    place: OnceLock<(u32, Vec<Option<BufferLoc>>)>,
    /// One more than what was recorded when the routine ran last; 0 before it did.
    ran: AtomicU64,
}

impl Virtual {
    pub(crate) fn new(node: TensorNode, computation: Arc<Computation>, routine: &str) -> Self {
        Self { node, computation, left: Arc::new(Left { routine: routine.to_owned(), ..Left::default() }) }
    }

    /// The name of the routine that leaves it.
    pub(crate) fn routine(&self) -> &str {
        &self.left.routine
    }

    /// Says where what it reads is, on the device of that id.
    pub(crate) fn set_place(&self, device_id: u32, locs: Vec<Option<BufferLoc>>) {
        // Whoever said so first links it.
        let _ = self.left.place.set((device_id, locs));
    }

    /// Whether what it reads is there. Locations on two devices can be the same numbers.
    pub(crate) fn is_at(&self, device_id: u32, locs: &[Option<BufferLoc>]) -> bool {
        self.left.place.get().is_some_and(|(id, known)| *id == device_id && known == locs)
    }

    /// Notes that the routine ran, when that much was recorded.
    pub(crate) fn set_run(&self, seq: u64) {
        self.left.ran.store(seq + 1, Ordering::Release);
    }

    /// What was recorded when the routine ran last.
    pub(crate) fn ran(&self) -> Option<u64> {
        self.left.ran.load(Ordering::Acquire).checked_sub(1)
    }
}

/// The computations of virtual nodes that later compilations may inline. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct OptimizeCtx {
    known: Arc<Vec<Virtual>>,
}

impl OptimizeCtx {
    /// The virtual node of that identity.
    pub(crate) fn get(&self, node: &TensorNode) -> Option<&Virtual> {
        self.known.iter().find(|known| known.node == *node)
    }

    /// With more virtual nodes, in place of what was known of them.
    pub(crate) fn with(&self, more: &[Virtual]) -> Self {
        if more.is_empty() {
            return self.clone();
        }
        let mut all = Vec::new();
        for known in self.known.iter() {
            if more.iter().all(|new| new.node != known.node) {
                all.push(known.clone());
            }
        }
        all.extend_from_slice(more);
        Self { known: Arc::new(all) }
    }

    /// The virtual nodes that are known.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &TensorNode> {
        self.known.iter().map(|known| &known.node)
    }

    /// How many virtual nodes are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}
