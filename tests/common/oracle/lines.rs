//! Routines: what linking creates and refuses, what waits for what, and what a run does to the bytes.

use wgslab::DType;

use super::{Job, Oracle, Place, Refusal, Touch, Work, refuse};

const MERGE: Place = Place { pool: 0, offset: 0 };

impl Oracle {
    /// Whether there is a kernel over those nodes of a context: not for types that it does not know, nor for nodes that
    /// share a byte.
    fn has_kernel(&self, line: usize, from: usize, to: usize) -> bool {
        let (a, b) = (&self.nodes[from], &self.nodes[to]);
        let places = &self.lines[line].places;
        let overlap = match (places.get(&from), places.get(&to)) {
            (Some(p), Some(q)) if from != to && p.pool == q.pool => {
                p.offset < q.offset + b.size() && q.offset < p.offset + a.size()
            }
            _ => false,
        };
        a.dtype == b.dtype && a.dtype != DType::F16 && !overlap
    }

    /// Adds what linking a kernel would create.
    fn missing(
        &self,
        line: usize,
        (from, to): (usize, usize),
        adds: bool,
        new: &mut Vec<usize>,
    ) -> Result<(), Refusal> {
        let mut refusal = Refusal::default();
        if self.nodes[to].constant {
            refusal.add("kernel-interface", &self.nodes[to].name);
        }
        for (node, reads) in [(from, true), (to, adds)] {
            if self.lines[line].places.contains_key(&node) || new.contains(&node) {
                continue;
            }
            if reads {
                refusal.add("unknown-node", &self.nodes[node].name);
            } else {
                new.push(node);
            }
        }
        refusal.or_ok()
    }

    /// The kernel as work, where the pools of its nodes are there.
    fn resolve(&self, line: usize, from: usize, to: usize, adds: bool, merged: bool) -> Result<Work, Refusal> {
        let device = self.lines[line].device;
        let place = |node| self.lines[line].places[&node];
        let from = (from, if merged { MERGE } else { place(from) });
        let to = (to, place(to));
        for (node, place) in [from, to] {
            self.memories[device].read(place, self.nodes[node].size())?;
        }
        Ok(Work::Kernel { from, to, adds, merged })
    }

    /// The routines of a line that have not run and must before something that reads and writes those nodes.
    pub(super) fn conflicts(&self, line: usize, reads: &[usize], writes: &[usize]) -> Vec<usize> {
        let share = |a: &[usize], b: &[usize]| a.iter().any(|node| b.contains(node));
        let must =
            |touch: &&Touch| share(&touch.writes, reads) || share(&touch.writes, writes) || share(&touch.reads, writes);
        self.lines[line].touches.iter().filter(must).map(|touch| touch.routine).collect()
    }

    /// The next routine, behind a line of contexts; `child` gets it in its own line.
    pub(super) fn behind(
        &mut self,
        line: usize,
        child: usize,
        work: Work,
        reads: Vec<usize>,
        writes: Vec<usize>,
    ) -> Job {
        let waits_for = self.conflicts(line, &reads, &writes);
        self.lines[child].touches.push(Touch { routine: self.jobs.len(), reads, writes });
        Job { context: child, source: None, work, waits_for, ran: false, alive: true }
    }

    fn touched(&self, from: usize, to: usize, adds: bool, merged: bool) -> (Vec<usize>, Vec<usize>) {
        let mut reads = if merged { Vec::new() } else { vec![self.root(from)] };
        if adds {
            reads.push(self.root(to));
        }
        (reads, vec![self.root(to)])
    }

    pub(super) fn link(&mut self, of: usize, (from, to): (usize, usize), in_place: bool) -> Result<String, Refusal> {
        if !self.has_kernel(of, from, to) {
            return Ok("no kernel".to_owned());
        }
        self.live(of)?;
        let adds = in_place || from == to;
        let mut new = Vec::new();
        self.missing(of, (from, to), adds, &mut new)?;
        self.link_into(of, &new, (from, to), adds, false)
    }

    pub(super) fn merge(&mut self, of: usize, node: usize) -> Result<String, Refusal> {
        if self.nodes[node].dtype == DType::F16 {
            return Ok("no kernel".to_owned());
        }
        self.live(of)?;
        if self.lines[of].merging != Some(node) {
            return refuse("merge-mismatch", &self.nodes[node].name);
        }
        if self.nodes[node].constant {
            return refuse("kernel-interface", &self.nodes[node].name);
        }
        if !self.lines[of].places.contains_key(&node) {
            return refuse("unknown-node", &self.nodes[node].name);
        }
        self.link_into(of, &[], (node, node), true, true)
    }

    fn link_into(
        &mut self,
        of: usize,
        new: &[usize],
        (from, to): (usize, usize),
        adds: bool,
        merged: bool,
    ) -> Result<String, Refusal> {
        let child = self.extend(of, new, true)?;
        let work = self.resolve(child, from, to, adds, merged)?;
        let (reads, writes) = self.touched(from, to, adds, merged);
        let job = self.behind(of, child, work, reads, writes);
        Ok(self.keep_job(job))
    }

    pub(super) fn link_batch(&mut self, of: usize, kernels: &[(usize, usize, bool)]) -> Result<String, Refusal> {
        let kernels: Vec<_> = kernels
            .iter()
            .filter(|(from, to, _)| self.has_kernel(of, *from, *to))
            .map(|&(from, to, in_place)| (from, to, in_place || from == to))
            .collect();
        self.live(of)?;
        let mut new = Vec::new();
        for &(from, to, adds) in &kernels {
            self.missing(of, (from, to), adds, &mut new)?;
        }
        let shared = self.extend(of, &new, true)?;
        let mut works = Vec::new();
        for &(from, to, adds) in &kernels {
            works.push(self.resolve(shared, from, to, adds, false)?);
        }
        let (mut line, mut all) = (shared, Vec::new());
        for ((from, to, adds), work) in kernels.into_iter().zip(works) {
            let child = self.child(line);
            let (reads, writes) = self.touched(from, to, adds, false);
            let job = self.behind(line, child, work, reads, writes);
            all.push(self.keep_job(job));
            line = child;
        }
        Ok(all.join(" | "))
    }

    pub(super) fn forecast(
        &mut self,
        of: usize,
        (from, to): (usize, usize),
        in_place: bool,
    ) -> Result<String, Refusal> {
        if !self.has_kernel(of, from, to) {
            return Ok("no kernel".to_owned());
        }
        self.live(of)?;
        let mut new = Vec::new();
        self.missing(of, (from, to), in_place || from == to, &mut new)?;
        let memory = &self.memories[self.lines[of].device];
        let (sizes, _) = memory.plan(&self.nodes, &new)?;
        let labels: Vec<_> = new.iter().map(|&node| self.nodes[node].label.clone()).collect();
        Ok(format!("{labels:?} {sizes:?} {}", memory.in_use() + sizes.iter().sum::<u64>()))
    }

    /// The routines that one waits for: those that are gone can never run.
    pub(super) fn waits(&self, job: &Job) -> Vec<usize> {
        let mut waits: Vec<_> =
            job.waits_for.iter().copied().filter(|&before| self.jobs[before].alive && !self.jobs[before].ran).collect();
        waits.sort_unstable();
        waits.dedup();
        waits
    }

    pub(super) fn check_waits(&self, job: &Job) -> Result<(), Refusal> {
        if self.waits(job).is_empty() { Ok(()) } else { refuse("not-run", "") }
    }

    pub(super) fn run(&mut self, index: usize, amount: i32) -> Result<(), Refusal> {
        let job = self.jobs[index].clone();
        let device = self.lines[job.context].device;
        self.live(job.context)?;
        self.check_waits(&job)?;
        match job.work {
            Work::Kernel { from: (from, from_place), to: (to, to_place), adds, merged } => {
                if merged && self.memories[device].tenant != Some(from) {
                    return refuse("merge-mismatch", &self.nodes[from].name);
                }
                let read = self.memories[device].read(from_place, self.nodes[from].size())?;
                let mut bytes = self.memories[device].read(to_place, self.nodes[to].size())?;
                add(&mut bytes, &read, self.nodes[to].element as usize, adds, amount);
                self.memories[device].write(to_place, &bytes)?;
            }
            Work::Copy { node, from, into } => {
                if let Some(source) = job.source {
                    self.live(source)?;
                }
                let of = job.source.map_or(device, |source| self.lines[source].device);
                self.copy_now((of, from), (device, into.unwrap_or(MERGE)), node)?;
                if into.is_none() {
                    self.memories[device].tenant = Some(node);
                }
            }
        }
        self.jobs[index].ran = true;
        Ok(())
    }

    pub(super) fn sequence(&mut self, steps: &[(usize, i32)], times: u32) -> Result<String, Refusal> {
        let alive = |step: &(usize, i32)| self.jobs.get(step.0).is_some_and(|job| job.alive);
        if !steps.iter().all(alive) {
            return Ok("no routine".to_owned());
        }
        let device = |step: &(usize, i32)| self.lines[self.jobs[step.0].context].device;
        if steps.iter().any(|step| device(step) != device(&steps[0])) {
            return refuse("kernel-interface", "one device");
        }
        for (index, &(routine, _)) in steps.iter().enumerate() {
            let job = &self.jobs[routine];
            if self.waits(job).iter().any(|waits| steps[..index].iter().all(|(before, _)| before != waits)) {
                self.live(job.context)?;
                return refuse("not-run", "");
            }
        }
        for replay in 0..times {
            for &(routine, amount) in steps {
                self.run(routine, amount + replay as i32)?;
            }
        }
        Ok(String::new())
    }
}

/// `to = from + amount` by elements, with what was in `to` added where it is read; `from` is zero past its end.
fn add(to: &mut [u8], from: &[u8], element: usize, adds: bool, amount: i32) {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |number, &byte| number << 8 | u32::from(byte));
    for (index, to) in to.chunks_mut(element).enumerate() {
        let read = from.get(index * element..(index + 1) * element).map_or(0, number);
        let old = if adds { number(to) } else { 0 };
        let sum = old.wrapping_add(read).wrapping_add(amount as u32);
        to.copy_from_slice(&sum.to_le_bytes()[..element]);
    }
}
