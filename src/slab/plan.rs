//! The segment planner: packs the nodes of a context delta into as few slabs as the cap allows.
//!
//! Pure and deterministic: nodes are placed in the given order, each at a multiple of the alignment and padded to it,
//! and a new segment begins where the next node would cross the cap.

use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};

/// The bounds of every segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PlanLimits {
    /// The largest segment, in bytes, a multiple of the alignment.
    pub segment_cap_bytes: u64,
    /// Where nodes may start, in bytes: a power of two.
    pub alignment_bytes: u64,
}

/// A node's place in the plan: which segment, and how far into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Index of the segment in [`SegmentPlan::segment_sizes_bytes`].
    pub segment: usize,
    /// Bytes from the start of the segment.
    pub offset: u64,
}

/// The result: one place per node, in the order given, and the size of each segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SegmentPlan {
    /// One place per node.
    pub places: Vec<Place>,
    /// Bytes of each segment, padding included.
    pub segment_sizes_bytes: Vec<u64>,
}

/// The bytes that a node of that size takes with its padding. An empty node still has an address of its own.
pub fn padded_bytes(size_bytes: u64, alignment_bytes: u64) -> Option<u64> {
    size_bytes.max(1).checked_next_multiple_of(alignment_bytes)
}

/// Packs nodes of those sizes in bytes, without padding, in order, into segments. `name(i)` is the node in messages.
///
/// # Errors
/// [`ErrorKind::LimitExceeded`] for a node that no segment can hold; it names the node, its bytes, the limit and what
/// to do.
pub fn plan_segments(
    sizes_bytes: impl IntoIterator<Item = u64>,
    limits: PlanLimits,
    name: impl Fn(usize) -> String,
) -> Result<SegmentPlan> {
    let PlanLimits { segment_cap_bytes: cap, alignment_bytes: alignment } = limits;
    if !alignment.is_power_of_two() {
        return Err(Error::new(
            ErrorKind::LimitExceeded,
            format!("an alignment of {alignment} bytes is not a power of two; use 256"),
        ));
    }
    let mut plan = SegmentPlan::default();
    for (index, size_bytes) in sizes_bytes.into_iter().enumerate() {
        let size = padded_bytes(size_bytes, alignment).filter(|&size| size <= cap).ok_or_else(|| {
            Error::new(
                ErrorKind::LimitExceeded,
                format!(
                    "node {} needs {size_bytes} bytes ({alignment}-byte aligned), over the {cap}-byte segment limit of \
                     the device; split the node or lower its precision",
                    name(index)
                ),
            )
        })?;
        let offset = match plan.segment_sizes_bytes.last_mut() {
            Some(used) if *used + size <= cap => {
                let offset = *used;
                *used += size;
                offset
            }
            _ => {
                plan.segment_sizes_bytes.push(size);
                0
            }
        };
        plan.places.push(Place { segment: plan.segment_sizes_bytes.len() - 1, offset });
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(sizes: &[u64], cap: u64) -> Result<SegmentPlan> {
        let limits = PlanLimits { segment_cap_bytes: cap, alignment_bytes: 256 };
        plan_segments(sizes.iter().copied(), limits, |_| "n1\"x\"".to_owned())
    }

    #[test]
    fn nodes_follow_each_other_at_aligned_offsets() {
        let plan = plan(&[1, 256, 257, 3], 4096).unwrap();
        assert_eq!(plan.places.iter().map(|place| place.offset).collect::<Vec<_>>(), [0, 256, 512, 1024]);
        assert_eq!(plan.segment_sizes_bytes, [1280]);
    }

    #[test]
    fn an_empty_node_has_an_address_of_its_own() {
        let plan = plan(&[0, 0, 4], 4096).unwrap();
        assert_eq!(plan.places.iter().map(|place| place.offset).collect::<Vec<_>>(), [0, 256, 512]);
    }

    #[test]
    fn a_node_that_crosses_the_cap_begins_a_new_segment() {
        let plan = plan(&[512, 512, 256], 1024).unwrap();
        assert_eq!(plan.places.iter().map(|place| place.segment).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(plan.segment_sizes_bytes, [1024, 256]);
    }

    #[test]
    fn a_node_over_the_cap_is_refused_by_name_and_number() {
        let error = plan(&[4, 1025], 1024).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert_eq!(
            error.to_string(),
            "node n1\"x\" needs 1025 bytes (256-byte aligned), over the 1024-byte segment limit of the device; split \
             the node or lower its precision"
        );
        assert_eq!(plan(&[u64::MAX], 1024).unwrap_err().kind(), ErrorKind::LimitExceeded);
    }
}
