//! The order of the code, checked: dependencies point upward, pure code knows no GPU, the target has one seam.

use std::path::{Path, PathBuf};

/// The path of an array, top to bottom: a file may use its own layer and those before it. `driver` and `wgsl` stand
/// together, since a driver compiles what `wgsl` declares, within limits that the driver states.
const LAYERS: &[&[&str]] = &[
    &["diagnostic", "error"],
    &["dtype"],
    &["host_array", "node", "sorted_map"],
    &["notation"],
    &["loops"],
    &["schedule"],
    &["steps"],
    &["slab"],
    &["wgsl", "driver"],
    &["kernels"],
    &["event"],
    &["device"],
    &["context"],
    &["transfer"],
    &["backend"],
    &["web"],
    &["lib"],
];

/// Folders and files that must not import wgpu.
const PURE: &[&str] = &[
    "diagnostic",
    "error",
    "dtype",
    "host_array",
    "node",
    "notation",
    "loops",
    "schedule",
    "steps",
    "slab",
    "wgsl",
    "kernels",
    "event",
    "device",
    "context",
    "transfer",
    "backend",
];

/// Where the target may be asked for, beside `lib.rs` (which has the browser's module): blocking calls exist natively
/// only, so the files that have one are here.
const SEAM: &[&str] = &[
    "driver/block.rs",
    "driver/bytes.rs",
    "driver/maybe_send.rs",
    "driver/event.rs",
    "driver/gpu/platform/",
    "driver/gpu/progress.rs",
    "driver/gpu/event.rs",
    "driver/gpu/hold.rs",
    "driver/gpu/runner.rs",
    "driver/host/mod.rs",
    "driver/host/nest/functions.rs",
    "driver/host/threads.rs",
    "event.rs",
    "notation/float.rs",
    "device/mod.rs",
    "device/registry.rs",
    "device/tuned",
    "backend/tune/",
    "web/",
    "lib.rs",
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

fn name(file: &Path) -> String {
    file.strip_prefix(source()).unwrap().to_string_lossy().into_owned()
}

fn layer(module: &str) -> usize {
    let first = module.split(['/', '.']).next().unwrap_or(module);
    LAYERS.iter().position(|layer| layer.contains(&first)).unwrap_or_else(|| panic!("\"{module}\" has no layer"))
}

/// The code of a file, without its tests and comments.
fn code(file: &Path) -> String {
    if file.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests")) {
        return String::new();
    }
    let text = std::fs::read_to_string(file).unwrap();
    let text = text.split("#[cfg(all(test").next().unwrap_or("");
    let text = text.split("mod tests {").next().unwrap_or("").to_owned();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn dependencies_point_upward() {
    for file in files(&source()) {
        let name = name(&file);
        for part in code(&file).split("crate::").skip(1) {
            let used: String = part.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if name == "lib.rs" || used.starts_with(char::is_uppercase) || used.is_empty() {
                continue;
            }
            assert!(layer(&used) <= layer(&name), "{name} uses crate::{used}, which comes after it");
        }
    }
}

#[test]
fn pure_code_does_not_know_wgpu() {
    for file in files(&source()) {
        let name = name(&file);
        let first = name.split(['/', '.']).next().unwrap_or("");
        if PURE.contains(&first) {
            assert!(!code(&file).contains("wgpu::"), "{name} imports wgpu");
        }
    }
}

#[test]
fn the_target_has_one_seam() {
    for file in files(&source()) {
        let name = name(&file);
        if !SEAM.iter().any(|seam| name.starts_with(seam)) {
            assert!(!code(&file).contains("target_arch"), "{name} asks for the target");
        }
    }
}

#[test]
fn files_stay_short() {
    for file in files(&source()) {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= 500, "{} has {lines} lines: is there a seam?", name(&file));
    }
}
