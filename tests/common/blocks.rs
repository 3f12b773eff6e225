//! Blocks by bytes, through the typed API, and what a block is in plain loops.

use wgslab::{Block, Context, DType, Driver, Error, Span, TensorNode};

/// Writes little-endian bytes of a block.
pub fn write_block<D: Driver>(
    context: &Context<D>,
    node: &TensorNode,
    block: &Block,
    bytes: &[u8],
) -> Result<(), Error> {
    match node.dtype() {
        DType::F32 => context.from_host_block::<f32>(node, block, &elements(bytes)),
        DType::F16 | DType::BF16 => context.from_host_block::<u16>(node, block, &elements(bytes)),
        DType::I32 => context.from_host_block::<i32>(node, block, &elements(bytes)),
        DType::U32 => context.from_host_block::<u32>(node, block, &elements(bytes)),
        DType::I8 => context.from_host_block::<i8>(node, block, &elements(bytes)),
        DType::U8 | DType::Bool => context.from_host_block::<u8>(node, block, bytes),
    }
    .map(drop)
}

/// Reads a block as little-endian bytes.
pub async fn read_block<D: Driver>(context: &Context<D>, node: &TensorNode, block: &Block) -> Result<Vec<u8>, Error> {
    fn bytes<T: bytemuck::Pod>(elements: Vec<T>) -> Vec<u8> {
        bytemuck::cast_slice(&elements).to_vec()
    }
    match node.dtype() {
        DType::F32 => context.to_host_block::<f32>(node, block).await.map(bytes),
        DType::F16 | DType::BF16 => context.to_host_block::<u16>(node, block).await.map(bytes),
        DType::I32 => context.to_host_block::<i32>(node, block).await.map(bytes),
        DType::U32 => context.to_host_block::<u32>(node, block).await.map(bytes),
        DType::I8 => context.to_host_block::<i8>(node, block).await.map(bytes),
        DType::U8 | DType::Bool => context.to_host_block::<u8>(node, block).await,
    }
}

fn elements<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(bytes)
}

/// The flat indices of a block's elements, by counting through every element of the tensor.
pub fn indices(shape: &[u32], spans: &[Span]) -> Vec<usize> {
    let len: usize = shape.iter().map(|&extent| extent as usize).product();
    let mut found = Vec::new();
    for flat in 0..len {
        let mut rest = flat;
        let mut inside = true;
        for (&extent, span) in shape.iter().zip(spans).rev() {
            let index = (rest % extent as usize) as i64 - i64::from(span.start);
            rest /= extent as usize;
            let step = i64::from(span.step);
            inside &= index >= 0 && index % step == 0 && index / step < i64::from(span.extent);
        }
        if inside {
            found.push(flat);
        }
    }
    found
}
