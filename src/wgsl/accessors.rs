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
        tensor_accessors(&mut out, tensor, word, binding, bindings[binding], nest_of(spec));
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
  if (a > 0x7f800000u) { return sign | 0x7e00u; }
  if (a >= 0x477ff000u) { return sign | 0x7c00u; }
  if (a < 0x38800000u) { return sign | u32(round(bitcast<f32>(a) * 16777216.0)); }
  return sign | ((a + 0xfffu + ((a >> 13u) & 1u) - 0x38000000u) >> 13u);
}
";

const NAN: &str = "fn wgslab_nan(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }\n";

/// What a binding is declared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BindingType {
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
            BindingType::Words => "u32",
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
    let mut types: Vec<Option<BindingType>> = vec![None; pattern.read_only.len()];
    for (tensor, binding) in spec.tensors.iter().zip(pattern.bindings()) {
        let narrow = tensor.node.dtype().size_bytes() < 4;
        let wanted = if tensor.access == Access::Atomic || (narrow && tensor.access.writes()) {
            BindingType::Atomic
        } else if narrow {
            BindingType::Words
        } else {
            BindingType::Plain(tensor.node.dtype())
        };
        let slot = &mut types[binding];
        *slot = Some(match *slot {
            None => wanted,
            Some(have) if have == wanted => have,
            Some(BindingType::Atomic) => BindingType::Atomic,
            Some(_) if wanted == BindingType::Atomic => BindingType::Atomic,
            Some(_) => BindingType::Words,
        });
    }
    let by_fours = nest_of(spec).1;
    let or_vectors = |slot| match slot {
        Some(BindingType::Plain(DType::F32)) if by_fours => BindingType::Vectors,
        slot => slot.unwrap_or(BindingType::Words),
    };
    types.into_iter().map(or_vectors).collect()
}

fn param_word(word: usize) -> String {
    format!("wgslab_params[{}].{}", word / 4, ["x", "y", "z", "w"][word % 4])
}

fn tensor_accessors(
    out: &mut String,
    tensor: &KernelTensor,
    word: usize,
    binding: usize,
    kind: BindingType,
    nest: (bool, bool),
) {
    let KernelTensor { name, node, access, .. } = tensor;
    let dtype = node.dtype();
    let wide = dtype.wide_wgsl();
    let heap = format!("wgslab_heap_{binding}");
    let offset = param_word(word);
    let _ = writeln!(out, "const len_{name}: u32 = {}u;", node.element_len());
    for (axis, extent) in node.shape().iter().enumerate() {
        let _ = writeln!(out, "const dim_{name}_{axis}: u32 = {extent}u;");
    }
    // What programs read and write is in range: the checker saw to it. WebGPU keeps them in the heap whatever happens.
    let (is_nest, by_fours) = (nest.0, nest.1 && dtype == DType::F32);
    let guard = |result: &str| {
        if !is_nest { format!("if (i >= len_{name}) {{ return{result}; }} ") } else { String::new() }
    };
    if access.reads() {
        let (value, guard) = (load_expression(dtype, &heap, kind), guard(&format!(" {wide}()")));
        let _ = writeln!(out, "fn load_{name}(i: u32) -> {wide} {{ {guard}let e = {offset} + i; return {value}; }}");
    }
    if access.reads() && by_fours {
        let value = match kind {
            BindingType::Vectors => format!("{heap}[({offset} + i) >> 2u]"),
            _ => format!("vec4(load_{name}(i), load_{name}(i + 1u), load_{name}(i + 2u), load_{name}(i + 3u))"),
        };
        let _ = writeln!(out, "fn load4_{name}(i: u32) -> vec4<f32> {{ return {value}; }}");
    }
    if access.writes() && by_fours {
        let store = match kind {
            BindingType::Vectors => format!("{heap}[({offset} + i) >> 2u] = v;"),
            _ => format!(
                "store_{name}(i, v.x); store_{name}(i + 1u, v.y); store_{name}(i + 2u, v.z); store_{name}(i + 3u, v.w);"
            ),
        };
        let _ = writeln!(out, "fn store4_{name}(i: u32, v: vec4<f32>) {{ {store} }}");
    }
    if access.writes() {
        let (store, guard) = (store_statement(dtype, &heap, kind), guard(""));
        let _ = writeln!(out, "fn store_{name}(i: u32, v: {wide}) {{ {guard}let e = {offset} + i; {store} }}");
    }
    if *access == Access::Atomic {
        // The other operand of a NaN.
        let (larger, smaller) = if dtype == DType::F32 {
            ("select(a, v, v > a || wgslab_nan(a))", "select(a, v, v < a || wgslab_nan(a))")
        } else {
            ("max(a, v)", "min(a, v)")
        };
        for (verb, function, operator) in [
            ("add", "atomicAdd", "a + v"),
            ("mul", "", "a * v"),
            ("max", "atomicMax", larger),
            ("min", "atomicMin", smaller),
        ] {
            let body = atomic_body(dtype, &heap, verb, function, operator);
            let _ = writeln!(
                out,
                "fn atomic_{verb}_{name}(i: u32, v: {wide}) -> {wide} {{ if (i >= len_{name}) {{ return {wide}(); }} \
                 let e = {offset} + i; {body} }}"
            );
        }
    }
}

/// The word of element `e`, for a type with that many elements in a word.
fn word_expression(heap: &str, kind: BindingType, per_word: u32) -> String {
    if kind == BindingType::Vectors {
        return format!("{heap}[e >> 2u][e & 3u]");
    }
    let index = match per_word {
        1 => "e",
        2 => "e >> 1u",
        _ => "e >> 2u",
    };
    if kind == BindingType::Atomic { format!("atomicLoad(&{heap}[{index}])") } else { format!("{heap}[{index}]") }
}

fn load_expression(dtype: DType, heap: &str, kind: BindingType) -> String {
    let per_word = (4 / dtype.size_bytes()) as u32;
    let word = word_expression(heap, kind, per_word);
    match dtype {
        _ if matches!(kind, BindingType::Plain(_) | BindingType::Vectors) => word,
        DType::F32 => format!("bitcast<f32>({word})"),
        DType::I32 => format!("bitcast<i32>({word})"),
        DType::U32 => word,
        DType::F16 => format!("unpack2x16float({word} >> ((e & 1u) * 16u)).x"),
        DType::BF16 => format!("bitcast<f32>(({word} >> ((e & 1u) * 16u)) << 16u)"),
        DType::I8 => format!("extractBits(bitcast<i32>({word}), (e & 3u) * 8u, 8u)"),
        DType::U8 => format!("extractBits({word}, (e & 3u) * 8u, 8u)"),
        DType::Bool => format!("extractBits({word}, (e & 3u) * 8u, 8u) != 0u"),
    }
}

fn store_statement(dtype: DType, heap: &str, kind: BindingType) -> String {
    if dtype.size_bytes() == 4 {
        return match kind {
            BindingType::Atomic => format!("atomicStore(&{heap}[e], bitcast<u32>(v));"),
            BindingType::Plain(_) => format!("{heap}[e] = v;"),
            BindingType::Vectors => format!("{heap}[e >> 2u][e & 3u] = v;"),
            BindingType::Words => format!("{heap}[e] = bitcast<u32>(v);"),
        };
    }
    let bits = match dtype {
        DType::F16 => "wgslab_f16(v)".to_owned(),
        // To nearest even, by integers; a NaN must not round to infinity.
        DType::BF16 => "select((bitcast<u32>(v) + 0x7fffu + ((bitcast<u32>(v) >> 16u) & 1u)) >> 16u, 0x7fc0u, \
             (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u)"
            .to_owned(),
        DType::Bool => "select(0u, 1u, v)".to_owned(),
        _ => "(bitcast<u32>(v) & 0xffu)".to_owned(),
    };
    let (index, lane, mask) = if dtype.size_bytes() == 2 {
        ("e >> 1u", "(e & 1u) * 16u", "0xffffu")
    } else {
        ("e >> 2u", "(e & 3u) * 8u", "0xffu")
    };
    // Each element is written by one invocation, but its neighbours in the word by others: clear the lane, then set
    // it, atomically. No invocation ever sees another's lane change under it.
    format!(
        "let s = {lane}; let b = {bits} & {mask}; atomicAnd(&{heap}[{index}], ~({mask} << s)); \
         atomicOr(&{heap}[{index}], b << s);"
    )
}

fn atomic_body(dtype: DType, heap: &str, verb: &str, function: &str, operator: &str) -> String {
    match (dtype, verb) {
        (DType::U32, "add" | "max" | "min") => format!("return {function}(&{heap}[e], v);"),
        (DType::I32, "add") => format!("return bitcast<i32>({function}(&{heap}[e], bitcast<u32>(v)));"),
        // The heap is unsigned words: everything else exchanges until nobody came between.
        _ => {
            let wide = dtype.wide_wgsl();
            format!(
                "var old = atomicLoad(&{heap}[e]); loop {{ let a = bitcast<{wide}>(old); \
                 let r = atomicCompareExchangeWeak(&{heap}[e], old, bitcast<u32>({operator})); \
                 if (r.exchanged) {{ break; }} old = r.old_value; }} return bitcast<{wide}>(old);"
            )
        }
    }
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
