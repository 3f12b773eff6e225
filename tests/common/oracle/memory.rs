//! Pools as plain bytes: the planner's arithmetic, who keeps a pool, constants and the merge buffer.

use std::collections::BTreeMap;

use super::{Node, Place, Refusal, refuse};

const ALIGNMENT: u64 = 256;

impl Place {
    pub(super) fn at(self, start: u64) -> Self {
        Self { offset: self.offset + start, ..self }
    }
}

#[derive(Clone, Debug)]
struct Pool {
    bytes: Vec<u8>,
    residents: Vec<(usize, u64)>,
    keepers: u32,
}

/// The memory of one device.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pools: BTreeMap<u32, Pool>,
    next: u32,
    cap: u64,
    budget: Option<u64>,
    /// Constants that every context shares.
    constants: BTreeMap<usize, Place>,
    /// What the merge buffer holds.
    pub(super) tenant: Option<usize>,
}

/// Sizes of segments, and for each node its segment and offset.
type Plan = (Vec<u64>, Vec<(usize, u64)>);
/// Places of nodes, and the pools to keep for them.
type Placed = (Vec<(usize, Place)>, Vec<u32>);

/// Bytes with padding: an empty node has a place of its own.
pub(super) fn padded(size: u64) -> u64 {
    size.max(1).div_ceil(ALIGNMENT) * ALIGNMENT
}

impl Memory {
    pub(super) fn new(next: u32, cap: u64, budget: Option<u64>) -> Self {
        Self { pools: BTreeMap::new(), next, cap, budget, constants: BTreeMap::new(), tenant: None }
    }

    pub(super) fn in_use(&self) -> u64 {
        self.pools.values().map(|pool| pool.bytes.len() as u64).sum()
    }

    /// Segment sizes, and for each node its segment and offset: in order, a new segment where the cap would be crossed.
    pub(super) fn plan(&self, nodes: &[Node], chosen: &[usize]) -> Result<Plan, Refusal> {
        let (mut sizes, mut places) = (Vec::<u64>::new(), Vec::new());
        for &node in chosen {
            let size = padded(nodes[node].size());
            if size > self.cap {
                return refuse("limit-exceeded", &nodes[node].name);
            }
            if sizes.last().is_none_or(|used| used + size > self.cap) {
                sizes.push(0);
            }
            let segment = sizes.len() - 1;
            places.push((segment, sizes[segment]));
            sizes[segment] += size;
        }
        Ok((sizes, places))
    }

    /// As `plan`, for nodes that are needed from one step to another: those that are needed at a time share no byte. The
    /// largest first, each as far in front as it can be.
    pub(super) fn pack(&self, nodes: &[Node], locals: &[(usize, usize, usize)]) -> Plan {
        let (mut sizes, mut places) = (Vec::<u64>::new(), vec![(0, 0); locals.len()]);
        let size = |index: usize| padded(nodes[locals[index].0].size());
        let mut order: Vec<usize> = (0..locals.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(size(index)));
        for (rank, &index) in order.iter().enumerate() {
            let (_, first, last) = locals[index];
            let at_a_time: Vec<_> =
                order[..rank].iter().filter(|&&other| locals[other].1 <= last && first <= locals[other].2).collect();
            let is_free = |&(segment, offset): &(usize, u64)| {
                offset + size(index) <= self.cap
                    && at_a_time.iter().all(|&&other| {
                        let (of, start) = places[other];
                        of != segment || offset + size(index) <= start || start + size(other) <= offset
                    })
            };
            let in_segment = |segment| (0..self.cap / ALIGNMENT).map(move |unit| (segment, unit * ALIGNMENT));
            places[index] = (0..=sizes.len()).flat_map(in_segment).find(is_free).unwrap();
            let (segment, offset) = places[index];
            sizes.resize(sizes.len().max(segment + 1), 0);
            sizes[segment] = sizes[segment].max(offset + size(index));
        }
        (sizes, places)
    }

    /// Places new nodes: working ones first, then local ones, then constants that the device does not have; then those that
    /// it has. Gives their places and the pools to keep. A refusal changes nothing.
    pub(super) fn place(
        &mut self,
        nodes: &[Node],
        chosen: &[usize],
        locals: &[(usize, usize, usize)],
        zeroed: bool,
    ) -> Result<Placed, Refusal> {
        let (constants, working): (Vec<_>, Vec<_>) = chosen.iter().partition(|&&node| nodes[node].constant);
        let (known, new): (Vec<_>, Vec<_>) = constants.into_iter().partition(|node| self.constants.contains_key(node));
        let planned = [
            (self.plan(nodes, &working)?, working),
            (self.pack(nodes, locals), locals.iter().map(|(node, ..)| *node).collect()),
            (self.plan(nodes, &new)?, new.clone()),
        ];
        let wanted: u64 = planned.iter().flat_map(|((sizes, _), _)| sizes).sum();
        self.within_budget(wanted)?;
        let (mut placed, mut keep) = (Vec::new(), Vec::new());
        for ((sizes, places), group) in planned {
            let first = self.next;
            for size in sizes {
                keep.push(self.next);
                self.make(self.next, size);
            }
            for (node, (segment, offset)) in group.into_iter().zip(places) {
                let pool = first + segment as u32;
                placed.push((node, Place { pool, offset }));
                let residents = &mut self.pools.get_mut(&pool).unwrap().residents;
                residents.push((node, offset));
                residents.sort_by_key(|&(node, offset)| (offset, node));
            }
        }
        if zeroed {
            new.into_iter().for_each(|node| {
                let place = placed.iter().find(|(placed, _)| *placed == node).unwrap().1;
                self.share(nodes, node, place);
            });
        }
        for node in known {
            let place = self.constants[&node];
            self.hold(place.pool);
            keep.push(place.pool);
            placed.push((node, place));
        }
        Ok((placed, keep))
    }

    pub(super) fn within_budget(&self, wanted: u64) -> Result<(), Refusal> {
        match self.budget {
            Some(budget) if self.in_use() + wanted > budget => refuse("out-of-memory", budget.to_string()),
            _ => Ok(()),
        }
    }

    /// Makes a pool under an id; what was there is gone.
    fn make(&mut self, pool: u32, size: u64) {
        let _ = self.free(pool);
        self.pools.insert(pool, Pool { bytes: vec![0; size as usize], residents: Vec::new(), keepers: 1 });
        self.next = self.next.max(pool + 1);
    }

    pub(super) fn cap(&self) -> u64 {
        self.cap
    }

    pub(super) fn next(&self) -> u32 {
        self.next
    }

    pub(super) fn free(&mut self, pool: u32) -> Result<(), Refusal> {
        if self.pools.remove(&pool).is_none() {
            return refuse("disposed", format!("p{pool}"));
        }
        if pool == 0 {
            self.tenant = None;
        }
        self.constants.retain(|_, place| place.pool != pool);
        Ok(())
    }

    pub(super) fn hold(&mut self, pool: u32) {
        if let Some(pool) = self.pools.get_mut(&pool) {
            pool.keepers += 1;
        }
    }

    pub(super) fn release(&mut self, pool: u32) {
        if let Some(found) = self.pools.get_mut(&pool) {
            found.keepers -= 1;
            if found.keepers == 0 {
                let _ = self.free(pool);
            }
        }
    }

    /// Shares a constant that has its bytes. Views of constants are not shared.
    pub(super) fn share(&mut self, nodes: &[Node], node: usize, place: Place) {
        if nodes[node].constant && nodes[node].base.is_none() && !self.constants.contains_key(&node) {
            self.constants.insert(node, place);
            self.hold(place.pool);
        }
    }

    pub(super) fn is_shared(&self, node: usize, place: Place) -> bool {
        self.constants.get(&node) == Some(&place)
    }

    /// Frees the pools that only shared constants keep; gives their bytes.
    pub(super) fn free_constants(&mut self) -> u64 {
        let mut shared = BTreeMap::<u32, u32>::new();
        self.constants.values().for_each(|place| *shared.entry(place.pool).or_default() += 1);
        let mut freed = 0;
        for (pool, count) in shared {
            if self.pools[&pool].keepers == count {
                freed += self.pools[&pool].bytes.len() as u64;
                let _ = self.free(pool);
            }
        }
        freed
    }

    pub(super) fn merge_capacity(&self) -> u64 {
        self.pools.get(&0).map_or(0, |pool| pool.bytes.len() as u64)
    }

    /// Makes the merge buffer at least that large; a larger one is made anew, and nobody is in it.
    pub(super) fn reserve_merge(&mut self, size: u64) -> Result<(), Refusal> {
        if self.merge_capacity() < size.max(1) { self.make_within_budget(0, padded(size)) } else { Ok(()) }
    }

    /// As `make`, unless it is over the budget; then what was there stays.
    pub(super) fn make_within_budget(&mut self, pool: u32, size: u64) -> Result<(), Refusal> {
        let before = self.pools.get(&pool).map_or(0, |pool| pool.bytes.len() as u64);
        self.within_budget(size - before.min(size))?;
        self.make(pool, size);
        Ok(())
    }

    fn range(&self, place: Place, len: u64) -> Result<std::ops::Range<usize>, Refusal> {
        let Some(pool) = self.pools.get(&place.pool) else { return refuse("disposed", format!("p{}", place.pool)) };
        if place.offset + len > pool.bytes.len() as u64 {
            return refuse("shape-mismatch", format!("p{}", place.pool));
        }
        Ok(place.offset as usize..(place.offset + len) as usize)
    }

    pub(super) fn read(&self, place: Place, len: u64) -> Result<Vec<u8>, Refusal> {
        let range = self.range(place, len)?;
        Ok(self.pools[&place.pool].bytes[range].to_vec())
    }

    pub(super) fn write(&mut self, place: Place, bytes: &[u8]) -> Result<(), Refusal> {
        let range = self.range(place, bytes.len() as u64)?;
        self.pools.get_mut(&place.pool).unwrap().bytes[range].copy_from_slice(bytes);
        Ok(())
    }

    pub(super) fn copy(&mut self, from: Place, to: Place, len: u64) -> Result<(), Refusal> {
        let bytes = self.read(from, len)?;
        self.write(to, &bytes)
    }

    pub(super) fn look(&self, nodes: &[Node]) -> String {
        let (mut padding, mut text) = (0, String::new());
        for (id, pool) in &self.pools {
            let used: u64 = pool.residents.iter().map(|(node, _)| nodes[*node].size()).sum();
            let spare = if pool.residents.is_empty() { 0 } else { (pool.bytes.len() as u64).saturating_sub(used) };
            padding += spare;
            text.push_str(&format!("; p{id} {} padding {spare}", pool.bytes.len()));
            for (node, offset) in &pool.residents {
                text.push_str(&format!(" {}+{offset}:{}", nodes[*node].label, nodes[*node].size()));
            }
        }
        for (node, place) in &self.constants {
            text.push_str(&format!("; constant n{}@p{}+{}", nodes[*node].id(), place.pool, place.offset));
        }
        let holds = self.tenant.map(|node| format!(" with {}", nodes[node].name)).unwrap_or_default();
        let (next, in_use, capacity) = (self.next, self.in_use(), self.merge_capacity());
        format!("next p{next}, {in_use} in use, {padding} padding{text}; merge buffer {capacity}{holds}")
    }
}

impl Node {
    /// The number in its name.
    fn id(&self) -> &str {
        self.name[1..].split('"').next().unwrap()
    }
}
