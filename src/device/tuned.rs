//! Schedules that were measured: one for each kernel, adapter and driver, as a line of text that is kept between programs, in a
//! file. In a page the npm package does so.

mod native;

use crate::device::Device;
use crate::driver::Driver;
use crate::node::parts;

/// What was measured of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Schedules that were measured: those with the least estimates.
    pub(crate) count: u64,
    /// Nanoseconds of a run: of the fastest schedule, and of the one with the least estimate.
    pub(crate) measured_ns: [u64; 2],
    /// The fastest.
    pub(crate) schedule: String,
}

/// All that is known on a device.
#[derive(Debug, Default)]
pub(crate) struct Tuned {
    /// By key; of two with one key, the later counts.
    entries: Vec<(u64, Entry)>,
    native: native::Native,
}

impl Tuned {
    /// Takes what lines of text say; leaves out those that say nothing.
    fn read(&mut self, lines: &str) {
        for line in parts(lines, b"\n") {
            if let Some((key, entry)) = parse(line) {
                self.learn(key, entry);
            }
        }
    }

    fn learn(&mut self, key: u64, entry: Entry) {
        match self.entries.iter_mut().find(|(known, _)| *known == key) {
            Some(known) => known.1 = entry,
            None => self.entries.push((key, entry)),
        }
    }
}

/// What a line says: key, count, two times, and the schedule.
fn parse(line: &str) -> Option<(u64, Entry)> {
    let mut numbers = [0u64; 4];
    let mut at = 0;
    for number in &mut numbers {
        let start = at;
        loop {
            let byte = *line.as_bytes().get(at)?;
            at += 1;
            match byte {
                b'0'..=b'9' => *number = number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?,
                b' ' if at > start + 1 => break,
                _ => return None,
            }
        }
    }
    let ([key, count, own, first], schedule) = (numbers, line.get(at..)?);
    let entry = Entry { count, measured_ns: [own, first], schedule: schedule.to_owned() };
    (!schedule.is_empty()).then_some((key, entry))
}

impl<D: Driver> Device<D> {
    /// Tells the device what was measured before, in lines that a device of the same kind wrote. Lines of other adapters and
    /// kernels do no harm, and what is no such line is left out.
    pub fn remember_tuned(&self, lines: &str) {
        self.record().tuned.read(lines);
    }

    /// What is known of a kernel.
    pub(crate) fn known_tuned(&self, key: u64) -> Option<Entry> {
        self.load_tuned();
        self.record().tuned.entries.iter().find(|(known, _)| *known == key).map(|(_, entry)| entry.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_say_nothing_are_left_out() {
        let mut tuned = Tuned::default();
        tuned.read("18446744073709551615 4 1200 1500 tile 8x8 of 64 lanes\n\0garbage\n1 2 3\n1 2 3 4\n1 2 3 4 \n-1 2 3 4 x\n\n");
        tuned.read("7 1 2 3 point of 64 lanes\n7 1 2 4 point of 64 lanes\n18446744073709551616 1 1 1 x");
        let want = "18446744073709551615 4 1200 1500 tile 8x8 of 64 lanes\n7 1 2 4 point of 64 lanes\n";
        assert_eq!(tuned.lines(), want);
    }
}
