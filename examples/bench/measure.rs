//! How a row is measured: both sides in turn, several times, and the middle with its spread.

use std::fmt;

use serde::Serialize;
use wgslab::Result;

/// The middle of the repeats, and the quartiles around it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    pub median: f64,
    low: f64,
    high: f64,
}

/// One row. The rows of the browser look the same.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    name: String,
    unit: &'static str,
    wgslab: Spread,
    #[serde(flatten)]
    beside: Option<Beside>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The other side of a row.
#[derive(Clone, Debug, Serialize)]
struct Beside {
    raw: Spread,
    ratio: f64,
}

impl Row {
    /// A row of this crate alone.
    pub fn alone(name: &str, unit: &'static str, samples: &[f64]) -> Self {
        Self { name: name.to_owned(), unit, wgslab: spread(samples), beside: None, note: None }
    }

    pub fn with_note(mut self, note: &str) -> Self {
        self.note = Some(note.to_owned());
        self
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { name, unit, wgslab, beside, .. } = self;
        write!(f, "{name:<52} {:>9.3} {unit}", wgslab.median)?;
        if let Some(Beside { raw, ratio }) = beside {
            write!(f, " raw {:>9.3} {unit} ratio {ratio:>6.2}", raw.median)?;
        }
        write!(f, " {}", self.note.as_deref().unwrap_or(""))
    }
}

/// Runs two measurements in turn, so that a busy moment of the machine meets both, after some turns to warm up. The
/// side that goes first changes with every turn.
pub fn in_turn<T>(
    turns: usize,
    mut first: impl FnMut() -> Result<T>,
    mut second: impl FnMut() -> Result<T>,
) -> Result<(Vec<T>, Vec<T>)> {
    let warm_up = turns.div_ceil(4);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for turn in 0..warm_up + turns {
        let (one, other) = if turn % 2 == 0 {
            let one = first()?;
            (one, second()?)
        } else {
            let other = second()?;
            (first()?, other)
        };
        if turn >= warm_up {
            ours.push(one);
            theirs.push(other);
        }
    }
    Ok((ours, theirs))
}

/// A row of two sides.
pub fn row<T>(name: &str, unit: &'static str, wgslab: &[T], raw: &[T], number: impl Fn(&T) -> f64) -> Row {
    let numbers = |samples: &[T]| samples.iter().map(&number).collect::<Vec<_>>();
    let (wgslab, raw) = (numbers(wgslab), numbers(raw));
    let beside = Beside { raw: spread(&raw), ratio: ratio_of(&wgslab, &raw) };
    Row { name: name.to_owned(), unit, wgslab: spread(&wgslab), beside: Some(beside), note: None }
}

/// The middle of the ratios turn by turn: what slows a turn down slows both of its sides.
pub fn ratio_of(ours: &[f64], theirs: &[f64]) -> f64 {
    spread(&ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>()).median
}

/// The middle and the quartiles of some numbers.
pub fn spread(samples: &[f64]) -> Spread {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |part: f64| sorted[(part * (sorted.len() - 1) as f64).round() as usize];
    Spread { median: at(0.5), low: at(0.25), high: at(0.75) }
}
