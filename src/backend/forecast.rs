//! What a link would allocate, before it does.

use serde::Serialize;

use crate::backend::compile::Code;
use crate::backend::link::add_delta;
use crate::context::Context;
use crate::driver::Driver;
use crate::driver::limits::DriverMemory;
use crate::error::Result;
use crate::node::MemoryMode;
use crate::slab::plan::{PlanNode, plan_segments};

/// What a link would allocate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// The labels of the nodes that it would create.
    pub nodes: Vec<String>,
    /// The sizes of the slabs that it would create, in bytes, padding included.
    pub slab_sizes_bytes: Vec<u64>,
    /// Bytes of all slabs of the device after it.
    pub in_use_after_bytes: u64,
    /// What the device may use, if there is a bound.
    pub budget_bytes: Option<u64>,
}

impl Forecast {
    /// Bytes of the new slabs.
    pub fn size_bytes(&self) -> u64 {
        self.slab_sizes_bytes.iter().sum()
    }

    /// Whether the slabs are within the budget. Heaps may need more: a slab needs a gap of its size.
    pub fn is_within_budget(&self) -> bool {
        self.budget_bytes.is_none_or(|budget| self.in_use_after_bytes <= budget)
    }
}

impl<D: Driver> Context<D> {
    /// What linking that code here would allocate. Nothing is allocated.
    ///
    /// # Errors
    /// What [`Context::link`] would refuse before it allocates.
    pub fn forecast(&self, code: &Code<D>) -> Result<Forecast> {
        self.check_live()?;
        self.check_device(code)?;
        let mut delta = Vec::new();
        add_delta(self, code, &mut delta)?;
        let limits = self.device().limits().plan();
        let mut slab_sizes_bytes = Vec::new();
        for mode in [MemoryMode::OnDevice, MemoryMode::Constant] {
            let of_mode = delta.iter().filter(|node| node.mode() == mode);
            let named: Vec<_> = of_mode.map(|node| (node.to_string(), node.size_bytes())).collect();
            let nodes: Vec<_> =
                named.iter().map(|(name, size_bytes)| PlanNode { name, size_bytes: *size_bytes }).collect();
            slab_sizes_bytes.extend(plan_segments(&nodes, limits)?.segment_sizes_bytes);
        }
        let DriverMemory { in_use_bytes, .. } = D::memory(self.device().runner());
        let in_use_after_bytes = in_use_bytes + slab_sizes_bytes.iter().sum::<u64>();
        let budget_bytes = D::budget_bytes(self.device().dev());
        let nodes = delta.iter().map(|node| node.label().to_owned()).collect();
        Ok(Forecast { nodes, slab_sizes_bytes, in_use_after_bytes, budget_bytes })
    }
}
