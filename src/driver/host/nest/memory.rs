//! Elements as they lie in memory and as steps see them: the 32 bits of the type that a dtype is read as.

use crate::dtype::DType;

/// The element at an offset, in elements; 0 outside, where nothing that is used reads.
pub(super) fn read(dtype: DType, memory: &[u8], offset: u32) -> u32 {
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

/// The words from an offset on; false where these are not words, or not all there.
pub(super) fn read_words(dtype: DType, memory: &[u8], start: u32, out: &mut [u32]) -> bool {
    let first = (start as usize).wrapping_mul(4);
    let bytes = first.checked_add(out.len() * 4).and_then(|end| memory.get(first..end));
    let Some(bytes) = bytes.filter(|_| dtype.size_bytes() == 4) else { return false };
    for (out, word) in out.iter_mut().zip(bytes.as_chunks().0) {
        *out = u32::from_le_bytes(*word);
    }
    true
}

/// Writes an element.
pub(super) fn write(dtype: DType, memory: &mut [u8], offset: u32, bits: u32) {
    let size = dtype.size_bytes() as usize;
    let Some(bytes) = memory.get_mut(offset as usize * size..(offset as usize + 1) * size) else { return };
    match dtype {
        DType::F32 | DType::I32 | DType::U32 => bytes.copy_from_slice(&bits.to_le_bytes()),
        DType::F16 => bytes.copy_from_slice(&narrow_f16(bits).to_le_bytes()),
        DType::BF16 => bytes.copy_from_slice(&narrow_bf16(bits).to_le_bytes()),
        DType::I8 | DType::U8 => bytes.copy_from_slice(&[bits as u8]),
        DType::Bool => bytes.copy_from_slice(&[u8::from(bits != 0)]),
    }
}

/// The f32 of an f16, as bits.
pub(super) fn widen_f16(half: u16) -> u32 {
    let (sign, rest) = (u32::from(half & 0x8000) << 16, u32::from(half & 0x7fff));
    match rest {
        // Subnormal: a multiple of 2^-24.
        0..0x400 => sign | (rest as f32 / 16_777_216.0).to_bits(),
        0x7c00.. => sign | 0x7f80_0000 | (rest & 0x3ff) << 13,
        _ => sign | ((rest << 13) + 0x3800_0000),
    }
}

/// The nearest f16 of an f32, half to even.
pub(super) fn narrow_f16(bits: u32) -> u16 {
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
pub(super) fn narrow_bf16(bits: u32) -> u16 {
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
}
