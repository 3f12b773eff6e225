//! How much was compared, and whether that proves anything.

use std::fmt;

use super::ways::{OnGpu, WAYS, Ways};

/// How much was compared.
#[derive(Clone, Debug, Default)]
pub struct Count {
    pub programs: u64,
    pub statements: u64,
    pub refused: u64,
    pub elements: u64,
    /// Elements of which nothing can be said.
    pub unknown: u64,
    /// Elements that must be exact.
    pub exact: u64,
    /// Whether the GPU has subgroups.
    pub has_subgroups: bool,
    /// What ran on the GPU, for each of the ways.
    pub ways: [Ran; WAYS.len()],
}

/// The sorts of kernels that are counted, each with what [`wgslab::Code::explain`] says of one: who computes a point, and how.
const SORTS: [(&str, &str); 5] = [
    ("per point", ", an invocation each"),
    ("tiled", ", an invocation for"),
    ("workgroups", ", a workgroup"),
    ("subgroups", "; schedule workgroup by subgroups"),
    ("staged", ", lanes that share"),
];
pub(super) const POINTS: usize = 0;
pub(super) const TILED: usize = 1;
pub(super) const WORKGROUPS: usize = 2;
/// Those of workgroups that have subgroups.
pub(super) const SUBGROUPS: usize = 3;
/// Those whose workgroups share in their memory.
pub(super) const STAGED: usize = 4;

/// What ran in one way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ran {
    pub programs: u64,
    /// How often one of them went that way: with each schedule several times.
    pub goings: u64,
    /// Those that were equal to an earlier one of the same program, so that they were not run again.
    pub equal: u64,
    /// Kernels of each sort, of all goings.
    kernels: [u64; SORTS.len()],
    /// Kernels that ran whose tensors lie in three heaps or more.
    pub heaps: u64,
}

impl Ran {
    /// Notes a going by what is said of its code, and whether an earlier one was equal to it.
    pub fn note(&mut self, explained: &str, is_equal: bool) {
        self.goings += 1;
        self.equal += u64::from(is_equal);
        for (kernels, (_, what)) in self.kernels.iter_mut().zip(SORTS) {
            *kernels += explained.matches(what).count() as u64;
        }
    }
}

/// Programs after which every way must have been gone, and every schedule met.
const MANY: u64 = 500;

impl Count {
    /// # Errors
    /// If too little was compared to prove anything, or some way was not gone.
    pub fn check(&self, ways: Ways) -> Result<(), String> {
        let is_enough = self.refused * 3 <= self.statements + self.refused && self.unknown * 3 <= self.elements;
        let has = |sort: usize| sort != SUBGROUPS || self.has_subgroups;
        let is_met = |(at, (way, ran)): (usize, (&OnGpu, &Ran))| {
            let is_of_sort = way.sort.is_none_or(|sort| (ran.kernels[sort] > 0) == has(sort));
            let is_in_heaps = !way.is_apart || ran.heaps * 4 > ran.programs;
            !ways.have(at) || ran.programs > 0 && is_of_sort && is_in_heaps
        };
        let is_sort_met = |sort| self.ways.iter().any(|ran| ran.kernels[sort] > 0);
        let are_met = [POINTS, TILED, WORKGROUPS].into_iter().all(is_sort_met)
            && WAYS.iter().zip(&self.ways).enumerate().all(is_met);
        if is_enough && (are_met || self.programs < MANY) {
            Ok(())
        } else {
            Err(format!("too little was compared: {self}\n{}", self.table()))
        }
    }

    /// How often each way was gone, and of what sorts the kernels were.
    pub fn table(&self) -> String {
        let mut text = format!("{:22}", "on the gpu");
        for column in ["programs", "goings", "equal"].into_iter().chain(SORTS.map(|(name, _)| name)).chain(["3 heaps"])
        {
            text.push_str(&format!("{column:>12}"));
        }
        for (way, ran) in WAYS.iter().zip(self.ways) {
            text.push_str(&format!("\n{:22}", way.name));
            for number in [ran.programs, ran.goings, ran.equal].into_iter().chain(ran.kernels).chain([ran.heaps]) {
                text.push_str(&format!("{number:>12}"));
            }
        }
        text
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { programs, statements, refused, elements, unknown, exact, .. } = self;
        write!(
            f,
            "{programs} programs of {statements} statements ({refused} refused), {elements} elements compared on each \
             driver: {exact} exactly, {unknown} undefined"
        )
    }
}
