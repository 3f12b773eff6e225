//! Fill: one value in every element.

use crate::dtype::DType;
use crate::kernels::elementwise;
use crate::kernels::wide::{Wide, store};
use crate::node::TensorNode;
use crate::wgsl::spec::{Access, KernelSpec};

/// A kernel that writes one value to every element of `node`, which linking creates where the context does not have it.
///
/// The value is the static `bits`, so one compiled kernel fills with anything: the bits of an `f32` for `f32`, `f16` and
/// `bf16` (which round it as [`cast`](crate::kernels::cast) does), the integer for integers (narrow ones keep its low
/// byte), and for `bool` whether it is not 0. [`fill_bits`] gives them.
pub fn fill(node: &TensorNode) -> KernelSpec {
    let dtype = node.dtype();
    let value = match dtype {
        DType::F32 | DType::F16 | DType::BF16 => "bitcast<f32>(static_bits())",
        DType::I32 | DType::I8 => "static_bits()",
        DType::U32 | DType::U8 => "bitcast<u32>(static_bits())",
        DType::Bool => "static_bits() != 0",
    };
    let body = format!("store_x(i, {value});");
    let spec = elementwise(format!("fill {dtype}"), "", &body, node.element_len());
    spec.tensor("x", node, Access::Write).statics(["bits"]).twin(move |args| {
        let bits = args.static_value("bits")?;
        let value = match dtype {
            DType::F32 | DType::F16 | DType::BF16 => Wide::F32(f32::from_bits(bits as u32)),
            DType::I32 | DType::I8 => Wide::I32(bits),
            DType::U32 | DType::U8 => Wide::U32(bits as u32),
            DType::Bool => Wide::Bool(bits != 0),
        };
        let mut bytes = args.bytes("x")?;
        for element in bytes.chunks_exact_mut(dtype.size_bytes() as usize) {
            store(dtype, value, element);
        }
        args.set_bytes("x", &bytes)
    })
}

/// The static `bits` that makes [`fill`] write `value`: rounded to `f32` for floats; for integers truncated toward zero and
/// saturated, a NaN being 0.
pub fn fill_bits(dtype: DType, value: f64) -> i32 {
    match dtype {
        DType::F32 | DType::F16 | DType::BF16 => (value as f32).to_bits() as i32,
        DType::I32 => value as i32,
        DType::U32 => value as u32 as i32,
        DType::I8 => i32::from(value as i8),
        DType::U8 => i32::from(value as u8),
        DType::Bool => i32::from(value != 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_saturate_and_truncate() {
        assert_eq!(fill_bits(DType::F16, 1.5), 0x3fc0_0000);
        assert_eq!(fill_bits(DType::I32, -1e12), i32::MIN);
        assert_eq!(fill_bits(DType::U32, 4_294_967_295.0), -1);
        assert_eq!(fill_bits(DType::I8, -129.0), -128);
        assert_eq!(fill_bits(DType::U8, 2.9), 2);
        assert_eq!(fill_bits(DType::Bool, 0.1), 1);
        assert_eq!(fill_bits(DType::I32, f64::NAN), 0);
    }

    #[test]
    fn a_large_grid_is_folded() {
        let spec = fill(&TensorNode::new("x", DType::F32, [1 << 30]));
        assert_eq!(spec.grid, [65535, 65, 1]);
        assert_eq!(fill(&TensorNode::new("x", DType::F32, [0])).grid, [0, 0, 1]);
    }
}
