//! Who touched which node, along a line of contexts: what a routine must wait for before it may run.
//!
//! A routine depends on the writers of what it reads (read after write) and of what it writes (write after write), and on
//! the readers of what it writes (write after read), among the routines that were linked before it in its line of
//! contexts and have not run. A routine that is gone can never run, so nobody waits for it, but for those before it
//! still.

use std::fmt;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::node::NodeId;
use crate::sorted_map::SortedMap;

/// The identity of a routine, unique in the process, in order of linking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RoutineId(pub u32);

impl fmt::Display for RoutineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// A routine as those after it see it.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) id: RoutineId,
    pub(crate) name: String,
    ran: AtomicBool,
}

impl Mark {
    pub(crate) fn new(id: RoutineId, name: &str) -> Self {
        Self { id, name: name.to_owned(), ran: AtomicBool::new(false) }
    }

    pub(crate) fn has_run(&self) -> bool {
        self.ran.load(Ordering::Acquire)
    }

    pub(crate) fn set_run(&self) {
        self.ran.store(true, Ordering::Release);
    }
}

/// Those who touch a node and have not run.
#[derive(Clone, Debug, Default)]
struct Touched {
    writers: Vec<Weak<Mark>>,
    readers: Vec<Weak<Mark>>,
}

/// Who touched which node, along a line of contexts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lineage {
    nodes: SortedMap<NodeId, Touched>,
}

/// Whether somebody must still wait for that routine.
pub(crate) fn is_pending(mark: &Weak<Mark>) -> bool {
    mark.upgrade().is_some_and(|mark| !mark.has_run())
}

impl Lineage {
    /// What a routine depends on that reads and writes those nodes.
    pub(crate) fn deps(&self, reads: &[NodeId], writes: &[NodeId]) -> Vec<Weak<Mark>> {
        let mut deps: Vec<Weak<Mark>> = Vec::new();
        let mut add = |mark: &Weak<Mark>| {
            if is_pending(mark) && !deps.iter().any(|known| known.ptr_eq(mark)) {
                deps.push(mark.clone());
            }
        };
        for touched in reads.iter().filter_map(|node| self.nodes.get(node)) {
            touched.writers.iter().for_each(&mut add);
        }
        for touched in writes.iter().filter_map(|node| self.nodes.get(node)) {
            touched.writers.iter().for_each(&mut add);
            touched.readers.iter().for_each(&mut add);
        }
        deps
    }

    /// The lineage behind a routine that reads and writes those nodes.
    pub(crate) fn after(&self, mark: &Weak<Mark>, reads: &[NodeId], writes: &[NodeId]) -> Self {
        let mut next = self.clone();
        for (nodes, is_write) in [(reads, false), (writes, true)] {
            for &node in nodes {
                let mut touched = next.nodes.remove(&node).unwrap_or_default();
                let touching = if is_write { &mut touched.writers } else { &mut touched.readers };
                touching.retain(is_pending);
                touching.push(mark.clone());
                next.nodes.insert(node, touched);
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const X: NodeId = NodeId(1);
    const Y: NodeId = NodeId(2);

    fn ids(deps: &[Weak<Mark>]) -> Vec<u32> {
        deps.iter().filter_map(Weak::upgrade).map(|mark| mark.id.0).collect()
    }

    #[test]
    fn the_three_hazards_are_dependencies_and_reading_twice_is_none() {
        let marks: Vec<_> = (0..4).map(|id| Arc::new(Mark::new(RoutineId(id), "r"))).collect();
        let weak: Vec<_> = marks.iter().map(Arc::downgrade).collect();
        let written = Lineage::default().after(&weak[0], &[], &[X]);
        assert_eq!(ids(&written.deps(&[X], &[])), [0], "read after write");
        assert_eq!(ids(&written.deps(&[], &[X])), [0], "write after write");
        let read = written.after(&weak[1], &[X], &[Y]).after(&weak[2], &[X], &[]);
        assert_eq!(ids(&read.deps(&[], &[X])), [0, 1, 2], "write after read");
        assert_eq!(ids(&read.deps(&[X], &[])), [0], "two reads do not wait for each other");
        let rewritten = read.after(&weak[3], &[], &[X]);
        assert_eq!(ids(&rewritten.deps(&[X], &[])), [0, 3], "every writer that has not run");
        marks[3].set_run();
        assert_eq!(ids(&rewritten.deps(&[X], &[])), [0], "what has run is waited for no longer");
    }

    #[test]
    fn nobody_waits_for_a_routine_that_is_gone() {
        let mark = Arc::new(Mark::new(RoutineId(7), "gone"));
        let lineage = Lineage::default().after(&Arc::downgrade(&mark), &[], &[X]);
        assert_eq!(ids(&lineage.deps(&[X], &[])), [7]);
        let later = Arc::new(Mark::new(RoutineId(8), "later"));
        let lineage = lineage.after(&Arc::downgrade(&later), &[], &[X]);
        drop(later);
        assert_eq!(ids(&lineage.deps(&[X], &[])), [7], "those before it are waited for still");
        drop(mark);
        assert!(lineage.deps(&[X], &[]).is_empty());
    }
}
