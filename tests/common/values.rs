//! Case data to bytes and back, and the comparison of what came with what was expected.

use half::{bf16, f16};
use serde_json::Value;
use wgslab::DType;

fn number(value: &Value) -> Result<f64, String> {
    match value {
        Value::Number(number) => number.as_f64().ok_or_else(|| format!("{number} is no number")),
        Value::Bool(flag) => Ok(f64::from(u8::from(*flag))),
        Value::String(text) => match text.as_str() {
            "inf" => Ok(f64::INFINITY),
            "-inf" => Ok(f64::NEG_INFINITY),
            "nan" => Ok(f64::NAN),
            _ => Err(format!("\"{text}\" is no number")),
        },
        _ => Err(format!("{value} is no number")),
    }
}

/// Little-endian bytes of flat case data.
pub fn encode(dtype: DType, data: &[Value]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(data.len() * dtype.size_bytes() as usize);
    for value in data {
        let number = number(value)?;
        match dtype {
            DType::F32 => out.extend((number as f32).to_le_bytes()),
            DType::F16 => out.extend(f16::from_f64(number).to_le_bytes()),
            DType::BF16 => out.extend(bf16::from_f64(number).to_le_bytes()),
            DType::I32 => out.extend((number as i32).to_le_bytes()),
            DType::U32 => out.extend((number as u32).to_le_bytes()),
            DType::I8 => out.extend((number as i8).to_le_bytes()),
            DType::U8 | DType::Bool => out.push(number as u8),
        }
    }
    Ok(out)
}

fn decode(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    let size = dtype.size_bytes() as usize;
    bytes
        .chunks_exact(size)
        .map(|chunk| {
            let word = chunk.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
            match dtype {
                DType::F32 => f64::from(f32::from_bits(word)),
                DType::F16 => f16::from_bits(word as u16).to_f64(),
                DType::BF16 => bf16::from_bits(word as u16).to_f64(),
                DType::I32 => f64::from(word as i32),
                DType::U32 => f64::from(word),
                DType::I8 => f64::from(word as u8 as i8),
                DType::U8 | DType::Bool => f64::from(word as u8),
            }
        })
        .collect()
}

/// Compares bytes with expected data: `|got - want| <= atol + rtol * |want|`, integers exactly. Gives the largest
/// error.
pub fn compare(dtype: DType, got: &[u8], want: &[Value], rtol: f64, atol: f64) -> Result<f64, String> {
    let exact = !matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
    let got = decode(dtype, got);
    if got.len() != want.len() {
        return Err(format!("{} elements came, {} were expected", got.len(), want.len()));
    }
    let mut max_error = 0.0f64;
    for (index, (got, want)) in got.iter().zip(want).enumerate() {
        let want = number(want)?;
        let error = (got - want).abs();
        // A decimal stands for the nearest value of the type.
        let nearest = if dtype == DType::F32 { f64::from(want as f32) } else { want };
        let equal = *got == want || *got == nearest || (got.is_nan() && want.is_nan());
        let close = !exact && error <= atol + rtol * want.abs();
        if !(equal || close) {
            return Err(format!("element {index} is {got}, expected {want}"));
        }
        if !equal {
            max_error = max_error.max(error);
        }
    }
    Ok(max_error)
}
