//! Who touched which node, along a line of contexts: what a routine must wait for before it may run.
//!
//! A routine depends on the writers of what it reads (read after write) and of what it writes (write after write), and on
//! the readers of what it writes (write after read), among the routines that were linked before it in its line of
//! contexts and have not run. A routine that is gone can never run, so nobody waits for it, but for those before it
//! still.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use serde::Serialize;

use crate::node::{NodeId, TensorNode};

/// The identity of a routine, unique in the process, in order of linking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RoutineId(pub u32);

impl fmt::Display for RoutineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

static NEXT_ID: AtomicU32 = AtomicU32::new(1);

const PENDING: u8 = 0;
const RAN: u8 = 1;
const GONE: u8 = 2;

/// A routine as those after it see it.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) id: RoutineId,
    pub(crate) name: String,
    state: AtomicU8,
    reads: Arc<Touched>,
    writes: Arc<Touched>,
}

impl Mark {
    /// Whether somebody must still wait for the routine.
    pub(crate) fn is_pending(&self) -> bool {
        self.state.load(Ordering::Acquire) == PENDING
    }

    /// Whether a routine behind it that reads and writes those nodes must wait for it.
    fn precedes(&self, reads: &Touched, writes: &Touched) -> bool {
        self.writes.meets(reads) || self.writes.meets(writes) || self.reads.meets(writes)
    }
}

/// A mark in the hands of its routine: when it goes, nobody waits for it any more.
#[derive(Debug)]
pub(crate) struct OwnMark(Arc<Mark>);

impl OwnMark {
    /// The mark of a new routine that reads and writes those nodes.
    pub(crate) fn new(name: &str, reads: Arc<Touched>, writes: Arc<Touched>) -> Self {
        let id = RoutineId(NEXT_ID.fetch_add(1, Ordering::Relaxed));
        Self(Arc::new(Mark { id, name: name.to_owned(), state: AtomicU8::new(PENDING), reads, writes }))
    }

    pub(crate) fn set_run(&self) {
        self.0.state.store(RAN, Ordering::Release);
    }

    /// The nodes that the routine may change.
    pub(crate) fn writes(&self) -> &Touched {
        &self.0.writes
    }
}

impl std::ops::Deref for OwnMark {
    type Target = Mark;

    fn deref(&self) -> &Mark {
        &self.0
    }
}

impl Drop for OwnMark {
    fn drop(&mut self) {
        let _ = self.0.state.compare_exchange(PENDING, GONE, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// A set of nodes, made to be compared with others quickly.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    ids: Vec<NodeId>,
    /// A bit for each id, modulo 64: most sets that share nothing are told apart by it.
    mask: u64,
}

impl Touched {
    /// The nodes whose bytes those are: a view stands for the node whose bytes it shows.
    pub(crate) fn new<'a>(nodes: impl IntoIterator<Item = &'a TensorNode>) -> Self {
        let mut touched = Self::default();
        for node in nodes {
            touched.add(node);
        }
        touched
    }

    fn add(&mut self, node: &TensorNode) {
        let id = node.root().id();
        if let Err(place) = self.ids.binary_search(&id) {
            self.ids.insert(place, id);
        }
        self.mask |= 1 << (id.0 % 64);
    }

    pub(crate) fn ids(&self) -> &[NodeId] {
        &self.ids
    }

    fn meets(&self, other: &Self) -> bool {
        if self.mask & other.mask == 0 {
            return false;
        }
        let (few, many) = if self.ids.len() < other.ids.len() { (self, other) } else { (other, self) };
        few.ids.iter().any(|id| many.ids.binary_search(id).is_ok())
    }
}

/// The routines of a line of contexts that somebody may have to wait for, in order of linking.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lineage {
    marks: Vec<Arc<Mark>>,
}

impl Lineage {
    /// What a routine depends on that reads and writes those nodes.
    pub(crate) fn deps(&self, reads: &Touched, writes: &Touched) -> Vec<Arc<Mark>> {
        let mut deps = Vec::new();
        for mark in &self.marks {
            if mark.is_pending() && mark.precedes(reads, writes) {
                deps.push(mark.clone());
            }
        }
        deps
    }

    /// The lineage behind a routine.
    pub(crate) fn after(&self, mark: &OwnMark) -> Self {
        let mut marks = Vec::new();
        for known in &self.marks {
            if known.is_pending() {
                marks.push(known.clone());
            }
        }
        marks.push(mark.0.clone());
        Self { marks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    fn node() -> TensorNode {
        TensorNode::new("n", DType::F32, [1])
    }

    fn touched(nodes: &[&TensorNode]) -> Arc<Touched> {
        Arc::new(Touched::new(nodes.iter().copied()))
    }

    fn names(lineage: &Lineage, reads: &[&TensorNode], writes: &[&TensorNode]) -> Vec<String> {
        lineage.deps(&touched(reads), &touched(writes)).iter().map(|mark| mark.name.clone()).collect()
    }

    #[test]
    fn the_three_hazards_are_dependencies_and_reading_twice_is_none() {
        let (x, y) = (node(), node());
        let writer = OwnMark::new("writer", touched(&[]), touched(&[&x]));
        let written = Lineage::default().after(&writer);
        assert_eq!(names(&written, &[&x], &[]), ["writer"], "read after write");
        assert_eq!(names(&written, &[], &[&x]), ["writer"], "write after write");
        let reader = OwnMark::new("reader", touched(&[&x]), touched(&[&y]));
        let other = OwnMark::new("other", touched(&[&x]), touched(&[]));
        let read = written.after(&reader).after(&other);
        assert_eq!(names(&read, &[], &[&x]), ["writer", "reader", "other"], "write after read");
        assert_eq!(names(&read, &[&x], &[]), ["writer"], "two reads do not wait for each other");
        let second = OwnMark::new("second", touched(&[]), touched(&[&x]));
        let rewritten = read.after(&second);
        assert_eq!(names(&rewritten, &[&x], &[]), ["writer", "second"], "every writer that has not run");
        second.set_run();
        assert_eq!(names(&rewritten, &[&x], &[]), ["writer"], "what has run is waited for no longer");
    }

    #[test]
    fn nobody_waits_for_a_routine_that_is_gone() {
        let x = node();
        let first = OwnMark::new("first", touched(&[]), touched(&[&x]));
        let lineage = Lineage::default().after(&first);
        let later = OwnMark::new("later", touched(&[]), touched(&[&x]));
        let lineage = lineage.after(&later);
        drop(later);
        assert_eq!(names(&lineage, &[&x], &[]), ["first"], "those before it are waited for still");
        drop(first);
        assert!(names(&lineage, &[&x], &[]).is_empty());
    }

    #[test]
    fn a_view_is_the_node_whose_bytes_it_shows() {
        let base = TensorNode::new("base", DType::F32, [4]);
        let view = TensorNode::view("view", &base, 1, [2]);
        let writer = OwnMark::new("writer", touched(&[]), touched(&[&view]));
        assert_eq!(names(&Lineage::default().after(&writer), &[&base], &[]), ["writer"]);
    }

    #[test]
    fn sets_meet_where_they_share_a_node_and_not_where_only_their_bits_do() {
        let nodes: Vec<_> = (0..200).map(|_| node()).collect();
        let all = Touched::new(&nodes[..100]);
        assert!(all.meets(&Touched::new([&nodes[99]])) && Touched::new([&nodes[99]]).meets(&all));
        assert!(!all.meets(&Touched::new(&nodes[100..])));
        assert!(!all.meets(&Touched::default()));
    }
}
