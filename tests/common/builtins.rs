//! The kernels that come with the crate, against what Rust and the `half` crate say, on any driver.

use half::{bf16, f16};
use wgslab::{Block, Context, DType, Device, Driver, KernelSpec, Span, TensorNode, kernels};

use super::blocks::indices;
use super::model::Random;

/// A value of any dtype, exactly.
#[derive(Clone, Copy, Debug)]
enum Value {
    Float(f32),
    Integer(i64),
    Bool(bool),
}

fn decode(dtype: DType, bytes: &[u8]) -> Value {
    let word = bytes.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
    match dtype {
        DType::F32 => Value::Float(f32::from_bits(word)),
        DType::F16 => Value::Float(f16::from_bits(word as u16).to_f32()),
        DType::BF16 => Value::Float(bf16::from_bits(word as u16).to_f32()),
        DType::I32 => Value::Integer(i64::from(word as i32)),
        DType::I8 => Value::Integer(i64::from(word as i8)),
        DType::U32 | DType::U8 => Value::Integer(i64::from(word)),
        DType::Bool => Value::Bool(word != 0),
    }
}

/// What a cast to `dtype` must give.
fn cast(value: Value, dtype: DType) -> Vec<u8> {
    let float = match value {
        Value::Float(value) => value,
        Value::Integer(value) => value as f32,
        Value::Bool(value) => f32::from(u8::from(value)),
    };
    let integer = |low: f64, high: f64| match value {
        Value::Float(value) if value.is_nan() => 0,
        Value::Float(value) => f64::from(value).clamp(low, high).trunc() as i64,
        Value::Integer(value) => value,
        Value::Bool(value) => i64::from(value),
    };
    match dtype {
        DType::F32 => float.to_le_bytes().to_vec(),
        DType::F16 => f16::from_f32(float).to_le_bytes().to_vec(),
        DType::BF16 => bf16::from_f32(float).to_le_bytes().to_vec(),
        DType::I32 => (integer(-2_147_483_648.0, 2_147_483_647.0) as i32).to_le_bytes().to_vec(),
        DType::U32 => (integer(0.0, 4_294_967_295.0) as u32).to_le_bytes().to_vec(),
        DType::I8 => vec![integer(-128.0, 127.0) as u8],
        DType::U8 => vec![integer(0.0, 255.0) as u8],
        DType::Bool => vec![match value {
            Value::Float(value) => u8::from(value != 0.0),
            Value::Integer(value) => u8::from(value != 0),
            Value::Bool(value) => u8::from(value),
        }],
    }
}

/// Every element of narrow types; of wide ones those around powers of two, ties and limits.
fn edge_values(dtype: DType) -> Vec<u8> {
    if dtype.size_bytes() == 1 {
        return (0..=255).collect();
    }
    if dtype.size_bytes() == 2 {
        return (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    }
    let mut words: Vec<u32> = Vec::new();
    if dtype == DType::F32 {
        let mantissas =
            [0, 1, 0xfff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x7fff, 0x8000, 0x8001, 0x18000, 0x40_0000, 0x7f_ffff];
        words.extend((0..512u32).flat_map(|top| mantissas.map(|mantissa| top << 23 | mantissa)));
        let numbers =
            [0.5, 0.99, 1.5, 126.9, 127.0, 128.0, 255.0, 255.5, 256.0, 2_147_483_520.0, 4_294_967_040.0, 65519.99];
        words.extend(numbers.into_iter().flat_map(|number: f32| [number.to_bits(), (-number).to_bits()]));
    } else {
        for shift in 0..32 {
            for near in -3i64..=3 {
                let word = (1i64 << shift) + near;
                words.extend([word as u32, (-word) as u32]);
            }
        }
        // Ties between floats, one below and one above, of all magnitudes.
        for shift in 1..=8u32 {
            for odd in [0, 1] {
                let tie = ((1 << 23) + 12344 + odd) << (shift) | 1 << (shift - 1);
                words.extend([tie - 1, tie, tie + 1].into_iter().flat_map(|word: u32| [word, word.wrapping_neg()]));
            }
        }
        words.push(0);
    }
    let mut random = Random::new(7);
    words.extend((0..3000).map(|_| random.below(1 << 16) as u32 | (random.below(1 << 16) as u32) << 16));
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Whether two elements are the same: to the bit, or both a NaN.
fn same(dtype: DType, got: &[u8], want: &[u8]) -> bool {
    let nan = |bytes: &[u8]| matches!(decode(dtype, bytes), Value::Float(value) if value.is_nan());
    got == want || (nan(got) && nan(want))
}

fn compare(what: &str, dtype: DType, got: &[u8], want: &[u8], from: impl Fn(usize) -> String) -> Result<(), String> {
    let size = dtype.size_bytes() as usize;
    if got.len() != want.len() {
        return Err(format!("{what}: {} bytes came, {} were expected", got.len(), want.len()));
    }
    let pairs = got.chunks(size).zip(want.chunks(size)).enumerate();
    let wrong: Vec<_> = pairs.filter(|(_, (got, want))| !same(dtype, got, want)).collect();
    match wrong.first() {
        None => Ok(()),
        Some((index, (got, want))) => Err(format!(
            "{what}: {} of {} elements differ; element {index}, from {}, is {got:02x?}, expected {want:02x?}",
            wrong.len(),
            want.len() / size,
            from(*index)
        )),
    }
}

async fn run<D: Driver>(
    context: &Context<D>,
    spec: KernelSpec,
    statics: &[(&str, i32)],
    output: &TensorNode,
) -> Result<Vec<u8>, String> {
    let code = context.device().compile(spec).await.map_err(|error| error.to_string())?;
    let routine = context.link(&code).await.map_err(|error| error.to_string())?;
    routine.run_with(statics).map_err(|error| error.to_string())?;
    let read = routine.context().to_host_many(&[output]).await;
    read.map_err(|error| error.to_string()).map(|mut parts| parts.pop().unwrap_or_default())
}

/// Every cast between dtypes, over the edge values; gives the differences.
pub async fn check_casts<D: Driver>(device: &Device<D>) -> Vec<String> {
    let mut wrong = Vec::new();
    for from in DType::ALL {
        let bytes = edge_values(from);
        let size = from.size_bytes() as usize;
        let len = (bytes.len() / size) as u32;
        let x = TensorNode::new("x", from, [len]);
        let context = Context::root(device).init_from_host_many(&[(&x, &bytes)]).unwrap();
        for to in DType::ALL {
            let y = TensorNode::new("y", to, [len]);
            let want: Vec<u8> = bytes.chunks(size).flat_map(|element| cast(decode(from, element), to)).collect();
            let what = format!("cast {from} to {to}");
            let source = |index: usize| format!("{:?}", decode(from, &bytes[index * size..(index + 1) * size]));
            let outcome = match run(&context, kernels::cast(&x, &y).unwrap(), &[], &y).await {
                Ok(got) => compare(&what, to, &got, &want, source),
                Err(error) => Err(format!("{what}: {error}")),
            };
            wrong.extend(outcome.err());
        }
    }
    wrong
}

/// Fills views at odd starts, of every dtype, with edge values.
pub async fn check_fills<D: Driver>(device: &Device<D>) -> Vec<String> {
    let mut wrong = Vec::new();
    for dtype in DType::ALL {
        let size = dtype.size_bytes() as usize;
        let base = TensorNode::new("base", dtype, [310]);
        let x = TensorNode::view("x", &base, 3, [7, 43]);
        let before = vec![1u8; 310 * size];
        let context = Context::root(device).init_from_host_many(&[(&base, &before)]).unwrap();
        let context = context.alias(&[&x]).unwrap();
        for value in [0.0, 1.0, -1.0, 0.1, 5.96e-8, 1e-42, 65520.0, -300.0, 3e9, 1e300, f64::NEG_INFINITY, f64::NAN] {
            let bits = kernels::fill_bits(dtype, value);
            let value = match dtype {
                DType::Bool => Value::Bool(value != 0.0),
                DType::U32 => Value::Integer(value as u32 as i64),
                DType::I32 => Value::Integer(value as i32 as i64),
                _ => Value::Float(value as f32),
            };
            let mut want = before.clone();
            want[3 * size..304 * size].copy_from_slice(&cast(value, dtype).repeat(301));
            let what = format!("fill {dtype} with {value:?}");
            let outcome = match run(&context, kernels::fill(&x), &[("bits", bits)], &base).await {
                Ok(got) => compare(&what, dtype, &got, &want, |_| format!("{bits:#x}")),
                Err(error) => Err(format!("{what}: {error}")),
            };
            wrong.extend(outcome.err());
        }
    }
    wrong
}

/// Bytes whose floats are no NaN, and whose bools are 0 or 1.
fn plain_bytes(random: &mut Random, dtype: DType, len: u64) -> Vec<u8> {
    let size = dtype.size_bytes();
    (0..len * size)
        .map(|index| match dtype {
            DType::Bool => random.below(2) as u8,
            DType::F32 | DType::F16 | DType::BF16 if index % size == size - 1 => random.below(256) as u8 & 0xbf,
            _ => random.below(256) as u8,
        })
        .collect()
}

/// Random blocks by the strided copy kernel, between nodes and within one.
pub async fn check_copies<D: Driver>(device: &Device<D>, rounds: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    for seed in 0..rounds {
        let mut random = Random::new(seed);
        let dtype = DType::ALL[random.below(8) as usize];
        let size = dtype.size_bytes() as usize;
        let axes = random.below(5);
        let halves: Vec<u32> = (0..axes).map(|_| 1 + random.below(5) as u32).collect();
        let shape: Vec<u32> = halves.iter().map(|half| 2 * half + 1).collect();
        let (x, y) = (TensorNode::new("x", dtype, shape.clone()), TensorNode::new("y", dtype, shape.clone()));
        let (from, mut to) =
            (plain_bytes(&mut random, dtype, x.element_len()), plain_bytes(&mut random, dtype, x.element_len()));
        let context = Context::root(device).init_from_host_many(&[(&x, &from), (&y, &to)]).unwrap();
        let span = |random: &mut Random, half: u32, start: u32| match random.below(2) {
            0 => Span { start, extent: half, step: 2 },
            _ => Span { start: 1, extent: half, step: 1 },
        };
        let a: Vec<_> = halves.iter().map(|&half| span(&mut random, half, 0)).collect();
        let b: Vec<_> = halves.iter().map(|&half| span(&mut random, half, 1)).collect();
        let blocks = (Block::new(&x, &a).unwrap(), Block::new(&y, &b).unwrap());
        for (source, target) in indices(&shape, &a).into_iter().zip(indices(&shape, &b)) {
            to[target * size..(target + 1) * size].copy_from_slice(&from[source * size..(source + 1) * size]);
        }
        let spec = kernels::strided_copy(&x, &blocks.0, &y, &blocks.1).unwrap();
        let what = format!("seed {seed}: {dtype}{shape:?} {} to {}", blocks.0, blocks.1);
        let outcome = match run(&context, spec, &[], &y).await {
            Ok(got) => compare(&what, dtype, &got, &to, |_| String::new()),
            Err(error) => Err(format!("{what}: {error}")),
        };
        wrong.extend(outcome.err());
    }
    wrong
}
