//! Elements as they lie in memory and as expressions see them: the 32 bits of the type that a dtype is read as.

use crate::driver::host::nest::lanes::{LANES, Lanes};
use crate::dtype::DType;
use crate::notation::program::Ty;

/// The element at an offset, in elements; 0 outside, where nothing that was checked reads.
pub(super) fn read_one(dtype: DType, memory: &[u8], offset: i64) -> u32 {
    let size = dtype.size_bytes() as usize;
    let start = (offset as usize).wrapping_mul(size);
    let Some(bytes) = start.checked_add(size).and_then(|end| memory.get(start..end)) else { return 0 };
    match *bytes {
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
        [a, b] if dtype == DType::F16 => widen_f16(u16::from_le_bytes([a, b])),
        [a, b] => u32::from(u16::from_le_bytes([a, b])) << 16,
        [a] if dtype == DType::I8 => i32::from(a as i8) as u32,
        [a] if dtype == DType::Bool => u32::from(a != 0),
        [a] => u32::from(a),
        _ => 0,
    }
}

/// The elements from an offset on, so many apart.
pub(super) fn read(dtype: DType, memory: &[u8], start: i64, step: i64, count: usize) -> Lanes {
    let mut out = [0; LANES];
    if step == 0 {
        return [read_one(dtype, memory, start); LANES];
    }
    if step == 1 && dtype.size_bytes() == 4 {
        let first = (start as usize).wrapping_mul(4);
        if let Some(bytes) = first.checked_add(count * 4).and_then(|end| memory.get(first..end)) {
            for (out, word) in out.iter_mut().zip(bytes.chunks_exact(4)) {
                *out = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            }
            return out;
        }
    }
    for (lane, out) in out[..count].iter_mut().enumerate() {
        *out = read_one(dtype, memory, start + step * lane as i64);
    }
    out
}

/// Writes an element.
pub(super) fn write_one(dtype: DType, memory: &mut [u8], offset: usize, bits: u32) {
    let size = dtype.size_bytes() as usize;
    let Some(bytes) = memory.get_mut(offset * size..(offset + 1) * size) else { return };
    match dtype {
        DType::F32 | DType::I32 | DType::U32 => bytes.copy_from_slice(&bits.to_le_bytes()),
        DType::F16 => bytes.copy_from_slice(&narrow_f16(bits).to_le_bytes()),
        DType::BF16 => bytes.copy_from_slice(&narrow_bf16(bits).to_le_bytes()),
        DType::I8 | DType::U8 => bytes.copy_from_slice(&[bits as u8]),
        DType::Bool => bytes.copy_from_slice(&[u8::from(bits != 0)]),
    }
}

/// Conversion to a dtype and back to the type that it is read as.
pub(super) fn cast(to: DType, from: Ty) -> fn(u32) -> u32 {
    match (to, from) {
        (DType::Bool, Ty::F32) => |a| u32::from(f32::from_bits(a) != 0.0),
        (DType::Bool, _) => |a| u32::from(a != 0),
        (DType::F32, Ty::F32) => |a| a,
        (DType::F32, Ty::I32) => |a| (a as i32 as f32).to_bits(),
        (DType::F32, _) => |a| (a as f32).to_bits(),
        (DType::F16, Ty::F32) => |a| widen_f16(narrow_f16(a)),
        (DType::F16, Ty::I32) => |a| widen_f16(narrow_f16((a as i32 as f32).to_bits())),
        (DType::F16, _) => |a| widen_f16(narrow_f16((a as f32).to_bits())),
        (DType::BF16, Ty::F32) => |a| u32::from(narrow_bf16(a)) << 16,
        (DType::BF16, Ty::I32) => |a| u32::from(narrow_bf16((a as i32 as f32).to_bits())) << 16,
        (DType::BF16, _) => |a| u32::from(narrow_bf16((a as f32).to_bits())) << 16,
        (DType::I32, Ty::F32) => |a| f32::from_bits(a) as i32 as u32,
        (DType::U32, Ty::F32) => |a| f32::from_bits(a) as u32,
        (DType::I8, Ty::F32) => |a| i32::from(f32::from_bits(a) as i8) as u32,
        (DType::U8, Ty::F32) => |a| u32::from(f32::from_bits(a) as u8),
        (DType::I32 | DType::U32, _) => |a| a,
        (DType::I8, _) => |a| i32::from(a as i8) as u32,
        (DType::U8, _) => |a| a & 0xff,
    }
}

/// The f32 of an f16, as bits.
fn widen_f16(half: u16) -> u32 {
    let (sign, rest) = (u32::from(half & 0x8000) << 16, u32::from(half & 0x7fff));
    match rest {
        // Subnormal: a multiple of 2^-24.
        0..0x400 => sign | (rest as f32 / 16_777_216.0).to_bits(),
        0x7c00.. => sign | 0x7f80_0000 | (rest & 0x3ff) << 13,
        _ => sign | ((rest << 13) + 0x3800_0000),
    }
}

/// The nearest f16 of an f32, half to even.
fn narrow_f16(bits: u32) -> u16 {
    let (sign, rest) = ((bits >> 16) as u16 & 0x8000, bits & 0x7fff_ffff);
    let half = match rest {
        0x7f80_0001.. => 0x7e00,
        // From 65520 on the nearest is infinity.
        0x477f_f000.. => 0x7c00,
        // Below 2^-14 the result counts multiples of 2^-24.
        0..0x3880_0000 => (f32::from_bits(rest) * 16_777_216.0).round_ties_even() as u32,
        _ => (rest + 0xfff + ((rest >> 13) & 1) - 0x3800_0000) >> 13,
    };
    sign | half as u16
}

/// The nearest bf16 of an f32, half to even.
fn narrow_bf16(bits: u32) -> u16 {
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        return 0x7fc0;
    }
    ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_are_those_of_the_half_crate() {
        for bits in 0..=u16::MAX {
            let want = half::f16::from_bits(bits);
            let got = f32::from_bits(widen_f16(bits));
            assert!(got == want.to_f32() || got.is_nan() && want.is_nan(), "{bits:#x}");
        }
        for step in 0..2_000_000u32 {
            let bits = step.wrapping_mul(2_654_435_761);
            let value = f32::from_bits(bits);
            if !value.is_nan() {
                assert_eq!(narrow_f16(bits), half::f16::from_f32(value).to_bits(), "{value}");
                assert_eq!(narrow_bf16(bits), half::bf16::from_f32(value).to_bits(), "{value}");
            }
        }
    }

    #[test]
    fn floats_become_integers_by_truncation_and_saturate() {
        let to = |dtype, value: f32| cast(dtype, Ty::F32)(value.to_bits());
        assert_eq!((to(DType::I32, -1.9) as i32, to(DType::I32, 3e9) as i32), (-1, i32::MAX));
        assert_eq!((to(DType::U32, -1.0), to(DType::U32, f32::NAN), to(DType::U8, 300.0)), (0, 0, 255));
        assert_eq!(cast(DType::I8, Ty::I32)(200) as i32, -56);
    }
}
