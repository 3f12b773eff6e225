//! Several hundred MiB: spread over capped pools, moved to a second device and back to the host, with staging that does
//! not depend on how much it is.

use wgslab::gpu::Gpu;
use wgslab::{Context, DType, Device, Landing, TensorNode};

use super::model::Random;

/// What was moved, and the most staging that each device had at a time.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    pub total_bytes: u64,
    pub nodes: usize,
    pub pools: usize,
    pub staging_bytes: [u64; 2],
    pub heap_bytes: [u64; 2],
}

/// The bytes of a node: any, but the same for the same node. Only one node is in the host's memory at a time.
fn bytes(index: usize, len: u64) -> Vec<u8> {
    let mut state = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bytes = Vec::with_capacity(len as usize + 8);
    while (bytes.len() as u64) < len {
        bytes.extend_from_slice(&next().to_le_bytes());
    }
    bytes.truncate(len as usize);
    bytes
}

struct Staging<'a> {
    devices: [&'a Device<Gpu>; 2],
    most: [u64; 2],
}

impl Staging<'_> {
    fn look(&mut self) {
        for (most, device) in self.most.iter_mut().zip(self.devices) {
            *most = (*most).max(device.report().staging_bytes);
        }
    }
}

/// Moves `total_bytes` in nodes of at most `largest_bytes`: host, first device, second device, host.
pub async fn move_across(first: &Device<Gpu>, second: &Device<Gpu>, total_bytes: u64, largest_bytes: u64) -> Moved {
    let mut random = Random::new(7);
    let mut nodes = Vec::new();
    let mut left = total_bytes;
    while left > 0 {
        // Any length, whole words or not.
        let len = (1 + random.below(largest_bytes)).min(left);
        nodes.push(TensorNode::new(format!("t{}", nodes.len()), DType::U8, [len as u32]));
        left -= len;
    }
    let all: Vec<&TensorNode> = nodes.iter().collect();
    let mut staging = Staging { devices: [first, second], most: [0, 0] };

    let here = Context::root(first).init_zeros(&all).unwrap();
    let pools = first.report().pools.len();
    for (index, node) in nodes.iter().enumerate() {
        here.from_host(node, &bytes(index, node.size_bytes())).unwrap();
        staging.look();
        first.ready().await.unwrap();
    }
    // Half of them to places that are there, half to new ones.
    let (present, absent) = nodes.split_at(nodes.len() / 2);
    let mut there = Context::root(second).init_zeros(&present.iter().collect::<Vec<_>>()).unwrap();
    for node in present {
        there.copy_from(node, Landing::Node, &here).await.unwrap();
        staging.look();
    }
    for node in absent {
        there = there.init_from_other(node, &here).await.unwrap();
        staging.look();
    }
    let heap_bytes = [first, second].map(|device| device.report().reserved_bytes);
    here.finalize();
    for (index, node) in nodes.iter().enumerate() {
        let got: Vec<u8> = there.to_host(node).await.unwrap();
        staging.look();
        assert!(got == bytes(index, node.size_bytes()), "{node} of {} bytes is another", node.size_bytes());
    }
    Moved { total_bytes, nodes: nodes.len(), pools, staging_bytes: staging.most, heap_bytes }
}
