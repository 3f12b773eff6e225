//! Moving bytes between the host and contexts, and within a context.

mod block;
mod copy;
pub mod readback;
mod upload;

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::host_array::Element;
use crate::node::{List, TensorNode};

/// Refuses a slice whose element type is not the node's.
fn check_dtype<T: Element>(node: &TensorNode) -> Result<()> {
    if T::fits(node.dtype()) {
        return Ok(());
    }
    let remedy = match node.dtype() {
        DType::F16 | DType::BF16 => "give its bits as u16",
        DType::Bool => "give u8, 0 or 1",
        _ => "convert the array, or declare the node with its dtype",
    };
    let message = format_args!("node {node} is {}, but the array is {}; {remedy}", node.dtype(), T::DTYPE);
    Err(Error::say(ErrorKind::DTypeMismatch, message))
}

/// Refuses an array that does not have as many bytes as the node.
pub(crate) fn check_len(node: &TensorNode, len_bytes: u64) -> Result<()> {
    if len_bytes == node.size_bytes() {
        return Ok(());
    }
    Err(Error::say(
        ErrorKind::ShapeMismatch,
        format_args!(
            "node {node} of shape {} has {} elements ({} bytes), but the array has {} ({len_bytes} bytes)",
            List(node.shape()),
            node.element_len(),
            node.size_bytes(),
            len_bytes / node.dtype().size_bytes()
        ),
    ))
}

/// Refuses a range of bytes that leaves the node.
pub(crate) fn check_range(node: &TensorNode, start_bytes: u64, len_bytes: u64) -> Result<()> {
    if start_bytes.checked_add(len_bytes).is_some_and(|end| end <= node.size_bytes()) {
        return Ok(());
    }
    Err(Error::say(
        ErrorKind::ShapeMismatch,
        format_args!(
            "bytes {start_bytes} to {} leave node {node}, which has {} bytes; shorten the range",
            start_bytes.saturating_add(len_bytes),
            node.size_bytes()
        ),
    ))
}
