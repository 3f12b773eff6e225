//! A strided move of bytes: equal runs, from places along some axes to places along the same axes. Pure integers.
//!
//! It is kept as short as it can be: axes of one index are gone, and axes that continue each other on both sides are one.

use crate::error::Result;

/// One axis of a strided move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// How many runs along it, at least two.
    pub extent: u64,
    /// Bytes from one run to the next where they come from.
    pub src: u64,
    /// Bytes from one run to the next where they go.
    pub dst: u64,
}

/// Where the bytes of a move come from and go to, relative to its two starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strided {
    /// Bytes that lie together on both sides; 0 if nothing is moved.
    pub run_bytes: u64,
    /// The axes along which the runs lie, the outermost first; none for a single run.
    pub axes: Vec<Axis>,
}

impl Strided {
    /// Moves runs of `run_bytes` along those axes, the outermost first.
    pub fn new(run_bytes: u64, axes: &[Axis]) -> Self {
        let mut merged: Vec<Axis> = Vec::new();
        for &axis in axes {
            match merged.last_mut() {
                _ if axis.extent == 0 => return Self::default(),
                _ if axis.extent == 1 => {}
                Some(last) if last.src == axis.extent * axis.src && last.dst == axis.extent * axis.dst => {
                    *last = Axis { extent: last.extent * axis.extent, ..axis };
                }
                _ => merged.push(axis),
            }
        }
        let mut run_bytes = run_bytes;
        // After merging, at most the innermost axis continues the run.
        if let Some(last) = merged.last().copied()
            && last.src == run_bytes
            && last.dst == run_bytes
        {
            run_bytes *= last.extent;
            merged.pop();
        }
        Self { run_bytes, axes: merged }
    }

    /// Whether nothing is moved.
    pub fn is_empty(&self) -> bool {
        self.run_bytes == 0
    }

    /// How many runs.
    pub fn run_count(&self) -> u64 {
        if self.is_empty() { 0 } else { self.axes.iter().map(|axis| axis.extent).product() }
    }

    /// All bytes that are moved.
    pub fn len_bytes(&self) -> u64 {
        self.run_count() * self.run_bytes
    }

    /// Bytes from the first to behind the last, where they come from.
    pub fn src_reach(&self) -> u64 {
        self.run_bytes + self.axes.iter().map(|axis| (axis.extent - 1) * axis.src).sum::<u64>()
    }

    /// Bytes from the first to behind the last, where they go.
    pub fn dst_reach(&self) -> u64 {
        self.run_bytes + self.axes.iter().map(|axis| (axis.extent - 1) * axis.dst).sum::<u64>()
    }

    /// The same sources, into a row.
    #[must_use]
    pub fn to_row(&self) -> Self {
        self.with_row(|axis, stride| axis.dst = stride)
    }

    /// The same destinations, from a row.
    #[must_use]
    pub fn from_row(&self) -> Self {
        self.with_row(|axis, stride| axis.src = stride)
    }

    /// The same move, but for one side, which is a row.
    fn with_row(&self, set: fn(&mut Axis, u64)) -> Self {
        let (mut stride, mut axes) = (self.len_bytes(), self.axes.clone());
        for axis in &mut axes {
            stride /= axis.extent;
            set(axis, stride);
        }
        Self::new(self.run_bytes, &axes)
    }

    /// Calls `each` with where every run comes from and goes to, in the order of a row.
    ///
    /// # Errors
    /// The first that `each` gives.
    pub fn each_run(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
        let mut index = vec![0; self.axes.len()];
        let (mut src, mut dst) = (0, 0);
        for _ in 0..self.run_count() {
            each(src, dst)?;
            for (index, axis) in index.iter_mut().zip(&self.axes).rev() {
                *index += 1;
                (src, dst) = (src + axis.src, dst + axis.dst);
                if *index < axis.extent {
                    break;
                }
                *index = 0;
                (src, dst) = (src - axis.extent * axis.src, dst - axis.extent * axis.dst);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(run_bytes: u64, axes: &[(u64, u64, u64)]) -> Strided {
        let axes: Vec<_> = axes.iter().map(|&(extent, src, dst)| Axis { extent, src, dst }).collect();
        Strided::new(run_bytes, &axes)
    }

    fn runs(strided: &Strided) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let walked = strided.each_run(&mut |src, dst| {
            found.push((src, dst));
            Ok(())
        });
        walked.unwrap();
        found
    }

    #[test]
    fn axes_that_continue_each_other_on_both_sides_are_one() {
        assert_eq!(strided(4, &[(2, 12, 12), (3, 4, 4)]), strided(24, &[]));
        assert_eq!(strided(4, &[(2, 60, 24), (3, 20, 8)]), strided(4, &[(6, 20, 8)]));
        assert_eq!(strided(4, &[(2, 60, 12), (1, 999, 7), (3, 4, 4)]), strided(12, &[(2, 60, 12)]));
        assert_eq!(strided(4, &[(2, 12, 13), (3, 4, 4)]).axes.len(), 1, "together on one side only");
        assert!(strided(4, &[(2, 60, 12), (0, 4, 4)]).is_empty());
    }

    #[test]
    fn runs_come_in_the_order_of_a_row() {
        let found = runs(&strided(1, &[(2, 100, 4), (2, 10, 2)]));
        assert_eq!(found, [(0, 0), (10, 2), (100, 4), (110, 6)]);
        assert_eq!(runs(&strided(8, &[])), [(0, 0)]);
        assert_eq!(runs(&strided(8, &[(0, 1, 1)])), []);
    }

    #[test]
    fn a_move_goes_by_way_of_a_row() {
        let whole = strided(2, &[(3, 100, 7), (2, 10, 50)]);
        let (there, back) = (whole.to_row(), whole.from_row());
        assert_eq!((there.dst_reach(), back.src_reach()), (12, 12));
        let places: Vec<_> = runs(&there).into_iter().zip(runs(&back)).map(|(a, b)| (a.0, b.1)).collect();
        assert_eq!(places, runs(&whole));
        assert_eq!((whole.src_reach(), whole.dst_reach(), whole.len_bytes()), (212, 66, 12));
    }
}
