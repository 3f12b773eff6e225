//! Bytes that a caller hands in: a Rust slice or, in a browser, a JavaScript array that never passes through wasm
//! memory. One of the files that know the target.

/// Bytes to upload, borrowed for the duration of the call.
#[derive(Clone, Copy, Debug)]
pub enum Bytes<'a> {
    /// A Rust slice.
    Slice(&'a [u8]),
    /// A JavaScript array.
    #[cfg(target_arch = "wasm32")]
    Js(&'a js_sys::Uint8Array),
}

impl Bytes<'_> {
    /// How many bytes.
    pub fn len_bytes(&self) -> u64 {
        match self {
            Bytes::Slice(bytes) => bytes.len() as u64,
            #[cfg(target_arch = "wasm32")]
            Bytes::Js(array) => u64::from(array.length()),
        }
    }

    /// Copies `out.len()` bytes from `start`; the range must be inside.
    pub fn copy_to(&self, start: u64, out: &mut [u8]) {
        let start = start as usize;
        match self {
            Bytes::Slice(bytes) => out.copy_from_slice(&bytes[start..start + out.len()]),
            #[cfg(target_arch = "wasm32")]
            Bytes::Js(array) => array.subarray(start as u32, (start + out.len()) as u32).copy_to(out),
        }
    }
}
