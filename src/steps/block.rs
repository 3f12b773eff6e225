//! Steps as they are made: each value in the outermost loop that has what it needs, each once.
//!
//! Nothing but stores and assignments has an effect, and nothing traps, so a value may be computed earlier than it is asked
//! for, and for points that do not need it. Values are named by a counter: equal nests give equal steps.

use crate::sorted_map::SortedMap;
use crate::steps::ops::Op;

/// A value: the number of the step that makes it.
pub(crate) type Reg = u32;

/// The value 0, as a u32; also what stands where an operation has no operand.
pub(crate) const ZERO: Reg = 0;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    pub op: Op,
    /// What the operation wants to know beside its operands.
    pub number: u32,
    pub args: [Reg; 4],
}

impl Step {
    fn new(op: Op, number: u32, operands: &[Reg]) -> Self {
        let mut args = [ZERO; 4];
        for (to, from) in args.iter_mut().zip(operands) {
            *to = *from;
        }
        Self { op, number, args }
    }
}

/// Steps, and the order in which they are done.
#[derive(Debug)]
pub(crate) struct Steps {
    pub steps: Vec<Step>,
    /// The loops around each.
    pub depths: Vec<usize>,
    /// Loops are flat: from [`Op::Open`] to [`Op::Close`].
    pub order: Vec<Reg>,
}

/// A loop's body, or the whole.
#[derive(Debug, Default)]
struct Scope {
    order: Vec<Reg>,
    known: SortedMap<Step, Reg>,
}

/// The scopes that are open, outermost first.
#[derive(Debug)]
pub(crate) struct Block {
    steps: Vec<Step>,
    depths: Vec<usize>,
    scopes: Vec<Scope>,
}

impl Block {
    pub fn new() -> Self {
        let mut block = Self { steps: Vec::new(), depths: Vec::new(), scopes: vec![Scope::default()] };
        block.value(Op::Word, 0, &[]);
        block
    }

    /// The loops that are open.
    pub fn depth(&self) -> usize {
        self.scopes.len() - 1
    }

    /// The loops that a value needs.
    pub fn depth_of(&self, reg: Reg) -> usize {
        self.depths[reg as usize]
    }

    /// Says that a value changes in so many loops.
    pub fn set_depth(&mut self, reg: Reg, depth: usize) {
        self.depths[reg as usize] = depth;
    }

    /// How a value is made.
    pub fn step(&self, reg: Reg) -> &Step {
        &self.steps[reg as usize]
    }

    /// A step that is not done, or only later: what loops count by, and variables.
    pub fn apart(&mut self, op: Op, number: u32, args: &[Reg]) -> Reg {
        self.add(Step::new(op, number, args), self.depth())
    }

    fn add(&mut self, step: Step, depth: usize) -> Reg {
        self.steps.push(step);
        self.depths.push(depth);
        self.steps.len() as Reg - 1
    }

    /// A step with an effect, in the innermost scope.
    pub fn effect(&mut self, op: Op, number: u32, args: &[Reg]) -> Reg {
        let reg = self.apart(op, number, args);
        let depth = self.depth();
        self.scopes[depth].order.push(reg);
        reg
    }

    /// A value.
    pub fn value(&mut self, op: Op, number: u32, args: &[Reg]) -> Reg {
        let depth = args.iter().map(|arg| self.depth_of(*arg)).max().unwrap_or(0);
        let step = Step::new(op, number, args);
        if let Some(known) = self.scopes[depth].known.get(&step) {
            return *known;
        }
        let reg = self.add(step, depth);
        let scope = &mut self.scopes[depth];
        scope.known.insert(step, reg);
        scope.order.push(reg);
        reg
    }

    /// Opens a loop that goes on in [`Block::close`].
    pub fn open(&mut self) {
        self.scopes.push(Scope::default());
    }

    /// Ends the innermost loop. One that moves goes as far out as what it reads allows. The variables that only it sets
    /// start in front of it.
    pub fn close(&mut self, op: Op, number: u32, counter: Reg, variables: &[Reg], moves: bool) {
        let Some(scope) = self.scopes.pop() else { return };
        let inside = self.scopes.len();
        let mut depth = inside - 1;
        if moves {
            depth = 0;
            for list in [&scope.order[..], variables] {
                for reg in list {
                    for arg in self.step(*reg).args {
                        let needs = self.depth_of(arg);
                        depth = if needs < inside { depth.max(needs) } else { depth };
                    }
                }
            }
        }
        let head = self.apart(op, number, &[counter]);
        let tail = self.apart(Op::Close, number, &[counter, head]);
        for variable in variables {
            self.set_depth(*variable, depth);
        }
        let outer = &mut self.scopes[depth].order;
        outer.extend(variables);
        outer.push(head);
        outer.extend(scope.order);
        outer.push(tail);
    }

    /// All steps; only the outermost scope is open.
    pub fn finish(mut self) -> Steps {
        let order = self.scopes.pop().map(|scope| scope.order).unwrap_or_default();
        Steps { steps: self.steps, depths: self.depths, order }
    }
}
