//! What can be said of a raw kernel before any driver sees it: names, entry point, bindings, grid, parameter block.

use crate::diagnostic::Diagnostic;
use crate::driver::limits::DeviceLimits;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::node::{List, parts};
use crate::wgsl::accessors::param_slot_bytes;
use crate::wgsl::spec::{Access, KernelSpec};

/// Checks a kernel against its own declarations and the device's limits.
///
/// # Errors
/// [`ErrorKind::KernelSyntax`] and [`ErrorKind::KernelInterface`] with places in the text; [`ErrorKind::LimitExceeded`]
/// for a grid or parameter block that the device cannot have.
pub fn check(spec: &KernelSpec, limits: &DeviceLimits) -> Result<()> {
    check_names(spec)?;
    check_text(&spec.text)?;
    check_limits(spec, limits)
}

/// Names of WGSL that the generated accessors use: an author's declaration would take their place.
const USED_BY_ACCESSORS: &str = "array atomic atomicAdd atomicAnd atomicCompareExchangeWeak atomicLoad atomicMax \
    atomicMin atomicOr atomicStore bitcast bool extractBits f32 i32 max min round select u32 unpack2x16float vec4";

fn interface(message: std::fmt::Arguments<'_>) -> Error {
    Error::say(ErrorKind::KernelInterface, message)
}

fn check_names(spec: &KernelSpec) -> Result<()> {
    let mut seen: Vec<&str> = Vec::new();
    let tensor_count = spec.tensors.len();
    for index in 0..tensor_count + spec.statics.len() {
        let (what, name) = match spec.tensors.get(index) {
            Some(tensor) => ("tensor", tensor.name.as_str()),
            None => ("static", spec.statics[index - tensor_count].as_str()),
        };
        let plain = !name.is_empty() && name.bytes().all(is_of_word) && !name.ends_with("__");
        if !plain {
            return Err(interface(format_args!(
                "{what} name \"{name}\" cannot be part of a WGSL name; use ASCII letters, digits and _"
            )));
        }
        if seen.contains(&name) {
            return Err(interface(format_args!(
                "the name \"{name}\" is declared twice; give each tensor and static its own"
            )));
        }
        seen.push(name);
    }
    if spec.tensors.iter().filter(|tensor| tensor.merged).count() > 1 {
        return Err(interface(format_args!(
            "a kernel merges one node, since the merge buffer has one tenant; split it"
        )));
    }
    for tensor in &spec.tensors {
        if tensor.node.element_len() > u64::from(u32::MAX) {
            let message = format_args!(
                "tensor \"{}\": node {} has {} elements, more than the 4294967295 that a kernel can count; split it",
                tensor.name,
                tensor.node,
                tensor.node.element_len()
            );
            return Err(Error::say(ErrorKind::LimitExceeded, message));
        }
        let atomic_type = matches!(tensor.node.dtype(), DType::F32 | DType::I32 | DType::U32);
        if tensor.access == Access::Atomic && !atomic_type {
            return Err(interface(format_args!(
                "tensor \"{}\" ({}) cannot be atomic: only f32, i32 and u32 can; use read_write",
                tensor.name,
                tensor.node.dtype()
            )));
        }
    }
    Ok(())
}

/// An error about a place in the text.
fn misplaced(text: &str, at: usize, what: std::fmt::Arguments<'_>, message: &str) -> Error {
    let diagnostic = Diagnostic::at(text, at, message);
    let summary = format!("{what} at {}:{}", diagnostic.line, diagnostic.column);
    Error::with_diagnostics(ErrorKind::KernelInterface, summary, vec![diagnostic])
}

fn check_text(text: &str) -> Result<()> {
    let mut entries = 0;
    for Named { name, at, is_attribute } in named(text) {
        if !is_attribute {
            if parts(USED_BY_ACCESSORS, b" ").any(|used| used == name) || name.starts_with("wgslab_") {
                let message = format!("\"{name}\" would change what the generated accessors mean; choose another name");
                return Err(misplaced(text, at, format_args!("a declaration of {name}"), &message));
            }
        } else if name == "compute" {
            entries += 1;
        } else if name == "group" || name == "binding" {
            let message = "a raw kernel declares no bindings; declare the tensor or static through the API and use its \
                           accessors (load_x, store_x, static_s)";
            return Err(misplaced(text, at, format_args!("@{name}"), message));
        }
    }
    match entries {
        1 => Ok(()),
        0 => {
            let place = Diagnostic::at(text, 0, "expected one function marked @compute @workgroup_size(…)");
            Err(Error::with_diagnostics(ErrorKind::KernelInterface, "no entry point", vec![place]))
        }
        _ => {
            Err(interface(format_args!("{entries} entry points marked @compute; compile each as a kernel of its own")))
        }
    }
}

fn check_limits(spec: &KernelSpec, limits: &DeviceLimits) -> Result<()> {
    if let Some(groups) = spec.grid.iter().find(|&&groups| groups > limits.workgroups_per_dimension) {
        return Err(Error::say(
            ErrorKind::LimitExceeded,
            format_args!(
                "a grid of {} workgroups has a dimension of {groups}, over the device's limit of {}; fold the grid \
                 into y or z",
                List(&spec.grid),
                limits.workgroups_per_dimension
            ),
        ));
    }
    let bytes = param_slot_bytes(spec);
    if bytes > limits.uniform_binding_bytes {
        return Err(Error::say(
            ErrorKind::LimitExceeded,
            format_args!(
                "{} tensors and {} statics need a parameter block of {bytes} bytes, over the device's limit of {}; \
                 split the kernel",
                spec.tensors.len(),
                spec.statics.len(),
                limits.uniform_binding_bytes
            ),
        ));
    }
    Ok(())
}

/// Behind the comment that starts there, or there where none does; behind the end of the text where it does not end.
fn behind_comment(text: &[u8], start: usize) -> usize {
    let pair = |at: usize| text.get(at..at + 2).unwrap_or_default();
    let mut at = start;
    if pair(at) == b"//" {
        while text.get(at).is_some_and(|byte| !matches!(byte, b'\n' | b'\r')) {
            at += 1;
        }
        return at;
    }
    let mut depth = 0;
    loop {
        match pair(at) {
            b"/*" => depth += 1,
            b"*/" if depth > 0 => depth -= 1,
            _ if depth == 0 => return at,
            [] => return text.len() + 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
}

/// Whether every bracket and comment of a text ends in it.
pub fn is_closed(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (mut at, mut open) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        let behind = behind_comment(bytes, at);
        if behind == at {
            open += i32::from(matches!(byte, b'(' | b'{' | b'[')) - i32::from(matches!(byte, b')' | b'}' | b']'));
        }
        at = behind.max(at + 1);
    }
    at == bytes.len() && open == 0
}

/// A name in a text.
#[derive(Clone, Copy, Debug)]
pub struct Named<'t> {
    /// The name.
    pub name: &'t str,
    /// Its byte offset; of an attribute, that of its `@`.
    pub at: usize,
    /// Whether it is an attribute; else it is declared.
    pub is_attribute: bool,
}

/// Whether a word may have that byte.
pub fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The attributes of a text, and the names that it declares at module scope.
pub fn named(text: &str) -> Vec<Named<'_>> {
    let bytes = text.as_bytes();
    let (mut found, mut depth, mut at) = (Vec::new(), 0usize, 0);
    let (mut declares, mut attribute) = (false, None);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at = behind_comment(bytes, at);
        if at > start {
            continue;
        }
        at += 1;
        if is_of_word(byte) {
            while bytes.get(at).is_some_and(|byte| is_of_word(*byte)) {
                at += 1;
            }
            let name = text.get(start..at).unwrap_or("");
            if declares || attribute.is_some() {
                found.push(Named { name, at: attribute.unwrap_or(start), is_attribute: attribute.is_some() });
            }
            declares = depth == 0
                && !declares
                && attribute.is_none()
                && matches!(name, "fn" | "const" | "override" | "alias" | "struct" | "var");
            attribute = None;
        } else if !byte.is_ascii_whitespace() {
            attribute = (byte == b'@').then_some(start);
            match byte {
                b'{' => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                // The address space of a variable stands between `var` and its name.
                b'<' if declares => {
                    while bytes.get(at).is_some_and(|byte| bytes[at - 1] != b'>' && *byte != b';') {
                        at += 1;
                    }
                }
                _ => declares = false,
            }
        }
    }
    found
}

/// Where `part` stands in `text`, from the byte `from` on. Byte by byte, and small: texts are short, and the searchers of
/// `str` are not.
pub fn find(text: &str, part: &str, from: usize) -> Option<usize> {
    let windows = text.as_bytes().get(from..)?.windows(part.len().max(1));
    windows.enumerate().find(|(_, window)| *window == part.as_bytes()).map(|(at, _)| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::TensorNode;

    const MAIN: &str = "@compute @workgroup_size(1) fn main() {}";

    fn limits() -> DeviceLimits {
        DeviceLimits {
            segment_cap_bytes: 1 << 20,
            alignment_bytes: 256,
            storage_buffers: 8,
            workgroups_per_dimension: 65535,
            invocations_per_workgroup: 256,
            workgroup_storage_bytes: 16384,
            uniform_binding_bytes: 65536,
            has_subgroups: false,
        }
    }

    fn message(spec: &KernelSpec) -> String {
        check(spec, &limits()).unwrap_err().to_string()
    }

    #[test]
    fn comments_hide_nothing_and_count_for_nothing() {
        assert!(check_text("// @group(0)\n/* @compute /* nested */ @binding(1) */ @compute fn main() {}").is_ok());
        assert!(check_text("// @compute fn main() {}").is_err());
        assert!(is_closed("// {\n/* ( /* */ [ */ fn main() {}") && is_closed("/**/"));
        assert!(!is_closed("fn main() {} /* /* */") && !is_closed("fn main() { // }"));
    }

    #[test]
    fn names_that_the_accessors_use_are_refused_at_module_scope_only() {
        let refused = format!("{MAIN}\nfn  max(a: f32) -> f32 {{ return a; }}");
        let error = check(&KernelSpec::new("k", refused), &limits()).unwrap_err();
        assert_eq!((error.diagnostics()[0].line, error.diagnostics()[0].column), (2, 5));
        for declaration in ["const select = 1;", "var<private> min: f32;", "alias f32 = u32;", "fn wgslab_x() {}"] {
            assert!(check_text(&format!("{declaration}\n{MAIN}")).is_err(), "{declaration}");
        }
        let local = "fn f() -> u32 { let max = 1u; var min = 2u; return max + min; }";
        assert!(check_text(&format!("{local}\nconst maximum = 1; // fn max()\n{MAIN}")).is_ok());
    }

    #[test]
    fn own_bindings_are_refused_where_they_stand() {
        let spec = KernelSpec::new("k", format!("// ü\n  @group(0) @binding(0) var<storage> x: array<f32>;\n{MAIN}"));
        let error = check(&spec, &limits()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::KernelInterface);
        assert_eq!((error.diagnostics()[0].line, error.diagnostics()[0].column), (2, 3));
    }

    #[test]
    fn names_and_entries_are_checked() {
        let x = TensorNode::new("x", DType::U8, [4]);
        let twice = KernelSpec::new("k", MAIN).tensor("x", &x, Access::Read).statics(["x"]);
        assert!(message(&twice).contains("\"x\" is declared twice"));
        assert!(message(&KernelSpec::new("k", MAIN).tensor("a b", &x, Access::Read)).contains("\"a b\""));
        assert!(message(&KernelSpec::new("k", MAIN).tensor("x", &x, Access::Atomic)).contains("cannot be atomic"));
        assert!(message(&KernelSpec::new("k", "fn main() {}")).contains("@compute"));
        assert!(message(&KernelSpec::new("k", format!("{MAIN}\n{MAIN}"))).contains("2 entry points"));
    }

    #[test]
    fn a_grid_over_the_limit_is_refused_with_the_number() {
        let spec = KernelSpec::new("k", MAIN).grid([1, 65536, 1]);
        let error = check(&spec, &limits()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(error.to_string().contains("65536, over the device's limit of 65535"), "{error}");
    }
}
