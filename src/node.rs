//! A tensor node: the identity of a tensor. It owns no storage; a context says where its bytes are.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;

use crate::dtype::DType;

/// The identity of a node, unique in the process, in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

/// How the bytes of a node are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMode {
    /// In a slab of the context that created it, readable and writable.
    #[default]
    OnDevice,
    /// Never written after it was initialised; lives in read-only pools of its own.
    Constant,
}

/// The identity of a tensor: id, label, dtype, shape, memory mode. Cheap to clone; clones are the same node.
#[derive(Clone)]
pub struct TensorNode {
    inner: Arc<Inner>,
}

struct Inner {
    id: NodeId,
    label: String,
    dtype: DType,
    shape: Vec<u32>,
    mode: MemoryMode,
    /// What it is a view of, and the first element.
    base: Option<(TensorNode, u64)>,
}

static NEXT_ID: AtomicU32 = AtomicU32::new(1);

impl TensorNode {
    /// A new node. `shape` has one extent per axis, row-major; no axes is a scalar of one element.
    pub fn new(label: impl Into<String>, dtype: DType, shape: impl Into<Vec<u32>>) -> Self {
        Self::with_mode(label, dtype, shape, MemoryMode::default())
    }

    /// A new node with a memory mode.
    pub fn with_mode(label: impl Into<String>, dtype: DType, shape: impl Into<Vec<u32>>, mode: MemoryMode) -> Self {
        Self::make(label.into(), dtype, shape.into(), mode, None)
    }

    /// A part of `base`, from its element `start` on, as a node of its own with the same dtype. A context has it after
    /// `Context::alias`; no bytes are copied.
    pub fn view(label: impl Into<String>, base: &TensorNode, start: u64, shape: impl Into<Vec<u32>>) -> Self {
        let base_and_start = Some((base.clone(), start));
        Self::make(label.into(), base.dtype(), shape.into(), base.mode(), base_and_start)
    }

    fn make(label: String, dtype: DType, shape: Vec<u32>, mode: MemoryMode, base: Option<(TensorNode, u64)>) -> Self {
        let id = NodeId(NEXT_ID.fetch_add(1, Ordering::Relaxed));
        Self { inner: Arc::new(Inner { id, label, dtype, shape, mode, base }) }
    }

    /// What this node is a view of, and the element at which it starts there.
    pub fn base(&self) -> Option<(&TensorNode, u64)> {
        self.inner.base.as_ref().map(|(base, start)| (base, *start))
    }

    /// The node whose bytes these are: itself, or what it is a view of in the end.
    pub fn root(&self) -> &TensorNode {
        self.base().map_or(self, |(base, _)| base.root())
    }

    /// The identity.
    pub fn id(&self) -> NodeId {
        self.inner.id
    }

    /// The name that messages, reports and kernels use.
    pub fn label(&self) -> &str {
        &self.inner.label
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.inner.dtype
    }

    /// The extents, row-major.
    pub fn shape(&self) -> &[u32] {
        &self.inner.shape
    }

    /// How its bytes are kept.
    pub fn mode(&self) -> MemoryMode {
        self.inner.mode
    }

    /// The number of elements; saturates at `u64::MAX`, which no device can hold.
    pub fn element_len(&self) -> u64 {
        self.shape().iter().fold(1u64, |len, &extent| len.saturating_mul(u64::from(extent)))
    }

    /// The number of bytes, without padding.
    pub fn size_bytes(&self) -> u64 {
        self.element_len().saturating_mul(self.dtype().size_bytes())
    }
}

impl PartialEq for TensorNode {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for TensorNode {}

impl fmt::Display for TensorNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\"{}\"", self.id(), self.label())
    }
}

impl fmt::Debug for TensorNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}: {}{:?}", self.dtype(), self.shape())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_count_elements_and_saturate() {
        assert_eq!(TensorNode::new("s", DType::F32, []).size_bytes(), 4);
        assert_eq!(TensorNode::new("e", DType::F32, [3, 0]).size_bytes(), 0);
        assert_eq!(TensorNode::new("h", DType::F16, [3, 5]).size_bytes(), 30);
        assert_eq!(TensorNode::new("big", DType::F32, [u32::MAX; 4]).size_bytes(), u64::MAX);
    }
}
