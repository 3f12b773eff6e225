//! The generated part of a raw kernel's module: bindings, parameters and accessors.
//!
//! It stands behind the author's text (WGSL does not mind the order), so that the author's lines and columns are those
//! of the module, and directives of the author's stay first.

use std::fmt::Write;

use crate::dtype::DType;
use crate::wgsl::bind_plan::Pattern;
use crate::wgsl::spec::{Access, KernelSpec, KernelTensor};

/// The whole module for a pattern of bindings.
pub fn module_text(spec: &KernelSpec, pattern: &Pattern) -> String {
    let mut out = String::with_capacity(spec.text.len() + 512 + 192 * spec.tensors.len());
    out.push_str(&spec.text);
    out.push_str("\n\n// Generated: bindings and accessors.\n");
    let bindings = binding_types(spec, pattern);
    for (binding, (kind, read_only)) in bindings.iter().zip(&pattern.read_only).enumerate() {
        let mode = if *read_only { "read" } else { "read_write" };
        let element = kind.element();
        let _ = writeln!(
            out,
            "@group(0) @binding({binding}) var<storage, {mode}> wgslab_heap_{binding}: array<{element}>;"
        );
    }
    let vectors = param_slot_bytes(spec) / 16;
    let _ = writeln!(out, "@group(1) @binding(0) var<uniform> wgslab_params: array<vec4<u32>, {vectors}>;");
    for ((word, tensor), binding) in spec.tensors.iter().enumerate().zip(pattern.bindings()) {
        let offset = if pattern.is_direct { "0u".to_owned() } else { param_word(word) };
        tensor_accessors(&mut out, tensor, offset, binding, bindings[binding], nest_of(spec));
    }
    let is_f16 = |tensor: &KernelTensor| tensor.node.dtype() == DType::F16 && tensor.access.writes();
    if spec.tensors.iter().any(is_f16) {
        out.push_str(F16_BITS);
    }
    let is_atomic_f32 = |tensor: &KernelTensor| tensor.node.dtype() == DType::F32 && tensor.access == Access::Atomic;
    if spec.tensors.iter().any(is_atomic_f32) {
        out.push_str(NAN);
    }
    for (index, name) in spec.statics.iter().enumerate() {
        let word = param_word(spec.tensors.len() + index);
        let _ = writeln!(out, "fn static_{name}() -> i32 {{ return bitcast<i32>({word}); }}");
    }
    out
}

/// Bytes of the parameter block, in the 256-byte steps of dynamic offsets.
pub fn param_slot_bytes(spec: &KernelSpec) -> u64 {
    (spec.param_words() as u64 * 4).max(1).next_multiple_of(256)
}

/// To nearest even, by integers: `pack2x16float` of what f16 cannot hold is whatever the driver likes (NaN in Chromium on
/// SwiftShader). Above 65520 is infinity; below 2^-14 the mantissa counts multiples of 2^-24.
const F16_BITS: &str = "fn wgslab_f16(v: f32) -> u32 {
  let sign = (bitcast<u32>(v) >> 16u) & 0x8000u;
  let a = bitcast<u32>(v) & 0x7fffffffu;
  let small = u32(round(bitcast<f32>(a) * 16777216.0));
  let bits = select((a + 0xfffu + ((a >> 13u) & 1u) - 0x38000000u) >> 13u, small, a < 0x38800000u);
  return sign | select(select(bits, 0x7c00u, a >= 0x477ff000u), 0x7e00u, a > 0x7f800000u);
}
";

const NAN: &str = "fn wgslab_nan(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }\n";

/// What a binding is declared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BindingType {
    /// It has no tensors yet.
    Open,
    /// All its tensors have this 32-bit type.
    Plain(DType),
    /// All its tensors are floats, and a program takes some by fours.
    Vectors,
    /// Mixed or narrow types: words, reinterpreted.
    Words,
    /// Something is written atomically or narrower than a word.
    Atomic,
}

impl BindingType {
    fn element(self) -> &'static str {
        match self {
            BindingType::Plain(dtype) => dtype.name(),
            BindingType::Vectors => "vec4<f32>",
            BindingType::Open | BindingType::Words => "u32",
            BindingType::Atomic => "atomic<u32>",
        }
    }
}

/// Whether a kernel is a program's, and whether it takes floats by fours.
#[cfg(feature = "notation")]
fn nest_of(spec: &KernelSpec) -> (bool, bool) {
    spec.nest.as_ref().map_or((false, false), |nest| (true, nest.by_fours))
}

/// All kernels are raw.
#[cfg(not(feature = "notation"))]
fn nest_of(_: &KernelSpec) -> (bool, bool) {
    (false, false)
}

fn binding_types(spec: &KernelSpec, pattern: &Pattern) -> Vec<BindingType> {
    let mut types = vec![BindingType::Open; pattern.read_only.len()];
    for (tensor, binding) in spec.tensors.iter().zip(pattern.bindings()) {
        let narrow = tensor.node.dtype().size_bytes() < 4;
        let wanted = if tensor.access == Access::Atomic || (narrow && tensor.access.writes()) {
            BindingType::Atomic
        } else if narrow {
            BindingType::Words
        } else {
            BindingType::Plain(tensor.node.dtype())
        };
        let have = &mut types[binding];
        if *have == BindingType::Open || wanted == BindingType::Atomic {
            *have = wanted;
        } else if *have != wanted && *have != BindingType::Atomic {
            *have = BindingType::Words;
        }
    }
    for kind in &mut types {
        if *kind == BindingType::Plain(DType::F32) && nest_of(spec).1 {
            *kind = BindingType::Vectors;
        }
    }
    types
}

fn param_word(word: usize) -> String {
    format!("wgslab_params[{}].{}", word / 4, ["x", "y", "z", "w"][word % 4])
}

/// What the accessors of a tensor are made of.
struct Accessors<'a> {
    name: &'a str,
    wide: &'static str,
    heap: String,
    offset: String,
    /// Whether they look whether an element is in range.
    is_guarded: bool,
    /// The word of element `e`, and where it is in the heap.
    word: &'static str,
    index: &'static str,
    /// The bits of an element in its word: the first one, and all.
    lane: &'static str,
    mask: &'static str,
}

impl Accessors<'_> {
    /// Appends a pattern, in which `$` and a letter stand for a part.
    fn fill(&self, out: &mut String, pattern: &str, value: &str) {
        let mut is_part = false;
        for (at, byte) in pattern.bytes().enumerate() {
            if is_part {
                let part = match byte {
                    b'n' => self.name,
                    b'w' => self.wide,
                    b'h' => &self.heap,
                    b'o' => &self.offset,
                    b'g' if !self.is_guarded => "",
                    b'g' => "if (i >= len_$n) { return; } ",
                    b'x' => self.word,
                    b'i' => self.index,
                    b'l' => self.lane,
                    b'm' => self.mask,
                    _ => value,
                };
                self.fill(out, part, value);
            } else if byte != b'$' {
                out.push_str(pattern.get(at..=at).unwrap_or_default());
            }
            is_part = byte == b'$';
        }
    }
}

fn tensor_accessors(
    out: &mut String,
    tensor: &KernelTensor,
    offset: String,
    binding: usize,
    kind: BindingType,
    nest: (bool, bool),
) {
    let KernelTensor { name, node, access, .. } = tensor;
    let dtype = node.dtype();
    let (lane, mask, index) = match dtype.size_bytes() {
        4 => ("", "", "e"),
        2 => ("(e & 1u) * 16u", "0xffffu", "e >> 1u"),
        _ => ("(e & 3u) * 8u", "0xffu", "e >> 2u"),
    };
    let accessors = Accessors {
        name,
        wide: dtype.wide_wgsl(),
        heap: format!("wgslab_heap_{binding}"),
        offset,
        // What programs read and write is in range: the checker saw to it. WebGPU keeps them in the heap whatever happens.
        is_guarded: !nest.0,
        word: match kind {
            BindingType::Vectors => "$h[e >> 2u][e & 3u]",
            BindingType::Atomic => "atomicLoad(&$h[$i])",
            _ => "$h[$i]",
        },
        index,
        lane,
        mask,
    };
    let _ = writeln!(out, "const len_{name}: u32 = {}u;", node.element_len());
    for (axis, extent) in node.shape().iter().enumerate() {
        let _ = writeln!(out, "const dim_{name}_{axis}: u32 = {extent}u;");
    }
    let (by_fours, is_vectors) = (nest.1 && dtype == DType::F32, kind == BindingType::Vectors);
    if access.reads() {
        // Without a branch: many in a loop take SwiftShader's compiler no end.
        let load = if accessors.is_guarded {
            "fn load_$n(i: u32) -> $w { let e = $o + min(i, max(len_$n, 1u) - 1u); return select($v, $w(), i >= len_$n); }\n"
        } else {
            "fn load_$n(i: u32) -> $w { let e = $o + i; return $v; }\n"
        };
        accessors.fill(out, load, load_expression(dtype, kind));
    }
    if access.reads() && by_fours {
        let value = if is_vectors {
            "$h[($o + i) >> 2u]"
        } else {
            "vec4(load_$n(i), load_$n(i + 1u), load_$n(i + 2u), load_$n(i + 3u))"
        };
        accessors.fill(out, "fn load4_$n(i: u32) -> vec4<f32> { return $v; }\n", value);
    }
    if access.writes() && by_fours {
        let store = if is_vectors {
            "$h[($o + i) >> 2u] = v;"
        } else {
            "store_$n(i, v.x); store_$n(i + 1u, v.y); store_$n(i + 2u, v.z); store_$n(i + 3u, v.w);"
        };
        accessors.fill(out, "fn store4_$n(i: u32, v: vec4<f32>) { $v }\n", store);
    }
    if access.writes() {
        accessors.fill(out, "fn store_$n(i: u32, v: $w) { $g", "");
        accessors.fill(out, "let e = $o + i; ", "");
        // Each element is written by one invocation, but its neighbours in the word by others: clear the lane, then set
        // it, atomically. No invocation ever sees another's lane change under it.
        let store = match kind {
            _ if !mask.is_empty() => {
                "let s = $l; let b = $v & $m; atomicAnd(&$h[$i], ~($m << s)); atomicOr(&$h[$i], b << s);"
            }
            BindingType::Atomic => "atomicStore(&$h[e], bitcast<u32>(v));",
            BindingType::Vectors => "$x = v;",
            BindingType::Plain(_) => "$h[e] = v;",
            _ => "$h[e] = bitcast<u32>(v);",
        };
        let bits = match dtype {
            DType::F16 => "wgslab_f16(v)",
            // To nearest even, by integers; a NaN must not round to infinity.
            DType::BF16 => {
                "select((bitcast<u32>(v) + 0x7fffu + ((bitcast<u32>(v) >> 16u) & 1u)) >> 16u, 0x7fc0u, \
                 (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u)"
            }
            DType::Bool => "select(0u, 1u, v)",
            _ => "(bitcast<u32>(v) & 0xffu)",
        };
        accessors.fill(out, store, bits);
        accessors.fill(out, " }\n", "");
    }
    if *access == Access::Atomic {
        for verb in ["add", "mul", "max", "min"] {
            let _ = write!(out, "fn atomic_{verb}");
            accessors.fill(out, "_$n(i: u32, v: $w) -> $w { if (i >= len_$n) { return $w(); } let e = $o + i; ", "");
            let (body, operation) = atomic_body(dtype, verb);
            accessors.fill(out, body, operation);
            accessors.fill(out, " }\n", "");
        }
    }
}

fn load_expression(dtype: DType, kind: BindingType) -> &'static str {
    match dtype {
        _ if matches!(kind, BindingType::Plain(_) | BindingType::Vectors) => "$x",
        DType::F32 => "bitcast<f32>($x)",
        DType::I32 => "bitcast<i32>($x)",
        DType::U32 => "$x",
        DType::F16 => "unpack2x16float($x >> ($l)).x",
        DType::BF16 => "bitcast<f32>(($x >> ($l)) << 16u)",
        DType::I8 => "extractBits(bitcast<i32>($x), $l, 8u)",
        DType::U8 => "extractBits($x, $l, 8u)",
        DType::Bool => "extractBits($x, $l, 8u) != 0u",
    }
}

/// What an atomic accessor does, with the function or the operation in it.
fn atomic_body(dtype: DType, verb: &str) -> (&'static str, &'static str) {
    let function = match verb {
        "add" => "atomicAdd",
        "max" => "atomicMax",
        _ => "atomicMin",
    };
    match (dtype, verb) {
        (DType::U32, "add" | "max" | "min") => return ("return $v(&$h[e], v);", function),
        (DType::I32, "add") => return ("return bitcast<i32>($v(&$h[e], bitcast<u32>(v)));", function),
        _ => {}
    }
    let operation = match verb {
        "add" => "a + v",
        "mul" => "a * v",
        // The other operand of a NaN.
        "max" if dtype == DType::F32 => "select(a, v, (v > a) | wgslab_nan(a))",
        "min" if dtype == DType::F32 => "select(a, v, (v < a) | wgslab_nan(a))",
        "max" => "max(a, v)",
        _ => "min(a, v)",
    };
    // The heap is unsigned words: everything else exchanges until nobody came between.
    let body = "var old = atomicLoad(&$h[e]); loop { let a = bitcast<$w>(old); \
                let r = atomicCompareExchangeWeak(&$h[e], old, bitcast<u32>($v)); \
                if (r.exchanged) { break; } old = r.old_value; } return bitcast<$w>(old);";
    (body, operation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::TensorNode;

    fn spec(tensors: &[(&str, DType, Access)]) -> KernelSpec {
        tensors.iter().fold(KernelSpec::new("k", "@compute @workgroup_size(1) fn main() {}"), |spec, tensor| {
            spec.tensor(tensor.0, &TensorNode::new(tensor.0, tensor.1, [4]), tensor.2)
        })
    }

    #[test]
    fn a_binding_of_one_type_is_declared_as_it() {
        let spec = spec(&[("x", DType::F32, Access::Read), ("y", DType::F32, Access::Write)]);
        let text = module_text(&spec, &Pattern::one_heap(2));
        assert!(text.contains("var<storage, read_write> wgslab_heap_0: array<f32>;"), "{text}");
        assert!(text.starts_with("@compute"), "the author's text comes first: {text}");
        assert!(!text.contains("fn load_y") && !text.contains("fn store_x"), "access is honoured: {text}");
    }

    #[test]
    fn mixed_types_share_a_binding_of_words() {
        let spec = spec(&[("x", DType::F32, Access::Read), ("n", DType::U8, Access::Read)]);
        assert!(module_text(&spec, &Pattern::one_heap(2)).contains("wgslab_heap_0: array<u32>;"));
    }

    #[test]
    fn a_narrow_store_makes_the_binding_atomic() {
        let spec = spec(&[("x", DType::F32, Access::Read), ("n", DType::U8, Access::Write)]);
        let text = module_text(&spec, &Pattern::one_heap(2));
        assert!(text.contains("array<atomic<u32>>") && text.contains("bitcast<f32>(atomicLoad("), "{text}");
    }

    #[test]
    fn the_parameter_block_grows_in_slots() {
        let tensors: Vec<String> = (0..70).map(|index| format!("t{index}")).collect();
        let spec = tensors.iter().fold(KernelSpec::new("k", ""), |spec, name| {
            spec.tensor(name, &TensorNode::new(name, DType::F32, [1]), Access::Read)
        });
        assert_eq!(param_slot_bytes(&spec), 512);
    }
}
