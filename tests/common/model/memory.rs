//! Steps that move bytes, and what a world shows.

use wgslab::{
    BufferLoc, Context, Device, Driver, Error, ErrorKind, Landing, MemoryMode, MemoryReport, PoolId, TensorNode,
    alloc_pool, free_pool, host, memset_zero,
};

use super::{Devices, World, places};

impl<D: Driver> World<'_, D> {
    pub(super) fn parts(
        &mut self,
        context: usize,
        keep: Option<&Vec<usize>>,
        merging: Option<Option<usize>>,
        orphan: bool,
        nodes: &[TensorNode],
    ) -> Result<String, Error> {
        let context = self.context(context);
        let mut builder = if orphan { Context::builder(context.device()) } else { context.child() };
        if let Some(keep) = keep {
            let kept = keep.iter().filter_map(|&node| Some((nodes[node].clone(), context.loc(&nodes[node])?)));
            builder = builder.ctx_buffers(kept.collect());
        }
        if let Some(merging) = merging {
            builder = builder.merge_buffer_node(merging.map(|node| nodes[node].clone()));
        }
        self.push(builder.build())
    }

    pub(super) fn write(&self, context: usize, node: &TensorNode, start: u64, bytes: &[u8]) -> Result<String, Error> {
        let size = node.dtype().size_bytes();
        let bytes = &bytes[..(bytes.len() as u64 / size * size) as usize];
        let context = self.context(context);
        match size {
            1 => context.from_host_at::<u8>(node, start, bytes),
            2 => context.from_host_at::<u16>(node, start / size, &elements(bytes)),
            _ => context.from_host_at::<i32>(node, start / size, &elements(bytes)),
        }?;
        Ok(String::new())
    }

    pub(super) async fn read_at(
        &self,
        context: usize,
        node: &TensorNode,
        start: u64,
        len: u64,
    ) -> Result<String, Error> {
        let context = self.context(context);
        let bytes: Vec<u8> = match node.dtype().size_bytes() {
            1 => context.to_host_at::<u8>(node, start, len).await?,
            2 => bytemuck::cast_slice(&context.to_host_at::<u16>(node, start, len).await?).to_vec(),
            _ => bytemuck::cast_slice(&context.to_host_at::<i32>(node, start, len).await?).to_vec(),
        };
        Ok(format!("{bytes:?}"))
    }

    pub(super) async fn copy_foreign(
        &mut self,
        context: usize,
        node: &TensorNode,
        bytes: &[u8],
        into: Option<Landing>,
    ) -> Result<String, Error> {
        let foreign = &self.devices.foreign;
        let source = Context::root(foreign).init_from_host_many(&[(node, bytes)])?;
        let context = self.context(context);
        let outcome = match into {
            Some(into) => context.copy_from(node, into, &source).await.map(|_| None),
            None => context.init_from_other(node, &source).await.map(Some),
        };
        drop(source);
        foreign.free_unused_constants();
        outcome?.map_or_else(|| Ok(String::new()), |child| self.push(child))
    }

    pub(super) async fn to_foreign(&self, context: usize, node: &TensorNode) -> Result<String, Error> {
        let foreign = &self.devices.foreign;
        let copied = Context::root(foreign).init_from_other(node, self.context(context)).await;
        let read = match &copied {
            Ok(copied) => copied.to_host_many(&[node]).await,
            Err(error) => Err(error.clone()),
        };
        drop(copied);
        foreign.free_unused_constants();
        Ok(format!("{:?}", read?))
    }

    pub(super) fn alloc_pool(&mut self, device: usize, gap: u32, merge: bool, size: u64) -> Result<String, Error> {
        let of = &self.devices.both[device];
        let pool_id = if merge { PoolId::MERGE } else { PoolId(of.next_pool_id().0 + gap) };
        alloc_pool(of, pool_id, size, 256, None)?;
        let size_bytes =
            of.report().pools.iter().find(|pool| pool.pool_id == pool_id).map_or(0, |pool| pool.size_bytes);
        memset_zero(of, pool_id, 0, size_bytes)?;
        if !merge {
            self.pools.push((device, pool_id));
        }
        Ok(format!("{pool_id}: {size_bytes}"))
    }

    fn pool(&self, pool: usize) -> Option<(usize, PoolId)> {
        self.pools.get(pool % self.pools.len().max(1)).copied()
    }

    pub(super) fn zero_pool(&self, pool: usize, start: u64, len: u64) -> Result<String, Error> {
        let Some((device, pool_id)) = self.pool(pool) else { return Ok("no pool".to_owned()) };
        memset_zero(&self.devices.both[device], pool_id, start, len)?;
        Ok(String::new())
    }

    pub(super) fn free_pool(&self, pool: usize) -> Result<String, Error> {
        let Some((device, pool_id)) = self.pool(pool) else { return Ok("no pool".to_owned()) };
        free_pool(&self.devices.both[device], pool_id)?;
        Ok(String::new())
    }

    pub(super) fn place(
        &mut self,
        context: usize,
        node: &TensorNode,
        pool: usize,
        offset: u64,
    ) -> Result<String, Error> {
        if !matches!(node.mode(), MemoryMode::OnDevice | MemoryMode::Constant) {
            return Ok("no place".to_owned());
        }
        let context = self.context(context);
        let found = self.pool(pool).filter(|(device, _)| self.devices.both[*device] == *context.device());
        let Some((_, pool_id)) = found else { return Ok("no pool".to_owned()) };
        let mut buffers = context.ctx_buffers().clone();
        buffers.insert(node.clone(), BufferLoc { pool_id, offset });
        self.push(context.child().ctx_buffers(buffers).build())
    }

    /// What the devices say of their memory: pools, nodes, bytes in use and padding, constants and the merge buffer; and
    /// what each routine waits for.
    pub fn look(&self) -> String {
        let mut seen: Vec<String> = self.devices.both.iter().map(look).collect();
        for (index, routine) in self.routines.iter().enumerate() {
            let Some(routine) = routine else { continue };
            let waits = self.waits(routine);
            if !waits.is_empty() {
                seen.push(format!("{index} waits for {waits:?}"));
            }
        }
        seen.join("\n")
    }

    /// All bytes of all live contexts, as far as they can be read.
    pub async fn all_bytes(&self) -> Vec<String> {
        let mut all = Vec::new();
        for context in &self.contexts {
            all.push(places(context));
            for (node, _) in context.locs() {
                all.push(match context.to_host_many(&[&node]).await {
                    Ok(bytes) => format!("{node} {:?}", bytes[0]),
                    Err(error) if error.kind() == ErrorKind::Bug => format!("{node} {error}"),
                    Err(error) => format!("{node} {}", error.kind().code()),
                });
            }
        }
        all
    }
}

fn look<D: Driver>(device: &Device<D>) -> String {
    let MemoryReport { padding_bytes, pools, .. } = device.report();
    // What is on its way to another device is in use too, until it has arrived; in the end everything must be gone.
    let in_use_bytes: u64 = pools.iter().map(|pool| pool.size_bytes).sum();
    let mut text = format!("next {}, {in_use_bytes} in use, {padding_bytes} padding", device.next_pool_id());
    for pool in pools {
        text.push_str(&format!("; {} {} padding {}", pool.pool_id, pool.size_bytes, pool.padding_bytes));
        for node in pool.nodes {
            text.push_str(&format!(" {}+{}:{}", node.label, node.offset, node.size_bytes));
        }
    }
    for (node, loc) in device.constant_buffer_cache() {
        text.push_str(&format!("; constant {node}@{loc}"));
    }
    let holds = device.merge_buffer().map(|(node, _)| format!(" with {node}")).unwrap_or_default();
    text.push_str(&format!("; merge buffer {}{holds}", device.merge_buffer_capacity()));
    text
}

impl<D: Driver> Devices<D> {
    /// Two devices, and one of plain memory.
    pub fn new(first: Device<D>, second: Device<D>) -> Self {
        Self { both: [first, second], foreign: host::open(host::OpenOptions::default()).unwrap() }
    }

    /// Frees what programs leave behind by their nature, and says what stays that must not.
    pub async fn clean(&self, by_hand: &[(usize, PoolId)]) -> Result<(), String> {
        for device in &self.both {
            device.free_unused_constants();
            let _ = free_pool(device, PoolId::MERGE);
        }
        for &(device, pool_id) in by_hand {
            let _ = free_pool(&self.both[device], pool_id);
        }
        for device in &self.both {
            device.await_idle().await.map_err(|error| error.to_string())?;
        }
        for device in &self.both {
            let report = device.report();
            if report.in_use_bytes != 0 || !report.pools.is_empty() || !device.constant_buffer_cache().is_empty() {
                return Err(format!("{} keeps {}", device.name(), look(device)));
            }
        }
        let left = self.foreign.report();
        if left.in_use_bytes == 0 { Ok(()) } else { Err(format!("the foreign device keeps {left:?}")) }
    }
}

fn elements<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(bytes)
}
