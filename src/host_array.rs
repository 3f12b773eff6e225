//! What the caller holds: plain slices whose element type has a [`DType`].

use crate::dtype::DType;

/// A Rust type whose slices can be uploaded to, and read back from, nodes of [`Element::DTYPE`].
///
/// `u16` stands for the bits of `f16` and `bf16`, and `u8` for `bool` too: see [`Element::fits`].
pub trait Element: bytemuck::Pod + Send + Sync {
    /// The dtype that this type is.
    const DTYPE: DType;

    /// Whether a slice of this type can hold the elements of a node of that dtype.
    fn fits(dtype: DType) -> bool {
        dtype == Self::DTYPE
    }
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
}

impl Element for i32 {
    const DTYPE: DType = DType::I32;
}

impl Element for u32 {
    const DTYPE: DType = DType::U32;
}

impl Element for i8 {
    const DTYPE: DType = DType::I8;
}

impl Element for u8 {
    const DTYPE: DType = DType::U8;

    fn fits(dtype: DType) -> bool {
        matches!(dtype, DType::U8 | DType::Bool)
    }
}

impl Element for u16 {
    const DTYPE: DType = DType::F16;

    fn fits(dtype: DType) -> bool {
        matches!(dtype, DType::F16 | DType::BF16)
    }
}
