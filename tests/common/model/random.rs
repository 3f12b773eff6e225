//! The generator of the numbers that programs are made of, and the nodes of a program.

use wgslab::{DType, MemoryMode, TensorNode};

/// A small generator of numbers: the programs are the same on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    pub fn bytes(&mut self, len: u64) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

/// 260 words are over the cap that the programs run under.
const LENGTHS: [u32; 8] = [0, 1, 3, 5, 64, 67, 200, 260];

/// Nodes of one program.
pub fn make_nodes(random: &mut Random) -> Vec<TensorNode> {
    let mut nodes: Vec<TensorNode> = Vec::new();
    for index in 0..4 + random.index(6) {
        let dtype = [DType::U8, DType::I32, DType::F16, DType::I32][random.index(4)];
        let mode = if random.below(6) == 0 { MemoryMode::Constant } else { MemoryMode::OnDevice };
        let plain = |random: &mut Random| {
            TensorNode::with_mode(format!("n{index}"), dtype, [LENGTHS[random.index(LENGTHS.len())]], mode)
        };
        let node = match nodes.get(random.index(nodes.len() + 1)) {
            Some(base) if random.below(2) == 0 => {
                // Some reach past their base.
                let start = random.below(base.element_len() + 2);
                let end = base.element_len() + random.below(2) * 2;
                let len = random.below(end.saturating_sub(start) + 1) as u32;
                TensorNode::view(format!("v{index}"), base, start, [len])
            }
            _ => plain(random),
        };
        nodes.push(node);
    }
    let kept = nodes.len();
    for index in kept..kept + random.index(5) {
        // Often as long as another, so that one can be cast to the other.
        let len = match random.below(2) {
            0 => nodes[random.index(kept)].shape()[0],
            _ => LENGTHS[random.index(LENGTHS.len())],
        };
        let dtype = [DType::U8, DType::I32, DType::F16, DType::I32][random.index(4)];
        let mode = if random.below(6) == 0 { MemoryMode::Virtual } else { MemoryMode::Local };
        let node = TensorNode::with_mode(format!("l{index}"), dtype, [len], mode);
        let view = (random.below(8) == 0).then(|| TensorNode::view(format!("w{index}"), &node, 0, [len / 2]));
        nodes.push(node);
        nodes.extend(view);
    }
    nodes
}
