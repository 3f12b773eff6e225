//! What a link would allocate, before it does.

use serde::Serialize;

use crate::backend::compile::Code;
use crate::backend::link::check_merge_input;
use crate::context::Context;
use crate::driver::Driver;
use crate::driver::limits::DriverMemory;
use crate::error::Result;

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
        check_merge_input(self, code)?;
        let plan = code.link_plan(self)?;
        let slab_sizes_bytes = plan.delta.slab_sizes_bytes(self.device().limits().plan())?;
        let DriverMemory { in_use_bytes, .. } = D::memory(self.device().runner());
        let in_use_after_bytes = in_use_bytes + slab_sizes_bytes.iter().sum::<u64>();
        let budget_bytes = D::budget_bytes(self.device().dev());
        let mut nodes = Vec::new();
        for node in code.nodes().created(&plan) {
            nodes.push(node.label().to_owned());
        }
        Ok(Forecast { nodes, slab_sizes_bytes, in_use_after_bytes, budget_bytes })
    }
}
