//! What can be said of a raw kernel before any driver sees it: names, entry point, bindings, grid, parameter block.

use crate::diagnostic::Diagnostic;
use crate::driver::limits::DeviceLimits;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
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
const USED_BY_ACCESSORS: [&str; 22] = [
    "array",
    "atomic",
    "atomicAdd",
    "atomicAnd",
    "atomicCompareExchangeWeak",
    "atomicLoad",
    "atomicMax",
    "atomicMin",
    "atomicOr",
    "atomicStore",
    "bitcast",
    "bool",
    "extractBits",
    "f32",
    "i32",
    "max",
    "min",
    "round",
    "select",
    "u32",
    "unpack2x16float",
    "vec4",
];

fn interface(message: String) -> Error {
    Error::new(ErrorKind::KernelInterface, message)
}

fn check_names(spec: &KernelSpec) -> Result<()> {
    let mut seen: Vec<&str> = Vec::new();
    let tensor_count = spec.tensors.len();
    for index in 0..tensor_count + spec.statics.len() {
        let (what, name) = match spec.tensors.get(index) {
            Some(tensor) => ("tensor", tensor.name.as_str()),
            None => ("static", spec.statics[index - tensor_count].as_str()),
        };
        let plain =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.ends_with("__");
        if !plain {
            return Err(interface(format!(
                "{what} name \"{name}\" cannot be part of a WGSL name; use ASCII letters, digits and _"
            )));
        }
        if seen.contains(&name) {
            return Err(interface(format!(
                "the name \"{name}\" is declared twice; give each tensor and static its own"
            )));
        }
        seen.push(name);
    }
    if spec.tensors.iter().filter(|tensor| tensor.merged).count() > 1 {
        return Err(interface("a kernel merges one node, since the merge buffer has one tenant; split it".to_owned()));
    }
    for tensor in &spec.tensors {
        if tensor.node.element_len() > u64::from(u32::MAX) {
            let message = format!(
                "tensor \"{}\": node {} has {} elements, more than the 4294967295 that a kernel can count; split it",
                tensor.name,
                tensor.node,
                tensor.node.element_len()
            );
            return Err(Error::new(ErrorKind::LimitExceeded, message));
        }
        let atomic_type = matches!(tensor.node.dtype(), DType::F32 | DType::I32 | DType::U32);
        if tensor.access == Access::Atomic && !atomic_type {
            return Err(interface(format!(
                "tensor \"{}\" ({}) cannot be atomic: only f32, i32 and u32 can; use read_write",
                tensor.name,
                tensor.node.dtype()
            )));
        }
    }
    Ok(())
}

fn check_text(text: &str) -> Result<()> {
    let code = without_comments(text);
    let mut entries = 0;
    for (name, offset) in attributes(&code) {
        match name.as_str() {
            "compute" => entries += 1,
            "group" | "binding" => {
                let (line, column) = position(text, offset);
                let message = "a raw kernel declares no bindings; declare the tensor or static through the API and use \
                               its accessors (load_x, store_x, static_s)";
                return Err(Error::with_diagnostics(
                    ErrorKind::KernelInterface,
                    format!("@{name} at {line}:{column}"),
                    vec![Diagnostic::at(text, line, column, message)],
                ));
            }
            _ => {}
        }
    }
    for (name, offset) in declarations(text) {
        if USED_BY_ACCESSORS.contains(&name.as_str()) || name.starts_with("wgslab_") {
            let (line, column) = position(text, offset);
            let message = format!("\"{name}\" would change what the generated accessors mean; choose another name");
            return Err(Error::with_diagnostics(
                ErrorKind::KernelInterface,
                format!("a declaration of {name} at {line}:{column}"),
                vec![Diagnostic::at(text, line, column, message)],
            ));
        }
    }
    match entries {
        1 => Ok(()),
        0 => Err(Error::with_diagnostics(
            ErrorKind::KernelInterface,
            "no entry point",
            vec![Diagnostic::at(text, 1, 1, "expected one function marked @compute @workgroup_size(…)")],
        )),
        _ => Err(interface(format!("{entries} entry points marked @compute; compile each as a kernel of its own"))),
    }
}

fn check_limits(spec: &KernelSpec, limits: &DeviceLimits) -> Result<()> {
    if let Some(groups) = spec.grid.iter().find(|&&groups| groups > limits.workgroups_per_dimension) {
        return Err(Error::new(
            ErrorKind::LimitExceeded,
            format!(
                "a grid of {:?} workgroups has a dimension of {groups}, over the device's limit of {}; fold the grid \
                 into y or z",
                spec.grid, limits.workgroups_per_dimension
            ),
        ));
    }
    let bytes = param_slot_bytes(spec);
    if bytes > limits.uniform_binding_bytes {
        return Err(Error::new(
            ErrorKind::LimitExceeded,
            format!(
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

/// The text with comments blanked out, so that byte offsets stay.
fn without_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let (mut at, mut depth) = (0, 0usize);
    while at < bytes.len() {
        let pair = bytes.get(at..at + 2);
        if pair == Some(b"/*") || (depth > 0 && pair == Some(b"*/")) {
            if pair == Some(b"/*") {
                depth += 1;
            } else {
                depth -= 1;
            }
            out[at..at + 2].fill(b' ');
            at += 2;
        } else if depth == 0 && pair == Some(b"//") {
            let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
            let end = bytes[at..].iter().position(ends).map_or(bytes.len(), |line| at + line);
            out[at..end].fill(b' ');
            at = end;
        } else {
            if depth > 0 && bytes[at] != b'\n' {
                out[at] = b' ';
            }
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Every `@name` with its byte offset.
fn attributes(code: &str) -> Vec<(String, usize)> {
    code.match_indices('@')
        .map(|(offset, _)| {
            let rest = code[offset + 1..].trim_start();
            let name = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            (name, offset)
        })
        .collect()
}

/// Whether every bracket and comment of a text ends in it.
pub fn is_closed(text: &str) -> bool {
    let code = without_comments(text);
    let count = |wanted: &[u8]| code.bytes().filter(|byte| wanted.contains(byte)).count();
    let comments = find(&code, "/*", 0).is_none();
    comments && count(b"({[") == count(b")}]")
}

/// The names that a text declares at module scope, with their byte offsets.
pub fn declarations(text: &str) -> Vec<(String, usize)> {
    let code = without_comments(text);
    let bytes = code.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let (mut found, mut depth, mut at) = (Vec::new(), 0usize, 0);
    let mut declares = false;
    while at < bytes.len() {
        match bytes[at] {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            // The address space of a variable stands between `var` and its name.
            b'<' if declares => {
                at += bytes[at..].iter().position(|byte| *byte == b'>').unwrap_or(0);
            }
            byte if is_word(&byte) => {
                let end = bytes[at..].iter().position(|byte| !is_word(byte)).map_or(bytes.len(), |len| at + len);
                let word = code.get(at..end).unwrap_or("");
                if declares {
                    found.push((word.to_owned(), at));
                }
                declares =
                    depth == 0 && !declares && matches!(word, "fn" | "const" | "override" | "alias" | "struct" | "var");
                at = end;
                continue;
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => declares = false,
        }
        at += 1;
    }
    found
}

/// Where `part` stands in `text`, from the byte `from` on. Byte by byte, and small: texts are short, and the searchers of
/// `str` are not.
pub fn find(text: &str, part: &str, from: usize) -> Option<usize> {
    let windows = text.as_bytes().get(from..)?.windows(part.len().max(1));
    windows.enumerate().find(|(_, window)| *window == part.as_bytes()).map(|(at, _)| from + at)
}

/// The 1-based line and column, in characters, of a byte offset.
pub fn position(text: &str, offset: usize) -> (u32, u32) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text.as_bytes()[..end];
    let line = before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    // Every byte that does not continue a character begins one.
    let column = before[start..].iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u32 + 1;
    (line, column)
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
        }
    }

    fn message(spec: &KernelSpec) -> String {
        check(spec, &limits()).unwrap_err().to_string()
    }

    #[test]
    fn comments_hide_nothing_and_count_for_nothing() {
        assert!(check_text("// @group(0)\n/* @compute /* nested */ @binding(1) */ @compute fn main() {}").is_ok());
        assert!(check_text("// @compute fn main() {}").is_err());
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
