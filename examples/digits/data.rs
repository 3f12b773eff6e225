//! The digits: reading the file, and the fixed shuffle and split that `program.json` describes.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;

use crate::native::Result;
use crate::native::program::{Batches, Hyperparameters, Split};

const PIXELS: usize = 64;

/// The data set and its split.
#[derive(Debug)]
pub struct Digits {
    /// 64 pixels a row, 0 (paper) to 16 (ink).
    pub pixels: Vec<u8>,
    /// The digit of each row.
    pub labels: Vec<u8>,
    /// Rows to train on, in the order of the shuffle.
    pub train_order: Vec<u32>,
    /// Rows to test on, in the order of the shuffle.
    pub test_order: Vec<u32>,
}

impl Digits {
    /// Reads and splits the digits.
    pub fn read(split: &Split) -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/digits.csv.gz");
        let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(GzDecoder::new(file));
        let (mut pixels, mut labels) = (Vec::new(), Vec::new());
        for row in reader.deserialize() {
            let row: Vec<u8> = row?;
            let [image @ .., label] = row.as_slice() else { continue };
            if image.len() != PIXELS {
                return Err(format!("{}: a row has {} pixels instead of {PIXELS}", path.display(), image.len()).into());
            }
            pixels.extend_from_slice(image);
            labels.push(*label);
        }
        let mut train_order = shuffled(labels.len(), split.shuffle_seed);
        let test_len = (labels.len() as f64 * split.test_fraction) as usize;
        let test_order = train_order.split_off(labels.len() - test_len);
        Ok(Self { pixels, labels, train_order, test_order })
    }

    /// The bytes of an input of the program.
    pub fn input(&self, name: &str, settings: &Hyperparameters, batches: Batches) -> Result<Cow<'_, [u8]>> {
        let number = |value: f32| Cow::Owned(value.to_le_bytes().to_vec());
        Ok(match name {
            "pixels" => Cow::Borrowed(self.pixels.as_slice()),
            "labels" => Cow::Borrowed(self.labels.as_slice()),
            "batch_rows" => {
                let len = batches.count as usize * batches.rows as usize;
                let rows: Vec<u32> = self.train_order.iter().copied().cycle().take(len).collect();
                Cow::Owned(bytemuck::cast_slice(&rows).to_vec())
            }
            "test_rows" => Cow::Borrowed(bytemuck::cast_slice(&self.test_order)),
            "rate" => number(settings.learning_rate),
            "momentum" => number(settings.momentum),
            "rows" => number(batches.rows as f32),
            name => return Err(format!("program.json: nothing to upload for \"{name}\"").into()),
        })
    }
}

/// `0..len` in the order of a Fisher-Yates shuffle by a 32-bit xorshift.
fn shuffled(len: usize, seed: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..len as u32).collect();
    let mut x = seed;
    for i in (1..len).rev() {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        order.swap(i, x as usize % (i + 1));
    }
    order
}
