//! Many cycles of linking, running and finalizing random deltas: after the first ones nothing may grow.

use wgslab::gpu::Gpu;
use wgslab::{Access, Code, Context, DType, Device, KernelSpec, Routine, TensorNode};

use super::model::Random;

const X_LEN: u32 = 64;
/// Kernels, each with outputs of its own.
const KERNELS: usize = 24;
/// Contexts that are alive at a time, at most.
const MAX_ALIVE: usize = 8;

/// What must not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub reserved_bytes: u64,
    pub heap_count: usize,
    pub in_use_bytes: u64,
    pub pools: usize,
    pub staging_bytes: u64,
    pub buffers_created: u64,
    pub bind_groups_created: u64,
    pub pipelines_created: u64,
}

impl Snapshot {
    fn of(device: &Device<Gpu>) -> Self {
        let (report, stats) = (device.report(), device.stats());
        Self {
            reserved_bytes: report.reserved_bytes,
            heap_count: report.heap_count,
            in_use_bytes: report.in_use_bytes,
            pools: report.pools.len(),
            staging_bytes: report.staging_bytes,
            buffers_created: stats.buffers_created,
            bind_groups_created: stats.bind_groups_created,
            pipelines_created: stats.pipelines_created,
        }
    }
}

/// What a number of cycles did.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub cycles: u64,
    pub links: u64,
    pub runs: u64,
    pub checked: u64,
    pub largest_reserved_bytes: u64,
    pub warm: Snapshot,
    pub end: Snapshot,
}

/// A device with kernels that create nodes of many sizes.
#[derive(Debug)]
pub struct Cycles {
    device: Device<Gpu>,
    base: Context<Gpu>,
    codes: Vec<Code<Gpu>>,
    random: Random,
    alive: Vec<Vec<Routine<Gpu>>>,
}

impl Cycles {
    /// `largest_len` is that of the largest node, in elements.
    pub async fn new(device: &Device<Gpu>, largest_len: u32) -> Self {
        let mut random = Random::new(1);
        let x = TensorNode::new("x", DType::I32, [X_LEN]);
        let values: Vec<i32> = (0..X_LEN as i32).collect();
        let base = Context::root(device).init_from_host(&x, &values).unwrap();
        let mut codes = Vec::new();
        for kernel in 0..KERNELS {
            let outputs: Vec<_> = (0..1 + random.index(3))
                .map(|output| {
                    // Small ones as often as large ones.
                    let bound = 1 + u64::from(largest_len >> random.below(12));
                    TensorNode::new(format!("y{kernel}_{output}"), DType::I32, [1 + random.below(bound) as u32])
                })
                .collect();
            codes.push(device.compile(fill(kernel, &x, &outputs)).await.unwrap());
        }
        Self { device: device.clone(), base, codes, random, alive: Vec::new() }
    }

    /// Runs cycles; the first tenth warms up, and so does one readback of everything.
    pub async fn run(&mut self, cycles: u64) -> Figures {
        for code in &self.codes {
            let routine = self.base.link(code).await.unwrap();
            routine.run_values(&[0]).unwrap();
            check(&routine, 0).await;
        }
        let nothing = Snapshot::of(&self.device);
        let mut figures =
            Figures { cycles, links: 0, runs: 0, checked: 0, largest_reserved_bytes: 0, warm: nothing, end: nothing };
        for cycle in 0..cycles {
            self.cycle(cycle, &mut figures).await;
            figures.largest_reserved_bytes = figures.largest_reserved_bytes.max(self.device.report().reserved_bytes);
            if cycle + 1 == cycles.div_ceil(10) {
                figures.warm = self.settle().await;
            }
            if cycle.is_multiple_of(64) {
                self.device.ready().await.unwrap();
            }
        }
        figures.end = self.settle().await;
        figures
    }

    async fn cycle(&mut self, cycle: u64, figures: &mut Figures) {
        let mut chosen = Vec::new();
        for _ in 0..1 + self.random.index(4) {
            let code = self.codes[self.random.index(KERNELS)].clone();
            if !chosen.iter().any(|known: &Code<Gpu>| known.name() == code.name()) {
                chosen.push(code);
            }
        }
        let routines = if self.random.below(2) == 0 {
            self.base.link_batch(&chosen.iter().collect::<Vec<_>>()).await.unwrap()
        } else {
            let (mut line, mut routines) = (self.base.clone(), Vec::new());
            for code in &chosen {
                let routine = line.link(code).await.unwrap();
                line = routine.context().clone();
                routines.push(routine);
            }
            routines
        };
        figures.links += routines.len() as u64;
        let amount = self.random.below(1000) as i32;
        for routine in &routines {
            routine.run_values(&[amount]).unwrap();
            figures.runs += 1;
        }
        if cycle.is_multiple_of(101) {
            check(routines.last().unwrap(), amount).await;
            figures.checked += 1;
        }
        self.alive.push(routines);
        while self.alive.len() > 1 + self.random.index(MAX_ALIVE) {
            self.end_one();
        }
    }

    /// Ends a line of contexts, by finalizing them in some order, or by dropping them.
    fn end_one(&mut self) {
        let index = self.random.index(self.alive.len());
        let routines = self.alive.swap_remove(index);
        match self.random.below(3) {
            0 => routines.iter().for_each(|routine| routine.context().finalize()),
            1 => routines.iter().rev().for_each(|routine| routine.context().finalize()),
            _ => {}
        }
    }

    async fn settle(&mut self) -> Snapshot {
        while !self.alive.is_empty() {
            self.end_one();
        }
        self.device.await_idle().await.unwrap();
        Snapshot::of(&self.device)
    }
}

/// `y[i] = x[i % 64] + amount + n` for the n-th output.
fn fill(kernel: usize, x: &TensorNode, outputs: &[TensorNode]) -> KernelSpec {
    let stores: String =
        (0..outputs.len()).map(|n| format!("store_y{n}(i, load_x(i % {X_LEN}u) + static_amount() + {n});")).collect();
    let longest = outputs.iter().map(TensorNode::element_len).max().unwrap_or(0);
    let text = format!(
        "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{
            for (var i = id.x; i < {longest}u; i += 64u * 64u) {{ {stores} }} }}"
    );
    let spec = KernelSpec::new(format!("fill{kernel}"), text).tensor("x", x, Access::Read);
    let add = |spec: KernelSpec, (n, output): (usize, &TensorNode)| spec.tensor(format!("y{n}"), output, Access::Write);
    outputs.iter().enumerate().fold(spec, add).statics(["amount"]).grid([64, 1, 1])
}

async fn check(routine: &Routine<Gpu>, amount: i32) {
    for (n, output) in routine.outputs().iter().enumerate() {
        let got = routine.context().to_host::<i32>(output).await.unwrap();
        let right = |(index, got): (usize, &i32)| *got == (index as u32 % X_LEN) as i32 + amount + n as i32;
        assert!(got.iter().enumerate().all(right), "{}: {output} after amount {amount}", routine.name());
    }
}
