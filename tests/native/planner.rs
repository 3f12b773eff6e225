//! Properties of the segment planner.

use proptest::prelude::*;
use wgslab::slab::plan::{PlanLimits, padded_bytes, plan_segments};

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_are_aligned_disjoint_within_the_cap_and_deterministic(
        sizes in prop::collection::vec(0u64..5000, 0..60),
        alignment_power in 0u32..10,
        cap_units in 1u64..64,
    ) {
        let alignment_bytes = 1u64 << alignment_power;
        let segment_cap_bytes = cap_units * alignment_bytes.max(128);
        let limits = PlanLimits { segment_cap_bytes, alignment_bytes };
        let planned = plan_segments(sizes.iter().copied(), limits, |_| "n".to_owned());
        let again = plan_segments(sizes.iter().copied(), limits, |_| "n".to_owned());
        prop_assert_eq!(planned.as_ref().ok(), again.as_ref().ok(), "not deterministic");
        let too_large = sizes.iter().any(|&size| padded_bytes(size, alignment_bytes).unwrap() > segment_cap_bytes);
        prop_assert_eq!(planned.is_err(), too_large);
        let Ok(plan) = planned else { return Ok(()) };
        prop_assert_eq!(plan.places.len(), sizes.len());
        let mut end = (0, 0);
        for (place, &size) in plan.places.iter().zip(&sizes) {
            prop_assert_eq!(place.offset % alignment_bytes, 0, "not aligned");
            let start = (place.segment, place.offset);
            prop_assert!(start >= end, "{:?} overlaps what ends at {:?}", start, end);
            end = (place.segment, place.offset + size.max(1));
            prop_assert!(end.1 <= plan.segment_sizes_bytes[place.segment], "leaves its segment");
        }
        for (index, &size) in plan.segment_sizes_bytes.iter().enumerate() {
            prop_assert!(size <= segment_cap_bytes, "segment over the cap");
            let used: u64 = plan.places.iter().zip(&sizes).filter(|(place, _)| place.segment == index)
                .map(|(_, &size)| padded_bytes(size, alignment_bytes).unwrap()).sum();
            prop_assert_eq!(used, size, "segment is not sized to its nodes");
        }
    }
}
