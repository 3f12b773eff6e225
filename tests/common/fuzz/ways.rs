//! The ways that programs go on the GPU.

use wgslab::Forced;

use super::Random;
use super::count::{POINTS, STAGED, SUBGROUPS, TILED, WORKGROUPS};

/// How programs go on the GPU, beside as a user would have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// In one way, which the seed draws.
    Drawn,
    /// In the way of that number.
    One(usize),
    /// In every way.
    Every,
}

impl Ways {
    /// Those that the text names: `every`, or a name of the table of ways.
    pub fn named(text: Option<&str>) -> Self {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Self::Drawn };
        if text == "every" {
            return Self::Every;
        }
        let names: Vec<&str> = WAYS.iter().map(|way| way.name).collect();
        let at = names.iter().position(|name| *name == text);
        Self::One(at.unwrap_or_else(|| panic!("no way \"{text}\", but every, {}", names.join(", "))))
    }

    /// Whether programs go that way at some time.
    pub(super) fn have(self, at: usize) -> bool {
        match self {
            Self::Drawn => at == 0 || WAYS[at].weight > 0,
            Self::One(one) => at == 0 || at == one,
            Self::Every => true,
        }
    }
}

/// A slab of [`Devices::apart`], in which most tensors fit, and a heap: each slab has one of its own, made to measure.
pub const APART_BYTES: [u64; 2] = [16 << 10, 1];

/// A way that a program goes on the GPU.
pub(super) struct OnGpu {
    pub(super) name: &'static str,
    pub(super) is_plain: bool,
    pub(super) is_apart: bool,
    pub(super) schedule: Option<Forced>,
    /// The schedules of its kernels.
    pub(super) takes: Takes,
    /// The sort of kernels that it is there for, of those that are counted.
    pub(super) sort: Option<usize>,
    /// How often it is drawn.
    pub(super) weight: u64,
}

/// Which of all schedules that a kernel has it takes: fours or none, many lanes, direct bindings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    First,
    /// One that is drawn.
    Drawn,
    /// Each in turn, with both binding plans.
    Each,
}

const fn way(name: &'static str, weight: u64) -> OnGpu {
    OnGpu { name, is_plain: false, is_apart: false, schedule: None, takes: Takes::First, sort: None, weight }
}

const fn forced(name: &'static str, weight: u64, schedule: Forced, sort: Option<usize>) -> OnGpu {
    OnGpu { schedule: Some(schedule), sort, ..way(name, weight) }
}

/// As a user would have it, always; of the others one, drawn.
pub(super) const WAYS: &[OnGpu] = &[
    way("as it is", 0),
    OnGpu { is_plain: true, ..way("plain", 3) },
    forced("forced tiled", 3, Forced::Tiled, Some(TILED)),
    forced("forced staged", 3, Forced::Staged, Some(STAGED)),
    forced("forced per workgroup", 3, Forced::PerWorkgroup, Some(WORKGROUPS)),
    forced("forced subgroups", 3, Forced::Subgroups, Some(SUBGROUPS)),
    forced("as on a gpu", 3, Forced::LikeGpu, None),
    // Most kernels are so anyway.
    forced("forced per point", 1, Forced::PerPoint, Some(POINTS)),
    OnGpu { is_apart: true, ..way("many heaps", 2) },
    OnGpu { takes: Takes::Drawn, ..way("schedules drawn", 4) },
    // Twenty times and more, so where that is asked for.
    OnGpu { takes: Takes::Each, ..way("each schedule", 0) },
];

/// The other way of a seed.
pub(super) fn drawn(seed: u64) -> usize {
    let all = WAYS.iter().map(|way| way.weight).sum();
    let mut roll = Random::new(!seed).below(all);
    WAYS.iter()
        .position(|way| {
            roll < way.weight || {
                roll -= way.weight;
                false
            }
        })
        .unwrap_or(0)
}
