//! Recorded sequences: a list of routines, checked once and replayed with one call.

use std::fmt;

use crate::backend::routine::Routine;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;

/// A list of routines of one device, with values for their statics.
pub struct Sequence<D: Driver> {
    steps: Vec<(Routine<D>, Vec<i32>)>,
}

impl<D: Driver> Sequence<D> {
    /// Records routines, each with a value for each of its statics, by name.
    ///
    /// # Errors
    /// `KernelInterface` for statics that do not fit, an empty sequence, or routines of several devices.
    pub fn record<'a>(steps: impl IntoIterator<Item = (&'a Routine<D>, &'a [(&'a str, i32)])>) -> Result<Self> {
        let valued = |(routine, statics): (&Routine<D>, _)| Ok((routine.clone(), routine.static_values(statics)?));
        Self::record_values(steps.into_iter().map(valued).collect::<Result<_>>()?)
    }

    /// Records routines, each with the values of its statics in the order of [`Routine::bindings`].
    ///
    /// # Errors
    /// As [`Sequence::record`]; a wrong number of values is an error of the replay, as in [`Routine::run_values`].
    pub fn record_values(steps: Vec<(Routine<D>, Vec<i32>)>) -> Result<Self> {
        let Some((first, _)) = steps.first() else {
            return Err(Error::new(ErrorKind::KernelInterface, "a sequence of no routines; record one at least"));
        };
        let device = first.context().device();
        if let Some((other, _)) = steps.iter().find(|(routine, _)| routine.context().device() != device) {
            let message = format_args!(
                "a sequence runs on one device, but \"{}\" is on {} and \"{}\" on {}",
                first.name(),
                device.name(),
                other.name(),
                other.context().device().name()
            );
            return Err(Error::say(ErrorKind::KernelInterface, message));
        }
        Ok(Self { steps })
    }

    /// How many routines a replay runs.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are none; there always is one.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Replays the sequence `times` times with the recorded statics; gives the event of the last run.
    ///
    /// # Errors
    /// As [`Sequence::run_with`].
    pub fn run(&self, times: u32) -> Result<Event<D>> {
        self.run_with(times, |_, _, value| value)
    }

    /// Replays the sequence `times` times. Each static of each run gets `value(replay, name, recorded)`, with replays
    /// counted from 0. Gives the event of the last run.
    ///
    /// # Errors
    /// `NotRun` for a routine that depends on one which neither ran nor comes before it in the sequence: then nothing is
    /// run. `MergeMismatch`, `Disposed`, `DeviceLost` as [`Routine::run`]; what came before in the sequence has run then.
    pub fn run_with(&self, times: u32, value: impl Fn(u32, &str, i32) -> i32) -> Result<Event<D>> {
        for (index, (routine, _)) in self.steps.iter().enumerate() {
            let comes_before = |id| self.steps[..index].iter().any(|(earlier, _)| earlier.id() == id);
            if routine.execution_deps().into_iter().any(|(id, _)| !comes_before(id)) {
                // Running it says which routine is missing.
                return routine.run_values(&self.steps[index].1);
            }
        }
        let mut last = self.steps[0].0.context().device().all_work();
        for replay in 0..times {
            for (routine, recorded) in &self.steps {
                let mut values = Vec::new();
                for (name, old) in routine.bindings().iter().zip(recorded) {
                    values.push(value(replay, name, *old));
                }
                last = routine.run_values(&values)?;
            }
        }
        Ok(last)
    }
}

impl<D: Driver> Clone for Sequence<D> {
    fn clone(&self) -> Self {
        Self { steps: self.steps.clone() }
    }
}

impl<D: Driver> fmt::Debug for Sequence<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.steps.iter().map(|(routine, _)| routine.name()).collect();
        write!(f, "Sequence({})", names.join(", "))
    }
}
