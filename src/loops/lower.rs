//! Program → loops: each statement becomes a few nests, each of which may run its points in any order.
//!
//! A statement reads the values from before it. Where it reads its target elsewhere than at the element that it writes, it
//! is computed aside and put in place afterwards. Where several points may reach one element they accumulate atomically, in
//! 32 bits, and what they made is put in place at the end, so that narrow elements are rounded once.

use crate::dtype::DType;
use crate::loops::ir::{Buffer, BufferIndex, BufferKind, Fold, Loops, Nest, Stage, Store, any_load, each_computed};
use crate::notation::ast::{Accumulate, BinaryOp, Function};
use crate::notation::program::{
    Affine, Expr, ExprKind, IndexId, Load, LoopIndex, Origin, Position, Program, Statement, Term, Ty, Value, Write,
    points, product, times,
};

/// The loops of a program.
pub fn lower(program: &Program) -> Loops {
    let mut lowering =
        Lowering { loops: Loops { buffers: Vec::new(), statics: program.statics.clone(), nests: Vec::new() } };
    for (index, node) in program.nodes.iter().enumerate() {
        let is_temporary = node.origin == Origin::Created && !node.is_output;
        lowering.loops.buffers.push(Buffer {
            name: node.name.clone(),
            dtype: node.dtype,
            shape: node.shape.clone(),
            kind: if is_temporary { BufferKind::Temporary } else { BufferKind::Node(index) },
            note: "",
        });
    }
    for (number, statement) in program.statements.iter().enumerate() {
        lowering.statement(number, statement);
    }
    lowering.loops
}

struct Lowering {
    loops: Loops,
}

impl Lowering {
    fn statement(&mut self, number: usize, statement: &Statement) {
        let name = format!("{}:{}", self.loops.buffers[statement.target].name, number + 1);
        if self.is_injective(statement) {
            self.direct(name, statement);
        } else {
            self.scatter(name, statement);
        }
    }

    /// A buffer for what a statement computes aside.
    fn temporary(&mut self, name: String, dtype: DType, shape: Vec<u32>) -> BufferIndex {
        self.loops.buffers.push(Buffer {
            name,
            dtype,
            shape,
            kind: BufferKind::Temporary,
            note: "its statement computes aside",
        });
        self.loops.buffers.len() - 1
    }

    /// Whether no two points of the free indices reach one element. Where that cannot be seen, it is false.
    fn is_injective(&self, statement: &Statement) -> bool {
        let Statement { positions, indices, free, target, .. } = statement;
        // The offset of the element as a sum of factors times indices.
        let mut offset = Affine::default();
        let mut stride = 1i64;
        for (axis, extent) in self.loops.buffers[*target].shape.iter().enumerate().rev() {
            let Position::Affine(affine) = &positions[axis] else { return false };
            let (Some(()), Some(next)) = (offset.add(affine, stride), product(stride, i64::from(*extent))) else {
                return false;
            };
            stride = next;
        }
        let size_of = |index: IndexId| {
            let term = offset.terms.iter().find(|(term, _)| *term == Term::Index(index));
            term.map_or(0, |(_, factor)| factor.unsigned_abs())
        };
        // It is a number in a mixed radix, if each factor is larger than all that the smaller ones can add up to.
        let is_apart = |index: &IndexId| {
            let size = size_of(*index);
            let mut reach = 0u64;
            for other in free {
                let other_size = size_of(*other);
                if other != index && other_size <= size {
                    reach = reach.saturating_add(times(other_size, indices[*other].count().saturating_sub(1)));
                }
            }
            indices[*index].count() == 1 || size > reach
        };
        points(indices, free) == 0 || free.iter().all(is_apart)
    }

    /// Adds a nest of one stage.
    fn nest(&mut self, name: String, indices: Vec<LoopIndex>, free: Vec<IndexId>, stage: Stage) {
        self.loops.nests.push(Nest { name, indices, free, stages: vec![stage] });
    }

    /// Every point has an element of its own.
    fn direct(&mut self, name: String, statement: &Statement) {
        let Statement { target, positions, write, value, indices, free, reduced, .. } = statement;
        let place = Place { target: *target, positions: positions.clone() };
        let dtype = self.loops.buffers[*target].dtype;
        let first = match write {
            Write::Set => None,
            Write::Fresh(op) => Some((*op, Expr::constant(neutral(dtype, *op)))),
            Write::Onto(op) => Some((*op, load(*target, positions.clone(), value.ty))),
        };
        if any_load(value, &mut |load| load.node == *target && load.positions != *positions) {
            // Aside first: one element per point.
            let (mut shape, mut beside) = (Vec::new(), Vec::new());
            for index in free {
                let range = &indices[*index];
                shape.push(range.count() as u32);
                beside.push(Position::Affine(Affine::index(*index, -range.lo)));
            }
            let aside = self.temporary(format!("{name} aside"), value.ty.dtype(), shape);
            let made = load(aside, beside.clone(), value.ty);
            let computed = stage(Place { target: aside, positions: beside }, first, reduced, value.clone());
            self.nest(name.clone(), indices.clone(), free.clone(), computed);
            self.nest(format!("{name} in place"), indices.clone(), free.clone(), stage(place, None, &[], made));
        } else {
            self.nest(name, indices.clone(), free.clone(), stage(place, first, reduced, value.clone()));
        }
    }

    /// Several points may reach one element.
    fn scatter(&mut self, name: String, statement: &Statement) {
        let Statement { target, positions, write, value, indices, free, reduced, .. } = statement;
        let (Write::Fresh(op) | Write::Onto(op)) = write else {
            // The checker admits `=` only where no two points meet, and computed positions only where values accumulate.
            self.direct(name, statement);
            return;
        };
        let Buffer { dtype, shape, .. } = &self.loops.buffers[*target];
        let (dtype, shape) = (*dtype, shape.clone());
        let whole = |of: BufferIndex, ty: Ty| load(of, all_of(&shape), ty);
        let mut reads_target = reads(value, *target);
        each_computed(positions, &mut |position| reads_target |= reads(position, *target));
        let is_whole = !matches!(write, Write::Fresh(_)) || covers(statement, &shape);
        let in_place = dtype == value.ty.dtype() && !reads_target && is_whole;
        let mut sum = *target;
        if !in_place {
            sum = self.temporary(format!("{name} sum"), value.ty.dtype(), shape.clone());
        }
        if let Write::Fresh(_) = write {
            self.everywhere(format!("{name} start"), sum, Expr::constant(neutral(dtype, *op)));
        } else if !in_place {
            self.everywhere(format!("{name} start"), sum, whole(*target, value.ty));
        }
        let mut all = free.clone();
        all.extend_from_slice(reduced);
        let store = Store { target: sum, positions: positions.clone(), atomic: Some(*op) };
        self.nest(name.clone(), indices.clone(), all, Stage { value: value.clone(), fold: None, store: Some(store) });
        if in_place {
            return;
        }
        let mut made = whole(sum, value.ty);
        if !is_whole {
            let reached = self.reached(&name, statement, &shape);
            let none = Expr::constant(Value::U32(0));
            let is_reached = Expr::binary(BinaryOp::Ne, whole(reached, Ty::U32), none, Ty::Bool);
            made = Expr::conditional(is_reached, made, whole(*target, value.ty));
        }
        self.everywhere(format!("{name} in place"), *target, made);
    }

    /// A buffer that is 1 where the left side can address an element, and 0 elsewhere.
    fn reached(&mut self, name: &str, statement: &Statement, shape: &[u32]) -> BufferIndex {
        let reached = self.temporary(format!("{name} reached"), DType::U32, shape.to_vec());
        self.everywhere(format!("{name} unreached"), reached, Expr::constant(Value::U32(0)));
        let mut indices = statement.indices.clone();
        let mut free = Vec::new();
        let mut positions = Vec::new();
        for (position, extent) in statement.positions.iter().zip(shape) {
            match position {
                Position::Affine(affine) => {
                    for (term, _) in &affine.terms {
                        if let Term::Index(index) = term
                            && !free.contains(index)
                        {
                            free.push(*index);
                        }
                    }
                    positions.push(position.clone());
                }
                // A scattered axis is addressed whole.
                Position::Computed(_) => {
                    free.push(indices.len());
                    positions.push(Position::index(indices.len()));
                    indices.push(LoopIndex { name: "axis".to_owned(), lo: 0, hi: i64::from(*extent) });
                }
            }
        }
        let store = Some(Store { target: reached, positions, atomic: Some(Accumulate::Max) });
        let stage = Stage { value: Expr::constant(Value::U32(1)), fold: None, store };
        self.nest(format!("{name} reach"), indices, free, stage);
        reached
    }

    /// Sets every element of a buffer to a value that may depend on the position, through [`all_of`].
    fn everywhere(&mut self, name: String, target: BufferIndex, value: Expr) {
        let (mut indices, mut free) = (Vec::new(), Vec::new());
        let shape = &self.loops.buffers[target].shape;
        for (axis, extent) in shape.iter().enumerate() {
            indices.push(LoopIndex { name: format!("a{axis}"), lo: 0, hi: i64::from(*extent) });
            free.push(axis);
        }
        let stage = stage(Place { target, positions: all_of(shape) }, None, &[], value);
        self.nest(name, indices, free, stage);
    }
}

/// An element that is set.
struct Place {
    target: BufferIndex,
    positions: Vec<Position>,
}

/// A value that is set, or accumulated onto `first` over indices and then set.
fn stage(place: Place, first: Option<(Accumulate, Expr)>, over: &[IndexId], mut value: Expr) -> Stage {
    let Place { target, positions } = place;
    let mut fold = None;
    match first {
        Some((op, start)) if over.is_empty() => value = combined(op, start, value),
        Some((op, start)) => fold = Some(Fold { op: Some(op), start, over: over.to_vec(), is_each: false }),
        None => {}
    }
    Stage { value, fold, store: Some(Store { target, positions, atomic: None }) }
}

/// One stage of an accumulation.
fn combined(op: Accumulate, a: Expr, b: Expr) -> Expr {
    let ty = a.ty;
    let binary = match (op, ty) {
        (Accumulate::Add | Accumulate::Max, Ty::Bool) => BinaryOp::Or,
        (Accumulate::Mul | Accumulate::Min, Ty::Bool) => BinaryOp::And,
        (Accumulate::Add, _) => BinaryOp::Add,
        (Accumulate::Mul, _) => BinaryOp::Mul,
        (Accumulate::Max | Accumulate::Min, _) => {
            let function = if op == Accumulate::Max { Function::Max } else { Function::Min };
            return Expr::new(ExprKind::Call(function, vec![a, b]), ty);
        }
    };
    Expr::binary(binary, a, b, ty)
}

/// The positions of the indices 0, 1 and so on.
fn all_of(shape: &[u32]) -> Vec<Position> {
    let mut all = Vec::new();
    for axis in 0..shape.len() {
        all.push(Position::index(axis));
    }
    all
}

fn load(node: BufferIndex, positions: Vec<Position>, ty: Ty) -> Expr {
    Expr::new(ExprKind::Load(Load { node, positions, pad: None }), ty)
}

/// What an accumulation into elements of that dtype starts from, as the type that they are read as.
pub fn neutral(dtype: DType, op: Accumulate) -> Value {
    let (least, most) = match dtype {
        DType::F32 | DType::F16 | DType::BF16 => (Value::F32(f32::NEG_INFINITY), Value::F32(f32::INFINITY)),
        DType::I32 => (Value::I32(i32::MIN), Value::I32(i32::MAX)),
        DType::I8 => (Value::I32(-128), Value::I32(127)),
        DType::U32 => (Value::U32(0), Value::U32(u32::MAX)),
        DType::U8 => (Value::U32(0), Value::U32(255)),
        DType::Bool => (Value::Bool(false), Value::Bool(true)),
    };
    let number = |number: u8| match least {
        Value::F32(_) => Value::F32(f32::from(number)),
        Value::I32(_) => Value::I32(i32::from(number)),
        Value::U32(_) => Value::U32(u32::from(number)),
        Value::Bool(_) => Value::Bool(number != 0),
    };
    match op {
        Accumulate::Add => number(0),
        Accumulate::Mul => number(1),
        Accumulate::Max => least,
        Accumulate::Min => most,
    }
}

/// Whether the left side addresses every element: each axis whole, by a scatter or by an index of its own.
fn covers(statement: &Statement, shape: &[u32]) -> bool {
    let mut seen: Vec<IndexId> = Vec::new();
    statement.positions.iter().zip(shape).all(|(position, extent)| {
        let Position::Affine(affine) = position else { return true };
        let Some(index) = affine.alone().filter(|index| !seen.contains(index)) else {
            // Position 0 is the whole axis where that is all there is.
            return *extent == 1 && *affine == Affine::default();
        };
        seen.push(index);
        statement.indices[index].is_whole(*extent)
    })
}

fn reads(expr: &Expr, buffer: BufferIndex) -> bool {
    any_load(expr, &mut |load| load.node == buffer)
}
