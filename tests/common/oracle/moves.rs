//! Bytes between the host, contexts and devices.

use wgslab::Landing;

use super::memory::padded;
use super::{Oracle, Place, Refusal, Scratch, Work, is_merge, refuse};

impl Oracle {
    pub(super) fn live(&self, line: usize) -> Result<(), Refusal> {
        if self.lines[line].finalized { refuse("disposed", "was finalized") } else { Ok(()) }
    }

    /// The device of a context, and where a node is there.
    pub(super) fn place(&self, line: usize, node: usize) -> Result<(usize, Place), Refusal> {
        self.live(line)?;
        match self.lines[line].places.get(&node) {
            Some(place) => Ok((self.lines[line].device, *place)),
            None => refuse("unknown-node", &self.nodes[node].name),
        }
    }

    pub(super) fn writable(&self, line: usize, node: usize) -> Result<(usize, Place), Refusal> {
        let found = self.place(line, node)?;
        if self.nodes[node].constant { refuse("unsupported", &self.nodes[node].name) } else { Ok(found) }
    }

    pub(super) fn inside(&self, node: usize, start: u64, len: u64) -> Result<(), Refusal> {
        let node = &self.nodes[node];
        if start + len > node.size() { refuse("shape-mismatch", &node.name) } else { Ok(()) }
    }

    /// The bytes of a node.
    pub(super) fn bytes(&self, line: usize, node: usize) -> Result<Vec<u8>, Refusal> {
        let (device, place) = self.place(line, node)?;
        self.memories[device].read(place, self.nodes[node].size())
    }

    /// A child that has those nodes too.
    pub(super) fn extend(&mut self, of: usize, chosen: &[usize], zeroed: bool) -> Result<usize, Refusal> {
        self.extend_with(of, chosen, &[], zeroed).map(|(child, _)| child)
    }

    /// As `extend`, with a place for local nodes that are used from one step to another.
    pub(super) fn extend_with(
        &mut self,
        of: usize,
        chosen: &[usize],
        locals: &[(usize, usize, usize)],
        zeroed: bool,
    ) -> Result<(usize, Scratch), Refusal> {
        self.live(of)?;
        let device = self.lines[of].device;
        let mut refusal = Refusal::default();
        for (index, node) in chosen.iter().enumerate() {
            if self.is_unkept(*node) {
                refusal.add("unsupported", &self.nodes[*node].name);
            }
            if self.lines[of].places.contains_key(node) || chosen[..index].contains(node) {
                refusal.add("duplicate-node", &self.nodes[*node].name);
            }
            if padded(self.nodes[*node].size()) > self.memories[device].cap() {
                refusal.add("limit-exceeded", &self.nodes[*node].name);
            }
        }
        for (node, ..) in locals {
            if padded(self.nodes[*node].size()) > self.memories[device].cap() {
                refusal.add("limit-exceeded", &self.nodes[*node].name);
            }
        }
        if let Err(refused) = refusal.or_ok() {
            // Nodes that fit may be over the budget all the same.
            let sizes = chosen.iter().map(|&node| padded(self.nodes[node].size()));
            let fitting: u64 = sizes.filter(|&size| size <= self.memories[device].cap()).sum();
            return Err(refused.or(self.memories[device].within_budget(fitting)));
        }
        let (placed, holds) = self.memories[device].place(&self.nodes, chosen, locals, zeroed)?;
        let child = self.child(of);
        let (scratch, kept): (Scratch, Scratch) =
            placed.into_iter().partition(|(node, _)| self.nodes[*node].is_local());
        self.lines[child].places.extend(kept);
        self.lines[child].holds = holds;
        Ok((child, scratch))
    }

    /// Whether no context can have a node.
    pub(super) fn is_unkept(&self, node: usize) -> bool {
        self.nodes[node].is_local() || self.nodes[node].is_virtual()
    }

    pub(super) fn upload(&mut self, of: usize, chosen: &[usize], bytes: &[Vec<u8>]) -> Result<String, Refusal> {
        for (&node, bytes) in chosen.iter().zip(bytes) {
            if bytes.len() as u64 != self.nodes[node].size() {
                return refuse("shape-mismatch", &self.nodes[node].name);
            }
        }
        let child = self.extend(of, chosen, false)?;
        for (&node, bytes) in chosen.iter().zip(bytes) {
            self.fill(child, node, bytes)?;
        }
        Ok(self.keep(child))
    }

    /// Gives a new node its bytes; a constant that the device had keeps its own.
    fn fill(&mut self, line: usize, node: usize, bytes: &[u8]) -> Result<(), Refusal> {
        let (device, place) = self.place(line, node)?;
        if !self.memories[device].is_shared(node, place) {
            self.memories[device].write(place, bytes)?;
            self.memories[device].share(&self.nodes, node, place);
        }
        Ok(())
    }

    pub(super) fn alias(&mut self, of: usize, node: usize) -> Result<String, Refusal> {
        self.live(of)?;
        let view = &self.nodes[node];
        let Some((base, start)) = view.base else { return refuse("shape-mismatch", &view.name) };
        if self.lines[of].places.contains_key(&node) {
            return refuse("duplicate-node", &view.name);
        }
        let (device, place) = self.place(of, base)?;
        if start + view.len > self.nodes[base].len {
            return refuse("shape-mismatch", &self.nodes[base].name);
        }
        let place = place.at(start * view.element);
        let child = self.child(of);
        self.memories[device].hold(place.pool);
        self.lines[child].holds = vec![place.pool];
        self.lines[child].places.insert(node, place);
        Ok(self.keep(child))
    }

    pub(super) fn write(&mut self, of: usize, node: usize, start: u64, bytes: &[u8]) -> Result<String, Refusal> {
        let element = self.nodes[node].element;
        let (device, place) = self.writable(of, node)?;
        // Whole elements, from a whole element on.
        let start = start / element * element;
        let bytes = &bytes[..bytes.len() / element as usize * element as usize];
        self.inside(node, start, bytes.len() as u64)?;
        self.memories[device].write(place.at(start), bytes)?;
        Ok(String::new())
    }

    /// A routine that copies a node within a device, or nothing.
    pub(super) fn transfer(
        &mut self,
        to: usize,
        node: usize,
        from: usize,
        into: Landing,
    ) -> Result<Option<super::Job>, Refusal> {
        let device = self.lines[to].device;
        self.live(to)?;
        let source = self.place(from, node)?;
        let root = self.root(node);
        let here = self.lines[to].places.get(&node).map(|place| (device, *place));
        let into = if is_merge(into) {
            self.memories[device].reserve_merge(self.nodes[node].size())?;
            None
        } else {
            if self.place(to, node)? == source {
                return Ok(None);
            }
            Some(self.writable(to, node)?.1)
        };
        // The same bytes seen from two lines are read here; else they are read in the other line.
        let reads = if here == Some(source) { vec![root] } else { Vec::new() };
        let writes = if into.is_some() { vec![root] } else { Vec::new() };
        let child = self.child(to);
        if into.is_none() {
            self.lines[child].merging = Some(node);
        }
        let work = Work::Copy { node, from: source.1, into };
        let mut job = self.behind(to, child, work, reads, writes);
        let writers = self.conflicts(from, &[root], &[]);
        job.waits_for.extend(writers);
        job.source = Some(from);
        Ok(Some(job))
    }

    pub(super) fn init_from_device(&mut self, to: usize, node: usize, from: usize) -> Result<String, Refusal> {
        self.place(from, node)?;
        let child = self.extend(to, &[node], false)?;
        if let Some(job) = self.transfer(child, node, from, Landing::Node)? {
            self.check_waits(&job)?;
            let target = self.place(child, node)?;
            self.copy_now(self.place(from, node)?, target, node)?;
        }
        Ok(self.keep(child))
    }

    /// Copies a node within a device, or through the host and a place of its own on the other one.
    pub(super) fn copy_now(
        &mut self,
        (of, from): (usize, Place),
        (device, to): (usize, Place),
        node: usize,
    ) -> Result<(), Refusal> {
        let size = self.nodes[node].size();
        let bytes = self.memories[of].read(from, size)?;
        if of != device {
            self.memories[device].within_budget(padded(size))?;
        }
        self.memories[device].write(to, &bytes)
    }

    /// Copies at once what `source` gives, to the node's place or into the merge buffer.
    pub(super) fn copy_from(
        &mut self,
        to: usize,
        node: usize,
        into: Landing,
        source: impl Fn(&Self) -> Result<Vec<u8>, Refusal>,
    ) -> Result<String, Refusal> {
        let (device, place) = if is_merge(into) {
            self.live(to)?;
            let device = self.lines[to].device;
            self.memories[device].reserve_merge(self.nodes[node].size())?;
            self.memories[device].tenant = None;
            (device, Place { pool: 0, offset: 0 })
        } else {
            self.writable(to, node)?
        };
        let bytes = source(self)?;
        self.memories[device].write(place, &bytes)?;
        if is_merge(into) {
            self.memories[device].tenant = Some(node);
        }
        Ok(String::new())
    }

    /// A child that has a node too, with the bytes that `source` gives.
    pub(super) fn init_from(
        &mut self,
        to: usize,
        node: usize,
        source: impl Fn(&Self) -> Result<Vec<u8>, Refusal>,
    ) -> Result<String, Refusal> {
        let child = self.extend(to, &[node], false)?;
        let (device, place) = self.place(child, node)?;
        if !self.memories[device].is_shared(node, place) {
            let bytes = source(self)?;
            self.fill(child, node, &bytes)?;
        }
        Ok(self.keep(child))
    }

    pub(super) fn alloc_by_hand(&mut self, device: usize, gap: u32, merge: bool, size: u64) -> Result<String, Refusal> {
        let memory = &mut self.memories[device];
        let pool = if merge { 0 } else { memory.next() + gap };
        memory.make_within_budget(pool, padded(size))?;
        if !merge {
            self.pools.push((device, pool));
        }
        Ok(format!("p{pool}: {}", padded(size)))
    }
}
