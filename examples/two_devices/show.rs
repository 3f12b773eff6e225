//! The result for a person.

use std::fmt::{self, Display, Formatter};

use crate::native::train::{Difference, Outcome};

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for device in &self.devices {
            let adapter = &device.adapter;
            writeln!(f, "device             {}, {} ({})", device.name, adapter.name, adapter.backend)?;
        }
        writeln!(f, "trained            {} epochs, {} steps", self.epochs, self.steps)?;
        writeln!(f, "\n                   two devices, half a batch each   one device, whole batches")?;
        let (accuracy, seconds) = (&self.test_accuracy, &self.seconds);
        let both = accuracy.devices.iter().map(|share| format!("{share:.4}")).collect::<Vec<_>>().join(" and ");
        writeln!(f, "test accuracy      {both:<33}{:.4}", accuracy.joined)?;
        for entry in &self.losses {
            let losses = &entry.loss;
            let both = losses.devices.iter().map(|loss| format!("{loss:.4}")).collect::<Vec<_>>().join(" and ");
            writeln!(f, "loss of step {:<6}{both:<33}{:.4}", entry.step, losses.joined)?;
        }
        writeln!(f, "seconds            {:<33.2}{:.2}", seconds.two_devices, seconds.joined)?;
        writeln!(f, "\nlargest difference of a weight, and over the largest weight")?;
        line(f, "between the devices", self.between_devices, self.tolerance.between_devices)?;
        line(f, "to the one device", self.to_joined, self.tolerance.to_joined)
    }
}

fn line(f: &mut Formatter<'_>, what: &str, Difference { absolute, relative }: Difference, most: f64) -> fmt::Result {
    writeln!(f, "{what:<20} {absolute:.1e}, {relative:.1e} (at most {most:.1e})")
}
