//! Loops in words, for tests and for reports: a line per buffer and static bound, then each nest with its stages.

use std::fmt::{self, Display, Formatter};

use crate::loops::ir::{BufferKind, Loops, Nest, Store};
use crate::notation::ast::AssignOp;
use crate::notation::print::Words;

impl Display for Loops {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for buffer in &self.buffers {
            let kind = match buffer.kind {
                BufferKind::Node(_) => "node",
                BufferKind::Temporary => "temporary",
            };
            writeln!(f, "{}: {}{:?} {kind}", buffer.name, buffer.dtype, buffer.shape)?;
        }
        self.nests.iter().try_for_each(|nest| self.write_nest(nest, f))
    }
}

impl Loops {
    fn write_nest(&self, nest: &Nest, f: &mut Formatter<'_>) -> fmt::Result {
        let tensors: Vec<&str> = self.buffers.iter().map(|buffer| &*buffer.name).collect();
        let words = Words { tensors, statics: &self.statics, indices: &nest.indices };
        f.write_str(&nest.name)?;
        words.write_ranges(" for ", &nest.free, f)?;
        writeln!(f)?;
        for (number, stage) in nest.stages.iter().enumerate() {
            write!(f, "  %{number} = ")?;
            if let Some(fold) = &stage.fold
                && let Some(op) = fold.op
            {
                words.write_expr(&fold.start, f)?;
                write!(f, "\n  %{number} {} ", AssignOp::Onto(op).symbol())?;
            }
            words.write_expr(&stage.value, f)?;
            words.write_ranges(" over ", stage.fold.as_ref().map_or(&[], |fold| &fold.over), f)?;
            writeln!(f)?;
        }
        for (number, stage) in nest.stages.iter().enumerate() {
            let Some(Store { target, positions, atomic }) = &stage.store else { continue };
            write!(f, "  {}", words.tensors[*target])?;
            words.write_positions(positions, f)?;
            let each = if stage.is_each() { " each" } else { "" };
            writeln!(f, " {} %{number}{each}", atomic.map_or(AssignOp::Set, AssignOp::Onto).symbol())?;
        }
        Ok(())
    }
}
