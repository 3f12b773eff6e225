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
    let cap = limits.segment_cap_bytes;
    let mut plan = SegmentPlan::default();
    for (index, size_bytes) in sizes_bytes.into_iter().enumerate() {
        let size = segment_bytes(size_bytes, limits, &|| name(index))?;
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

/// The bytes that a node takes in its segment.
fn segment_bytes(size_bytes: u64, limits: PlanLimits, name: &dyn Fn() -> String) -> Result<u64> {
    let PlanLimits { segment_cap_bytes: cap, alignment_bytes: alignment } = limits;
    if !alignment.is_power_of_two() {
        let message = format_args!("an alignment of {alignment} bytes is not a power of two; use 256");
        return Err(Error::say(ErrorKind::LimitExceeded, message));
    }
    padded_bytes(size_bytes, alignment).filter(|&size| size <= cap).ok_or_else(|| {
        let message = format_args!(
            "node {} needs {size_bytes} bytes ({alignment}-byte aligned), over the {cap}-byte segment limit of the device; \
             split the node or lower its precision",
            name()
        );
        Error::say(ErrorKind::LimitExceeded, message)
    })
}

/// A node that is needed from one step to another of a list, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Its bytes, without padding.
    pub size_bytes: u64,
    /// The first step that uses it.
    pub first: usize,
    /// The last step that uses it.
    pub last: usize,
}

/// Packs nodes so that those whose lifetimes overlap do not share bytes, and others may: what is needed at a time is
/// paid, not the sum. The largest are placed first, each at the lowest offset that is free while it lives.
///
/// # Errors
/// As [`plan_segments`].
pub fn pack_lifetimes(nodes: &[Lifetime], limits: PlanLimits, name: impl Fn(usize) -> String) -> Result<SegmentPlan> {
    let mut rest: Vec<(usize, u64)> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        rest.push((index, segment_bytes(node.size_bytes, limits, &|| name(index))?));
    }
    let mut plan = SegmentPlan { places: vec![Place { segment: 0, offset: 0 }; nodes.len()], ..SegmentPlan::default() };
    let mut placed: Vec<(usize, u64)> = Vec::new();
    while let Some(largest) = (0..rest.len()).reduce(|best, at| if rest[at].1 > rest[best].1 { at } else { best }) {
        let (index, size) = rest.remove(largest);
        let in_the_way =
            |other: usize| nodes[other].first <= nodes[index].last && nodes[index].first <= nodes[other].last;
        let mut place = Place { segment: 0, offset: 0 };
        // Every step moves past a node that is in the way, or to the next segment, which may be new.
        loop {
            if place.offset + size > limits.segment_cap_bytes {
                place = Place { segment: place.segment + 1, offset: 0 };
            }
            let overlaps = |&&(other, len): &&(usize, u64)| {
                let Place { segment, offset } = plan.places[other];
                let is_apart = place.offset + size <= offset || offset + len <= place.offset;
                segment == place.segment && !is_apart && in_the_way(other)
            };
            match placed.iter().find(overlaps) {
                Some(&(other, len)) => place.offset = plan.places[other].offset + len,
                None => break,
            }
        }
        plan.places[index] = place;
        placed.push((index, size));
        if plan.segment_sizes_bytes.len() <= place.segment {
            plan.segment_sizes_bytes.resize(place.segment + 1, 0);
        }
        let used = &mut plan.segment_sizes_bytes[place.segment];
        *used = (*used).max(place.offset + size);
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

    fn pack(nodes: &[(u64, usize, usize)], cap: u64) -> SegmentPlan {
        let nodes: Vec<_> =
            nodes.iter().map(|&(size_bytes, first, last)| Lifetime { size_bytes, first, last }).collect();
        let limits = PlanLimits { segment_cap_bytes: cap, alignment_bytes: 256 };
        pack_lifetimes(&nodes, limits, |_| "n1\"x\"".to_owned()).unwrap()
    }

    #[test]
    fn a_chain_of_temporaries_needs_two_places() {
        let chain: Vec<_> = (0..10).map(|step| (1000, step, step + 1)).collect();
        let plan = pack(&chain, 1 << 20);
        assert_eq!(plan.segment_sizes_bytes, [2048], "the peak, not the sum");
    }

    #[test]
    fn lifetimes_that_overlap_share_no_byte() {
        let mut seed = 7u64;
        let mut random = |bound: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % bound
        };
        for _ in 0..300 {
            let nodes: Vec<_> = (0..1 + random(30))
                .map(|_| {
                    let first = random(12) as usize;
                    (random(3000), first, first + random(6) as usize)
                })
                .collect();
            let plan = pack(&nodes, 4096);
            assert!(plan.segment_sizes_bytes.iter().all(|&size| size <= 4096));
            for (a, (&(size, first, last), place)) in nodes.iter().zip(&plan.places).enumerate() {
                let end = place.offset + padded_bytes(size, 256).unwrap();
                assert!(place.offset % 256 == 0 && end <= plan.segment_sizes_bytes[place.segment]);
                for (&(other_size, other_first, other_last), other) in nodes.iter().zip(&plan.places).take(a) {
                    let other_end = other.offset + padded_bytes(other_size, 256).unwrap();
                    let shares = place.segment == other.segment && place.offset < other_end && other.offset < end;
                    assert!(!(shares && first <= other_last && other_first <= last), "{nodes:?}: {plan:?}");
                }
            }
        }
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
