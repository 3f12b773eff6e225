//! The result for a person: figures, confusion matrix, and where the tensors are.

use std::fmt::{self, Display, Formatter};

use crate::native::train::Outcome;

const CLASSES: usize = 10;

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let right: i32 = self.confusion.iter().step_by(CLASSES + 1).sum();
        let all: i32 = self.confusion.iter().sum();
        writeln!(f, "device            {}, {} ({})", self.driver, self.adapter.name, self.adapter.backend)?;
        writeln!(f, "test accuracy     {:.4} ({right} of {all} unseen digits)", self.test_accuracy)?;
        if let Some(last) = self.losses.last() {
            writeln!(f, "last loss         {:.4} at step {}", last.loss, last.step)?;
        }
        writeln!(f, "steps per second  {:.0}", self.steps_per_second)?;
        self.confusion(f)?;
        self.memory(f)
    }
}

impl Outcome {
    fn confusion(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "\nconfusion: what was written (rows), what was read (columns)\n   ")?;
        for read in 0..CLASSES {
            write!(f, "{read:>4}")?;
        }
        for (label, row) in self.confusion.chunks(CLASSES).enumerate() {
            write!(f, "\n{label:>3}")?;
            for &count in row {
                let cell = if count == 0 { "·".to_owned() } else { count.to_string() };
                write!(f, "{cell:>4}")?;
            }
        }
        writeln!(f)
    }

    fn memory(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let report = &self.report;
        writeln!(
            f,
            "\nmemory: {} in {} slabs, {} of it padding; peak {}; reserved {} (heaps: {}); staging {}",
            bytes(report.in_use_bytes),
            report.pools.len(),
            bytes(report.padding_bytes),
            bytes(report.peak_bytes),
            bytes(report.reserved_bytes),
            report.heap_count,
            bytes(report.staging_bytes),
        )?;
        for pool in &report.pools {
            write!(f, "  pool {:<3} {:>9} ", pool.pool_id.0, bytes(pool.size_bytes))?;
            for node in &pool.nodes {
                write!(f, "  {} @{}", node.label, node.offset)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn bytes(count: u64) -> String {
    const KIB: f64 = 1024.0;
    match count as f64 {
        few if few < KIB => format!("{few} B"),
        some if some < KIB * KIB => format!("{:.1} KB", some / KIB),
        many => format!("{:.1} MB", many / KIB / KIB),
    }
}
