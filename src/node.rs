//! A tensor node: the identity of a tensor. It owns no storage; a context says where its bytes are.

use std::fmt::{self, Write};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use serde::Serialize;

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};

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
    /// Of no use outside the routines of one link or batch: in scratch memory, which nodes share that are not needed at the
    /// same time. No context has it; its contents are unspecified until a routine of the batch writes them, and from the
    /// last routine that uses it on.
    Local,
    /// Never stored: computed anew wherever it is used. Only programs can have one, not raw kernels.
    Virtual,
}

impl MemoryMode {
    const ALL: [MemoryMode; 4] = [MemoryMode::OnDevice, MemoryMode::Constant, MemoryMode::Local, MemoryMode::Virtual];

    /// The name in case files and in JavaScript.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryMode::OnDevice => "on_device",
            MemoryMode::Constant => "constant",
            MemoryMode::Local => "local",
            MemoryMode::Virtual => "virtual",
        }
    }
}

impl fmt::Display for MemoryMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MemoryMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        MemoryMode::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| {
            let message = format_args!("unknown memory mode \"{text}\"; use on_device, constant, local or virtual");
            Error::say(ErrorKind::Unsupported, message)
        })
    }
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
    /// The index of the mode among all, or `UNDECIDED`.
    mode: AtomicU8,
    /// What it is a view of, and the first element.
    base: Option<(TensorNode, u64)>,
}

static NEXT_ID: AtomicU32 = AtomicU32::new(1);

const UNDECIDED: u8 = u8::MAX;

impl TensorNode {
    /// A new node. `shape` has one extent per axis, row-major; no axes is a scalar of one element. Its memory mode is
    /// undecided: the first context that places it makes it [`MemoryMode::OnDevice`], unless it was refined before.
    pub fn new(label: impl Into<String>, dtype: DType, shape: impl Into<Vec<u32>>) -> Self {
        Self::make(label.into(), dtype, shape.into(), None, None)
    }

    /// A new node with a memory mode.
    pub fn with_mode(label: impl Into<String>, dtype: DType, shape: impl Into<Vec<u32>>, mode: MemoryMode) -> Self {
        Self::make(label.into(), dtype, shape.into(), Some(mode), None)
    }

    /// A part of `base`, from its element `start` on, as a node of its own with the same dtype. A context has it after
    /// `Context::alias`; no bytes are copied.
    pub fn view(label: impl Into<String>, base: &TensorNode, start: u64, shape: impl Into<Vec<u32>>) -> Self {
        let base_and_start = Some((base.clone(), start));
        Self::make(label.into(), base.dtype(), shape.into(), None, base_and_start)
    }

    fn make(
        label: String,
        dtype: DType,
        shape: Vec<u32>,
        mode: Option<MemoryMode>,
        base: Option<(TensorNode, u64)>,
    ) -> Self {
        let mode = AtomicU8::new(mode.map_or(UNDECIDED, |mode| mode as u8));
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

    /// How its bytes are kept; [`MemoryMode::OnDevice`] while that is undecided. A view is kept as its base is.
    pub fn mode(&self) -> MemoryMode {
        self.decided_mode().unwrap_or_default()
    }

    /// How its bytes are kept; `None` while that is undecided.
    pub fn decided_mode(&self) -> Option<MemoryMode> {
        let mode = self.root().inner.mode.load(Ordering::Acquire);
        MemoryMode::ALL.get(usize::from(mode)).copied()
    }

    /// Decides how its bytes are kept, which can be done once: by whoever makes the node, by a compiler that finds out
    /// more, or by the context that places it. Deciding the same again does nothing.
    ///
    /// # Errors
    /// `Unsupported` where another mode was decided, or for a view, which is kept as its base is.
    pub fn refine_mode(&self, mode: MemoryMode) -> Result<()> {
        if let Some((base, _)) = self.base() {
            let message = format_args!("view {self} is kept as node {base} is; refine that");
            return Err(Error::say(ErrorKind::Unsupported, message));
        }
        let decided = self.inner.mode.compare_exchange(UNDECIDED, mode as u8, Ordering::AcqRel, Ordering::Acquire);
        match decided {
            Ok(_) => Ok(()),
            Err(known) if known == mode as u8 => Ok(()),
            Err(_) => {
                let message = format_args!(
                    "node {self} is {} already, so it cannot become {mode}; refine it before it is placed, or make another",
                    self.mode()
                );
                Err(Error::say(ErrorKind::Unsupported, message))
            }
        }
    }

    /// A node that is placed while its mode is undecided is kept on the device.
    pub(crate) fn settle_mode(&self) {
        let mode = &self.root().inner.mode;
        let _ = mode.compare_exchange(UNDECIDED, MemoryMode::OnDevice as u8, Ordering::AcqRel, Ordering::Acquire);
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
        write!(f, "{}\"", self.id())?;
        for c in self.label().chars() {
            // Messages are one line.
            f.write_char(if c.is_control() { ' ' } else { c })?;
        }
        f.write_char('"')
    }
}

impl fmt::Debug for TensorNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}: {}{}", self.dtype(), List(self.shape()))
    }
}

/// Numbers as messages show them: `[4, 6]`. Formatting them as `Debug` does would be all that needs its machinery.
pub(crate) struct List<'a>(pub(crate) &'a [u32]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "[";
        for number in self.0 {
            write!(f, "{before}{number}")?;
            before = ", ";
        }
        f.write_str(if self.0.is_empty() { "[]" } else { "]" })
    }
}

/// Texts one behind the other, with something between them.
pub(crate) fn joined<S: AsRef<str>>(parts: impl IntoIterator<Item = S>, between: &str) -> String {
    let mut text = String::new();
    for part in parts {
        add_part(&mut text, between, part.as_ref());
    }
    text
}

/// Adds another part, which is not empty.
pub(crate) fn add_part(text: &mut String, between: &str, part: &str) {
    if !text.is_empty() {
        text.push_str(between);
    }
    text.push_str(part);
}

/// The parts of a text between any of those bytes, which are ASCII. What `str` has for this brings searchers of characters
/// and tables of blanks into the web build.
pub(crate) fn parts<'t>(text: &'t str, between: &'static [u8]) -> Parts<'t> {
    Parts { rest: Some(text), between }
}

/// See [`parts`].
pub(crate) struct Parts<'t> {
    rest: Option<&'t str>,
    between: &'static [u8],
}

impl<'t> Iterator for Parts<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let rest = self.rest.take()?;
        let between = self.between;
        // `contains` is a searcher, too.
        #[allow(clippy::manual_contains)]
        let is_between = |byte| between.iter().any(|known| *known == byte);
        match rest.bytes().position(is_between) {
            Some(end) => {
                self.rest = rest.get(end + 1..);
                rest.get(..end)
            }
            None => Some(rest),
        }
    }
}

/// The words of a text.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    parts(text, b" \t\n\r\x0b\x0c").filter(|word| !word.is_empty())
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

    #[test]
    fn a_node_is_said_on_one_line() {
        let node = TensorNode::new("two\nlines", DType::F32, []);
        assert_eq!(node.to_string(), format!("{}\"two lines\"", node.id()));
    }

    #[test]
    fn parts_are_those_of_the_standard_library() {
        for text in ["", ";", "a", "a;b", ";a;;ü;", "a;b;"] {
            assert_eq!(parts(text, b";").collect::<Vec<_>>(), text.split(';').collect::<Vec<_>>());
        }
        for text in ["", " ", "a", " a\tb\r\n  ü "] {
            assert_eq!(words(text).collect::<Vec<_>>(), text.split_whitespace().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_mode_is_decided_once() {
        let node = TensorNode::new("n", DType::F32, [4]);
        let view = TensorNode::view("v", &node, 0, [2]);
        assert_eq!((node.decided_mode(), node.mode()), (None, MemoryMode::OnDevice));
        node.refine_mode(MemoryMode::Local).unwrap();
        node.refine_mode(MemoryMode::Local).unwrap();
        node.settle_mode();
        assert_eq!(view.decided_mode(), Some(MemoryMode::Local), "a view is kept as its base is");
        let error = node.refine_mode(MemoryMode::Constant).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("is local already, so it cannot become constant"), "{error}");
        assert!(view.refine_mode(MemoryMode::Local).is_err());
        let placed = TensorNode::new("p", DType::F32, [4]);
        placed.settle_mode();
        assert_eq!(placed.decided_mode(), Some(MemoryMode::OnDevice));
        assert!("shared".parse::<MemoryMode>().unwrap_err().to_string().contains("use on_device, constant"));
        assert_eq!("local".parse::<MemoryMode>().unwrap(), MemoryMode::Local);
    }
}
