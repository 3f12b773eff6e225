//! Cast: every element as another dtype.

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::kernels::wide::{convert, load, store};
use crate::kernels::{check_apart, elementwise};
use crate::node::TensorNode;
use crate::wgsl::spec::{Access, KernelSpec};

/// Whether a float is NaN, infinite or too large is asked of its bits: what arithmetic does with such values, drivers do
/// not agree on.
const TRUNCATE: &str = "fn to_i32(v: f32) -> i32 {
  let a = bitcast<u32>(v) & 0x7fffffffu;
  if (a > 0x7f800000u) { return 0; }
  if (a >= 0x4f000000u) { return bitcast<i32>(0x7fffffffu + (bitcast<u32>(v) >> 31u)); }
  return i32(v);
}
fn to_u32(v: f32) -> u32 {
  let a = bitcast<u32>(v);
  if (a > 0x7f800000u) { return 0u; }
  if (a >= 0x4f800000u) { return 0xffffffffu; }
  return u32(v);
}
";

/// To nearest even: the integer is rounded to the 24 bits of a float before it becomes one, since WGSL leaves open how
/// `f32` rounds.
const ROUND: &str = "fn from_u32(v: u32) -> f32 {
  let zeros = countLeadingZeros(v);
  if (zeros >= 8u) { return f32(v); }
  let shift = 8u - zeros;
  let half = 1u << (shift - 1u);
  let rest = v & ((1u << shift) - 1u);
  let q = v >> shift;
  let up = rest > half || (rest == half && (q & 1u) == 1u);
  return f32(q + select(0u, 1u, up)) * f32(1u << shift);
}
fn from_i32(v: i32) -> f32 {
  let f = from_u32(select(bitcast<u32>(v), 0u - bitcast<u32>(v), v < 0));
  return select(f, -f, v < 0);
}
";

/// A kernel that writes every element of `src` as `dst`'s dtype; linking creates `dst` where the context does not have it.
///
/// | from | to | gives |
/// | --- | --- | --- |
/// | float | integer | truncated toward zero, saturated at the ends of the destination; NaN is 0 |
/// | float | `f16`, `bf16` | to nearest even, subnormals too; what is too large is infinite; NaN stays a NaN |
/// | `i32`, `u32` | float | to nearest even in `f32`, then in the destination |
/// | integer | integer | the low bits: it wraps |
/// | any | `bool` | whether it is not 0; a NaN is not |
/// | `bool` | any | 0 or 1 |
///
/// # Errors
/// `ShapeMismatch` for nodes of different shapes; `KernelInterface` for different views that overlap.
pub fn cast(src: &TensorNode, dst: &TensorNode) -> Result<KernelSpec> {
    if src.shape() != dst.shape() {
        let message = format!(
            "a cast from node {src} of shape {:?} to node {dst} of shape {:?}; make the shapes the same",
            src.shape(),
            dst.shape()
        );
        return Err(Error::new(ErrorKind::ShapeMismatch, message));
    }
    let len = src.element_len();
    check_apart((src, 0, len), (dst, 0, len))?;
    let (from, to) = (src.dtype(), dst.dtype());
    let (functions, value) = conversion(from, to);
    let body = format!("let v = load_x(i); store_y(i, {value});");
    let spec = elementwise(format!("cast {from} to {to}"), functions, &body, len);
    Ok(spec.tensor("x", src, Access::Read).tensor("y", dst, Access::Write).twin(move |args| {
        let (x, mut y) = (args.bytes("x")?, args.bytes("y")?);
        let (wide, narrow) = (from.size_bytes() as usize, to.size_bytes() as usize);
        for (x, y) in x.chunks_exact(wide).zip(y.chunks_exact_mut(narrow)) {
            store(to, convert(load(from, x), to), y);
        }
        args.set_bytes("y", &y)
    }))
}

/// The functions and the expression that give `v`, of the wide type of `from`, in the wide type of `to`.
fn conversion(from: DType, to: DType) -> (&'static str, &'static str) {
    let (wide, other) = (from.wide_wgsl(), to.wide_wgsl());
    match (wide, other) {
        ("f32", "i32") if to == DType::I8 => (TRUNCATE, "clamp(to_i32(v), -128, 127)"),
        ("f32", "i32") => (TRUNCATE, "to_i32(v)"),
        ("f32", "u32") if to == DType::U8 => (TRUNCATE, "min(to_u32(v), 255u)"),
        ("f32", "u32") => (TRUNCATE, "to_u32(v)"),
        ("i32", "f32") => (ROUND, "from_i32(v)"),
        ("u32", "f32") => (ROUND, "from_u32(v)"),
        ("i32", "u32") => ("", "bitcast<u32>(v)"),
        ("u32", "i32") => ("", "bitcast<i32>(v)"),
        ("bool", "f32") => ("", "select(0.0, 1.0, v)"),
        ("bool", "i32") => ("", "select(0, 1, v)"),
        ("bool", "u32") => ("", "select(0u, 1u, v)"),
        ("f32", "bool") => ("", "(bitcast<u32>(v) & 0x7fffffffu) != 0u"),
        ("i32", "bool") => ("", "v != 0"),
        ("u32", "bool") => ("", "v != 0u"),
        _ => ("", "v"),
    }
}
