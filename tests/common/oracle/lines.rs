//! Routines: what linking creates and refuses, what waits for what, and what a run does to the bytes.

use wgslab::DType;

use super::super::model::Kernel;
use super::kernels::add;
use super::{Job, Oracle, Place, Refusal, Scratch, Touch, Work, refuse};

const MERGE: Place = Place { pool: 0, offset: 0 };

impl Oracle {
    /// Adds what linking a kernel would create.
    fn missing(&self, line: usize, kernel: &Kernel, new: &mut Vec<usize>) -> Result<(), Refusal> {
        let mut refusal = Refusal::default();
        let to = kernel.to();
        if self.nodes[to].constant {
            refusal.add("kernel-interface", &self.nodes[to].name);
        }
        let reads = kernel.from().map(|from| (from, true));
        let is_made = kernel.overwrites() || matches!(kernel, Kernel::Strided { .. });
        for (node, reads) in reads.into_iter().chain([(to, !is_made)]) {
            let facts = &self.nodes[node];
            if facts.is_virtual() {
                refusal.add("kernel-interface", &facts.name);
            }
            let is_there = self.lines[line].places.contains_key(&node) && !facts.is_local();
            if is_there || new.contains(&node) {
                continue;
            }
            let is_local_view = facts.is_local() && facts.base.is_some();
            if is_local_view {
                refusal.add("kernel-interface", &facts.name);
            }
            if reads {
                refusal.add("unknown-node", &facts.name);
            } else if !is_local_view {
                new.push(node);
            }
        }
        refusal.or_ok()
    }

    /// The kernel as work, where the pools of its nodes are there; local nodes are in `scratch`.
    fn resolve(&self, line: usize, kernel: &Kernel, scratch: &Scratch, merged: bool) -> Result<Work, Refusal> {
        let device = self.lines[line].device;
        let place = |node: usize| match scratch.get(&node) {
            Some(place) => *place,
            None => self.lines[line].places[&node],
        };
        let from = kernel.from().map(|from| (from, if merged { MERGE } else { place(from) }));
        let to = (kernel.to(), place(kernel.to()));
        for (node, place) in from.into_iter().chain([to]) {
            self.memories[device].read(place, self.nodes[node].size())?;
        }
        Ok(Work::Kernel { kernel: kernel.clone(), from, to, merged })
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

    /// What a kernel reads and writes that others can see.
    fn touched(&self, kernel: &Kernel, merged: bool) -> (Vec<usize>, Vec<usize>) {
        let (to, adds) = (kernel.to(), matches!(kernel, Kernel::Add { .. }) && !kernel.overwrites());
        let reads = kernel.from().filter(|_| !merged).into_iter().chain(adds.then_some(to));
        let seen = |node: &usize| !self.nodes[*node].is_local();
        let writes = Some(to).filter(seen).map(|to| self.root(to));
        (reads.filter(seen).map(|node| self.root(node)).collect(), writes.into_iter().collect())
    }

    pub(super) fn link(&mut self, of: usize, kernel: &Kernel) -> Result<String, Refusal> {
        if !self.has_kernel(of, kernel)? || self.uses_unwritten(kernel, &[]) {
            return Ok("no kernel".to_owned());
        }
        self.live(of)?;
        let mut new = Vec::new();
        self.missing(of, kernel, &mut new)?;
        self.link_into(of, &new, kernel, false)
    }

    pub(super) fn merge(&mut self, of: usize, node: usize) -> Result<String, Refusal> {
        if self.nodes[node].dtype == DType::F16 || self.nodes[node].is_local() {
            return Ok("no kernel".to_owned());
        }
        self.live(of)?;
        if self.lines[of].merging != Some(node) {
            return refuse("merge-mismatch", &self.nodes[node].name);
        }
        if self.nodes[node].constant || self.nodes[node].is_virtual() {
            return refuse("kernel-interface", &self.nodes[node].name);
        }
        if !self.lines[of].places.contains_key(&node) {
            return refuse("unknown-node", &self.nodes[node].name);
        }
        self.link_into(of, &[], &Kernel::Add { from: node, to: node, in_place: true }, true)
    }

    fn link_into(&mut self, of: usize, new: &[usize], kernel: &Kernel, merged: bool) -> Result<String, Refusal> {
        let (child, scratch) = self.extend_for(of, new, &[kernel])?;
        let work = self.resolve(child, kernel, &scratch, merged)?;
        let (reads, writes) = self.touched(kernel, merged);
        let job = self.behind(of, child, work, reads, writes);
        Ok(self.keep_job(job))
    }

    /// A child with those new nodes, and the local ones of kernels that run one behind the other, each from the first kernel
    /// that uses it to the last.
    fn extend_for(&mut self, of: usize, new: &[usize], kernels: &[&Kernel]) -> Result<(usize, Scratch), Refusal> {
        let mut locals: Vec<(usize, usize, usize)> = Vec::new();
        for (step, kernel) in kernels.iter().enumerate() {
            for node in kernel.from().into_iter().chain([kernel.to()]).filter(|&node| self.nodes[node].is_local()) {
                match locals.iter_mut().find(|(known, ..)| *known == node) {
                    Some((.., last)) => *last = step,
                    None => locals.push((node, step, step)),
                }
            }
        }
        let kept: Vec<_> = new.iter().copied().filter(|&node| !self.nodes[node].is_local()).collect();
        self.extend_with(of, &kept, &locals, true)
    }

    pub(super) fn link_batch(&mut self, of: usize, kernels: &[Kernel]) -> Result<String, Refusal> {
        let (mut linked, mut written) = (Vec::new(), Vec::new());
        for kernel in kernels {
            if self.has_kernel(of, kernel)? && !self.uses_unwritten(kernel, &written) {
                linked.push(kernel);
                written.push(kernel.to());
            }
        }
        self.live(of)?;
        let mut new = Vec::new();
        for kernel in &linked {
            self.missing(of, kernel, &mut new)?;
        }
        let (shared, scratch) = self.extend_for(of, &new, &linked)?;
        let works = linked.iter().map(|kernel| self.resolve(shared, kernel, &scratch, false));
        let works = works.collect::<Result<Vec<_>, _>>()?;
        // Whoever uses local nodes waits for those before it that do: a name that no node has.
        let shared_bytes = usize::MAX - self.jobs.len();
        let (mut line, mut all) = (shared, Vec::new());
        for (kernel, work) in linked.into_iter().zip(works) {
            let child = self.child(line);
            let (reads, mut writes) = self.touched(kernel, false);
            if kernel.from().into_iter().chain([kernel.to()]).any(|node| self.nodes[node].is_local()) {
                writes.push(shared_bytes);
            }
            if self.nodes[kernel.to()].is_local() {
                self.makers.push(self.jobs.len());
            }
            let job = self.behind(line, child, work, reads, writes);
            all.push(self.keep_job(job));
            line = child;
        }
        Ok(all.join(" | "))
    }

    pub(super) fn forecast(&mut self, of: usize, kernel: &Kernel) -> Result<String, Refusal> {
        if !self.has_kernel(of, kernel)? {
            return Ok("no kernel".to_owned());
        }
        self.live(of)?;
        let mut new = Vec::new();
        // Nothing runs, so a local node may be made for whatever uses it.
        if self.uses_unwritten(kernel, &[]) && self.nodes[kernel.to()].base.is_none() {
            new.push(kernel.to());
        }
        self.missing(of, kernel, &mut new)?;
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
            Work::Kernel { kernel, from, to: (to, to_place), merged } => {
                let mut read = Vec::new();
                if let Some((from, place)) = from {
                    if merged && self.memories[device].tenant != Some(from) {
                        return refuse("merge-mismatch", &self.nodes[from].name);
                    }
                    read = self.memories[device].read(place, self.nodes[from].size())?;
                }
                let mut bytes = self.memories[device].read(to_place, self.nodes[to].size())?;
                if merged {
                    add(&mut bytes, &read, self.nodes[to].element as usize, true, amount);
                } else {
                    self.compute(&kernel, &read, &mut bytes, amount)?;
                }
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
        if steps.is_empty() {
            return refuse("kernel-interface", "no routines");
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
                // What is filled with stays.
                let work = &self.jobs[routine].work;
                let is_fill = matches!(work, Work::Kernel { kernel: Kernel::Fill { .. }, .. });
                self.run(routine, if is_fill { amount } else { amount + replay as i32 })?;
            }
        }
        Ok(String::new())
    }
}
