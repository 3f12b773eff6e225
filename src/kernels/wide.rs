//! One element on the host as a kernel sees it, and the conversions between dtypes, to the bit as the kernels do them.

use crate::dtype::DType;

/// An element in the type that kernels compute in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wide {
    F32(f32),
    I32(i32),
    U32(u32),
    Bool(bool),
}

/// The element in those bytes.
pub(super) fn load(dtype: DType, bytes: &[u8]) -> Wide {
    let word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
    match dtype {
        DType::F32 => Wide::F32(f32::from_bits(word)),
        DType::F16 => Wide::F32(from_f16(word)),
        DType::BF16 => Wide::F32(f32::from_bits(word << 16)),
        DType::I32 => Wide::I32(word as i32),
        DType::I8 => Wide::I32(i32::from(word as i8)),
        DType::U32 | DType::U8 => Wide::U32(word),
        DType::Bool => Wide::Bool(word != 0),
    }
}

/// Puts an element of the dtype's wide type into its bytes.
pub(super) fn store(dtype: DType, value: Wide, bytes: &mut [u8]) {
    let word = match (dtype, value) {
        (DType::F16, Wide::F32(value)) => to_f16(value),
        (DType::BF16, Wide::F32(value)) => to_bf16(value),
        (_, Wide::F32(value)) => value.to_bits(),
        (_, Wide::I32(value)) => value as u32,
        (_, Wide::U32(value)) => value,
        (_, Wide::Bool(value)) => u32::from(value),
    };
    bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
}

/// The element in the wide type of `to`.
pub(super) fn convert(value: Wide, to: DType) -> Wide {
    match to {
        DType::F32 | DType::F16 | DType::BF16 => Wide::F32(match value {
            Wide::F32(value) => value,
            Wide::I32(value) => value as f32,
            Wide::U32(value) => value as f32,
            Wide::Bool(value) => f32::from(u8::from(value)),
        }),
        DType::I32 | DType::I8 => Wide::I32(match value {
            Wide::F32(value) if to == DType::I8 => i32::from(value as i8),
            Wide::F32(value) => value as i32,
            Wide::I32(value) => value,
            Wide::U32(value) => value as i32,
            Wide::Bool(value) => i32::from(value),
        }),
        DType::U32 | DType::U8 => Wide::U32(match value {
            Wide::F32(value) if to == DType::U8 => u32::from(value as u8),
            Wide::F32(value) => value as u32,
            Wide::I32(value) => value as u32,
            Wide::U32(value) => value,
            Wide::Bool(value) => u32::from(value),
        }),
        DType::Bool => Wide::Bool(match value {
            Wide::F32(value) => value != 0.0,
            Wide::I32(value) => value != 0,
            Wide::U32(value) => value != 0,
            Wide::Bool(value) => value,
        }),
    }
}

fn from_f16(bits: u32) -> f32 {
    let sign = (bits & 0x8000) << 16;
    let magnitude = bits & 0x7fff;
    match magnitude {
        // The mantissa counts multiples of 2^-24.
        0..0x400 => f32::from_bits(sign | (magnitude as f32 / 16_777_216.0).to_bits()),
        0x400..0x7c00 => f32::from_bits(sign | ((magnitude << 13) + 0x3800_0000)),
        _ => f32::from_bits(sign | 0x7f80_0000 | (magnitude & 0x3ff) << 13),
    }
}

/// As `wgslab_f16` of the generated accessors.
fn to_f16(value: f32) -> u32 {
    let sign = (value.to_bits() >> 16) & 0x8000;
    let magnitude = value.to_bits() & 0x7fff_ffff;
    sign | match magnitude {
        0..0x3880_0000 => (f32::from_bits(magnitude) * 16_777_216.0).round_ties_even() as u32,
        0x3880_0000..0x477f_f000 => (magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x3800_0000) >> 13,
        0x477f_f000..0x7f80_0001 => 0x7c00,
        _ => 0x7e00,
    }
}

/// As the generated accessors of `bf16`.
fn to_bf16(value: f32) -> u32 {
    let bits = value.to_bits();
    if value.is_nan() { 0x7fc0 } else { (bits + 0x7fff + ((bits >> 16) & 1)) >> 16 }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    /// Bits of floats around every exponent, and at the ties of both narrow types.
    fn floats() -> impl Iterator<Item = f32> {
        let mantissas =
            [0, 1, 0xfff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x3001, 0x7fff, 0x8000, 0x8001, 0x18000, 0x7f_ffff];
        (0..512u32).flat_map(move |top| mantissas.map(|mantissa| f32::from_bits(top << 23 | mantissa)))
    }

    #[test]
    fn narrow_floats_round_as_half_does() {
        for value in floats().filter(|value| !value.is_nan()) {
            assert_eq!(to_f16(value), u32::from(f16::from_f32(value).to_bits()), "{value:e}");
            assert_eq!(to_bf16(value), u32::from(bf16::from_f32(value).to_bits()), "{value:e}");
        }
        assert_eq!((to_f16(-f32::NAN), to_bf16(f32::NAN)), (0xfe00, 0x7fc0));
    }

    #[test]
    fn every_f16_is_read_as_half_does() {
        for bits in 0..=u16::MAX {
            let (got, want) = (from_f16(u32::from(bits)), f16::from_bits(bits).to_f32());
            assert!(got == want || (got.is_nan() && want.is_nan()), "{bits:#06x}");
            assert_eq!(got.is_sign_negative(), want.is_sign_negative(), "{bits:#06x}");
        }
    }

    #[test]
    fn conversions_truncate_saturate_and_wrap() {
        let f = |value, to| convert(Wide::F32(value), to);
        assert_eq!(f(-1.9, DType::I32), Wide::I32(-1));
        assert_eq!((f(300.0, DType::I8), f(-0.5, DType::U8)), (Wide::I32(127), Wide::U32(0)));
        assert_eq!((f(f32::NAN, DType::U32), f(f32::INFINITY, DType::U32)), (Wide::U32(0), Wide::U32(u32::MAX)));
        assert_eq!((f(f32::NAN, DType::Bool), f(-0.0, DType::Bool)), (Wide::Bool(true), Wide::Bool(false)));
        assert_eq!(convert(Wide::I32(-1), DType::U32), Wide::U32(u32::MAX));
        let mut byte = [0];
        store(DType::I8, convert(Wide::I32(384), DType::I8), &mut byte);
        assert_eq!(byte, [0x80]);
    }
}
