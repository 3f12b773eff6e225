//! The element types of tensors.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::error::{Error, ErrorKind};

/// The type of one element as it lies in memory, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16; kernels compute in `f32`.
    F16,
    /// The upper half of a binary32; kernels compute in `f32`.
    BF16,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// Signed byte; kernels compute in `i32`.
    I8,
    /// Unsigned byte; kernels compute in `u32`.
    U8,
    /// One byte, 0 or 1.
    Bool,
}

impl DType {
    /// Every type, in the order of declaration.
    pub const ALL: [DType; 8] =
        [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32, DType::I8, DType::U8, DType::Bool];

    /// Bytes of one element.
    pub const fn size_bytes(self) -> u64 {
        match self {
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 | DType::BF16 => 2,
            DType::I8 | DType::U8 | DType::Bool => 1,
        }
    }

    /// The name in notation, in case files and in JavaScript.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::I8 => "i8",
            DType::U8 => "u8",
            DType::Bool => "bool",
        }
    }

    /// The WGSL type that a kernel sees when it reads an element.
    pub const fn wide_wgsl(self) -> &'static str {
        match self {
            DType::F32 | DType::F16 | DType::BF16 => "f32",
            DType::I32 | DType::I8 => "i32",
            DType::U32 | DType::U8 => "u32",
            DType::Bool => "bool",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == text).ok_or_else(|| {
            Error::say(
                ErrorKind::DTypeMismatch,
                format_args!("unknown dtype \"{text}\"; use one of f32, f16, bf16, i32, u32, i8, u8, bool"),
            )
        })
    }
}
