//! Blocks against plain loops, on both drivers: random shapes of up to eight axes, all dtypes, steps, views at odd bytes.

use wgslab::{Block, Context, DType, Device, Driver, ErrorKind, MemoryMode, Span, TensorNode, gpu, host};

use crate::common::blocks::{indices, read_block, write_block};
use crate::common::model::Random;
use crate::{open, open_with};

/// A node among others, or a view that starts inside of one.
struct Tensor {
    node: TensorNode,
    base: TensorNode,
    start: usize,
    bytes: Vec<u8>,
}

fn bytes(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| random.below(256) as u8).collect()
}

/// A shape of `axes` axes and less than a few thousand elements.
fn shape(random: &mut Random, axes: u64) -> Vec<u32> {
    let most = [1, 600, 40, 14, 8, 5, 4, 3, 3][axes as usize];
    (0..axes).map(|_| 1 + random.below(most) as u32).collect()
}

fn tensor(random: &mut Random, dtype: DType, axes: u64) -> Tensor {
    let shape = shape(random, axes);
    let plain = TensorNode::new("x", dtype, shape.clone());
    let size = dtype.size_bytes() as usize;
    let (start, node, base) = if random.below(2) == 0 {
        (0, plain.clone(), plain)
    } else {
        let start = 1 + random.below(7);
        let base = TensorNode::new("base", dtype, [plain.element_len() as u32 + start as u32 + 3]);
        (start as usize * size, TensorNode::view("view", &base, start, shape), base)
    };
    let bytes = bytes(random, base.size_bytes() as usize);
    Tensor { node, base, start, bytes }
}

fn span(random: &mut Random, extent: u32) -> Span {
    match random.below(8) {
        0 => Span::from(0..extent),
        1 => Span::from(extent..extent),
        kind => {
            let start = random.below(u64::from(extent)) as u32;
            let end = start + 1 + random.below(u64::from(extent - start)) as u32;
            Span::stepped(start..end, if kind < 5 { 1 } else { 1 + random.below(3) as u32 })
        }
    }
}

fn block(random: &mut Random, node: &TensorNode) -> Block {
    let spans: Vec<_> = node.shape().iter().map(|&extent| span(random, extent)).collect();
    Block::new(node, &spans).unwrap()
}

/// A block of `node` of those extents, if it has room for one.
fn block_of(random: &mut Random, node: &TensorNode, extents: &[u32]) -> Block {
    let spans: Vec<_> = node
        .shape()
        .iter()
        .zip(extents)
        .map(|(&axis, &extent)| {
            let steps = if extent > 1 { (axis - 1) / (extent - 1) } else { 4 };
            let step = 1 + random.below(u64::from(steps.min(3))) as u32;
            let reach = if extent == 0 { 0 } else { (extent - 1) * step + 1 };
            Span { start: random.below(u64::from(axis - reach) + 1) as u32, extent, step }
        })
        .collect();
    Block::new(node, &spans).unwrap()
}

impl Tensor {
    fn place(&self, index: usize) -> std::ops::Range<usize> {
        let size = self.node.dtype().size_bytes() as usize;
        self.start + index * size..self.start + (index + 1) * size
    }

    fn gather(&self, block: &Block) -> Vec<u8> {
        let found = indices(self.node.shape(), block.spans());
        found.into_iter().flat_map(|index| self.bytes[self.place(index)].to_vec()).collect()
    }

    fn scatter(&mut self, block: &Block, row: &[u8]) {
        let size = self.node.dtype().size_bytes() as usize;
        for (index, element) in indices(self.node.shape(), block.spans()).into_iter().zip(row.chunks(size)) {
            let place = self.place(index);
            self.bytes[place].copy_from_slice(element);
        }
    }
}

async fn random_blocks<D: Driver>(device: &Device<D>, rounds: u64) {
    for seed in 0..rounds {
        let mut random = Random::new(seed);
        let dtype = DType::ALL[random.below(8) as usize];
        let axes = random.below(9);
        let (mut x, mut y) = (tensor(&mut random, dtype, axes), tensor(&mut random, dtype, axes));
        let uploads = [(&x.base, x.bytes.as_slice()), (&y.base, y.bytes.as_slice())];
        let mut context = Context::root(device).init_from_host_many(&uploads).unwrap();
        for tensor in [&x, &y].into_iter().filter(|tensor| tensor.node != tensor.base) {
            context = context.alias(&[&tensor.node]).unwrap();
        }
        for step in 0..6 {
            let at = format!("seed {seed}, step {step}, {:?}", x.node);
            let part = block(&mut random, &x.node);
            let len = part.element_len() * dtype.size_bytes();
            match random.below(4) {
                0 | 1 => {
                    let row = bytes(&mut random, len as usize);
                    write_block(&context, &x.node, &part, &row).unwrap();
                    x.scatter(&part, &row);
                }
                2 => {
                    let target = block_of(&mut random, &x.node, &part.extents());
                    context.copy_block(&x.node, &part, &x.node, &target).unwrap();
                    let row = x.gather(&part);
                    x.scatter(&target, &row);
                }
                _ => {
                    let fits = part.extents().iter().zip(y.node.shape()).all(|(part, shape)| part <= shape);
                    if fits {
                        let target = block_of(&mut random, &y.node, &part.extents());
                        context.copy_block(&x.node, &part, &y.node, &target).unwrap();
                        let row = x.gather(&part);
                        y.scatter(&target, &row);
                    }
                }
            }
            let part = block(&mut random, &x.node);
            assert_eq!(read_block(&context, &x.node, &part).await.unwrap(), x.gather(&part), "{at}: {part}");
            let all = context.to_host_many(&[&x.base, &y.base]).await.unwrap();
            assert!(all == [x.bytes.clone(), y.bytes.clone()], "{at}: bytes beside the block changed");
        }
    }
    assert_eq!(device.report().in_use_bytes, 0);
    device.await_idle().await.unwrap();
}

#[test]
fn random_blocks_are_what_plain_loops_say_on_the_gpu() {
    pollster::block_on(random_blocks(&open(), 400));
}

#[test]
fn random_blocks_are_what_plain_loops_say_over_many_heaps() {
    let options =
        gpu::OpenOptions { limits: gpu::LimitsChoice::Default, heap_bytes: Some(2048), ..gpu::OpenOptions::default() };
    pollster::block_on(random_blocks(&open_with(options), 150));
}

#[test]
fn random_blocks_are_what_plain_loops_say_on_the_host() {
    pollster::block_on(random_blocks(&host::open(host::OpenOptions::default()).unwrap(), 400));
}

/// Fifteen axes that do not merge: more than the kernel's parameter block has room for.
async fn many_axes<D: Driver>(device: &Device<D>) {
    let x = TensorNode::new("x", DType::U8, [3; 15]);
    let data: Vec<u8> = (0..x.element_len()).map(|index| (index % 251) as u8).collect();
    let context = Context::root(device).init_from_host(&x, &data).unwrap();
    let block = Block::new(&x, &[Span::stepped(0..3, 2); 15]).unwrap();
    let mut places = vec![0];
    for _ in 0..15 {
        places = places.iter().flat_map(|place| [place * 3, place * 3 + 2]).collect();
    }
    let want: Vec<u8> = places.iter().map(|&place: &usize| data[place]).collect();
    assert_eq!(context.to_host_block::<u8>(&x, &block).await.unwrap(), want);
}

#[test]
fn more_axes_than_the_kernel_has_are_several_dispatches() {
    pollster::block_on(many_axes(&open()));
    pollster::block_on(many_axes(&host::open(host::OpenOptions::default()).unwrap()));
}

#[test]
fn a_block_of_whole_rows_is_one_range_and_a_column_one_kernel() {
    let device = open();
    let x = TensorNode::new("x", DType::F32, [512, 512]);
    let context = Context::root(&device).init_zeros(&[&x]).unwrap();
    device.sync().unwrap();
    let before = device.stats();
    let rows = Block::new(&x, &[Span::from(100..300), Span::from(0..512)]).unwrap();
    context.from_host_block(&x, &rows, &vec![1.0f32; 200 * 512]).unwrap();
    let halves = Block::new(&x, &[Span::stepped(0..512, 64), Span::from(0..512)]).unwrap();
    context.from_host_block(&x, &halves, &vec![2.0f32; 8 * 512]).unwrap();
    let between = device.stats();
    assert_eq!(between.dispatches - before.dispatches, 1, "short runs go by the kernel");
    let column = Block::new(&x, &[Span::from(0..512), Span::from(7..8)]).unwrap();
    context.from_host_block(&x, &column, &vec![3.0f32; 512]).unwrap();
    let read = pollster::block_on(context.to_host_block::<f32>(&x, &column)).unwrap();
    assert_eq!(read, [3.0; 512]);
    let after = device.stats();
    assert_eq!(after.dispatches - between.dispatches, 2);
    assert_eq!(
        after.buffers_created - before.buffers_created,
        2,
        "one for uploads, one to read back, none for the row"
    );
}

#[test]
fn long_runs_go_by_commands() {
    let device = open();
    let x = TensorNode::new("x", DType::I32, [12, 4, 4096]);
    let context = Context::root(&device).init_zeros(&[&x]).unwrap();
    let block = Block::new(&x, &[Span::stepped(1..12, 3), Span::from(1..3), Span::from(0..4096)]).unwrap();
    let data: Vec<i32> = (0..block.element_len() as i32).collect();
    context.from_host_block(&x, &block, &data).unwrap();
    let read = pollster::block_on(context.to_host_block::<i32>(&x, &block)).unwrap();
    assert_eq!(read, data);
    assert_eq!(device.stats().dispatches, 0);
    let all = pollster::block_on(context.to_host::<i32>(&x)).unwrap();
    let found = indices(x.shape(), block.spans());
    assert_eq!(found.iter().map(|&index| all[index]).collect::<Vec<_>>(), data);
    assert_eq!(all.iter().filter(|&&element| element != 0).count(), data.len() - 1);
}

async fn refusals<D: Driver>(device: &Device<D>) {
    let x = TensorNode::new("x", DType::F32, [4, 6]);
    let y = TensorNode::new("y", DType::I32, [4, 6]);
    let z = TensorNode::new("z", DType::F32, [6, 4]);
    let fixed = TensorNode::with_mode("fixed", DType::F32, [4, 6], MemoryMode::Constant);
    let context = Context::root(device).init_zeros(&[&x, &y, &z]).unwrap();
    let context = context.init_from_host(&fixed, &[1.0f32; 24]).unwrap();
    let spans = [Span::from(0..2), Span::stepped(0..6, 2)];
    let block = Block::new(&x, &spans).unwrap();
    let other = Block::new(&z, &[Span::from(0..2), Span::from(0..3)]).unwrap();
    let expect = |error: wgslab::Error, kind, part: &str| {
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    let shape = ErrorKind::ShapeMismatch;
    let error = context.from_host_block(&x, &block, &[1.0f32; 5]).unwrap_err();
    expect(error, shape, "has 6 elements (24 bytes), but the array has 5 (20 bytes)");
    let error = context.from_host_block(&x, &block, &[1i32; 6]).unwrap_err();
    expect(error, ErrorKind::DTypeMismatch, "is f32, but the array is i32");
    let error = context.from_host_block(&z, &block, &[1.0f32; 6]).unwrap_err();
    expect(error, shape, "[0:2, 0:5:2] was made for the shape [4, 6], but node");
    let error = context.from_host_block(&fixed, &block, &[1.0f32; 6]).unwrap_err();
    expect(error, ErrorKind::Unsupported, "is a constant");
    let error = context.to_host_block::<f32>(&z, &block).await.unwrap_err();
    expect(error, shape, "make one for it");
    let error = context.to_host_block::<i32>(&x, &block).await.unwrap_err();
    expect(error, ErrorKind::DTypeMismatch, "convert the array");
    let error = context.copy_block(&x, &block, &y, &block).unwrap_err();
    expect(error, ErrorKind::DTypeMismatch, "run a cast kernel");
    let smaller = Block::new(&z, &[Span::from(0..2), Span::from(0..2)]).unwrap();
    let error = context.copy_block(&x, &block, &z, &smaller).unwrap_err();
    expect(error, shape, "have the extents [2, 3] and [2, 2]; give blocks of the same extents");
    context.copy_block(&x, &block, &z, &other).unwrap();
    context.copy_block(&fixed, &block, &z, &other).unwrap();
    assert_eq!(context.to_host_block::<f32>(&z, &other).await.unwrap(), [1.0; 6]);
    assert_eq!(context.to_host::<f32>(&z).await.unwrap().iter().sum::<f32>(), 6.0);
    let absent = TensorNode::new("absent", DType::F32, [4, 6]);
    let error = context.to_host_block::<f32>(&absent, &block).await.unwrap_err();
    expect(error, ErrorKind::UnknownNode, "absent");
    context.finalize();
    let error = context.copy_block(&x, &block, &z, &other).unwrap_err();
    expect(error, ErrorKind::Disposed, "finalized");
}

#[test]
fn what_does_not_fit_is_refused_on_both_drivers() {
    pollster::block_on(refusals(&open()));
    pollster::block_on(refusals(&host::open(host::OpenOptions::default()).unwrap()));
}

#[test]
fn a_block_without_room_for_its_row_is_refused_and_nothing_leaks() {
    let device = open_with(gpu::OpenOptions { memory_budget_bytes: Some(1 << 20), ..gpu::OpenOptions::default() });
    let x = TensorNode::new("x", DType::F32, [512, 400]);
    let context = Context::root(&device).init_zeros(&[&x]).unwrap();
    let columns = Block::new(&x, &[Span::from(0..512), Span::stepped(0..400, 2)]).unwrap();
    let data = vec![1.0f32; 512 * 200];
    for _ in 0..3 {
        let error = context.from_host_block(&x, &columns, &data).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        assert!(error.to_string().contains("a temporary range of 409600 bytes for a block"), "{error}");
        let error = pollster::block_on(context.to_host_block::<f32>(&x, &columns)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    }
    // A row that fits is free again after each: all of them together would not fit.
    let tenth = Block::new(&x, &[Span::from(0..512), Span::stepped(0..400, 20)]).unwrap();
    for round in 0..200 {
        context.from_host_block(&x, &tenth, &vec![round as f32; 512 * 20]).unwrap();
        drop(context.to_host_block::<f32>(&x, &tenth));
    }
    let read = pollster::block_on(context.to_host_block::<f32>(&x, &tenth)).unwrap();
    assert_eq!(read, vec![199.0; 512 * 20]);
    let all = pollster::block_on(context.to_host::<f32>(&x)).unwrap();
    assert_eq!(all.iter().filter(|&&element| element == 0.0).count(), 512 * 380);
    drop(context);
    Context::root(&device).init_zeros(&[&TensorNode::new("y", DType::F32, [512, 400])]).unwrap();
}
