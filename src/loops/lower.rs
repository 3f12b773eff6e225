//! Program → loops: each statement becomes a few nests, each of which may run its points in any order.
//!
//! A statement reads the values from before it. Where it reads its target elsewhere than at the element that it writes, it
//! is computed aside and put in place afterwards. Where several points may reach one element they accumulate atomically, in
//! 32 bits, and what they made is put in place at the end, so that narrow elements are rounded once.

use crate::dtype::DType;
use crate::loops::ir::{Buffer, BufferIndex, BufferKind, Fold, Loops, Nest, Stage, Store, any_load};
use crate::notation::ast::{Accumulate, BinaryOp, Function};
use crate::notation::program::{
    Affine, Expr, ExprKind, IndexId, Load, LoopIndex, Origin, Position, Program, Statement, Term, Ty, Value, Write,
    points, product, times,
};

/// The loops of a program.
pub fn lower(program: &Program) -> Loops {
    let buffers = program.nodes.iter().enumerate().map(|(index, node)| Buffer {
        name: node.name.clone(),
        dtype: node.dtype,
        shape: node.shape.clone(),
        kind: match node.origin {
            Origin::Created if !node.is_output => BufferKind::Temporary,
            _ => BufferKind::Node(index),
        },
        note: "",
    });
    let mut lowering = Lowering {
        loops: Loops {
            buffers: buffers.collect(),
            statics: program.statics.clone(),
            static_bounds: program.static_bounds.clone(),
            nests: Vec::new(),
        },
    };
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

    /// Every point has an element of its own.
    fn direct(&mut self, name: String, statement: &Statement) {
        let Statement { target, positions, write, value, indices, free, reduced, .. } = statement;
        let place = Place { target: *target, positions: positions.clone() };
        let first = match write {
            Write::Set => None,
            Write::Fresh(op) => Some((*op, Expr::constant(neutral(self.loops.buffers[*target].dtype, *op)))),
            Write::Onto(op) => Some((*op, load(*target, positions.clone(), value.ty))),
        };
        let nest = |name, place, first, over: &[IndexId], value| Nest {
            name,
            indices: indices.clone(),
            free: free.clone(),
            stages: vec![stage(place, first, over, value)],
        };
        if reads_only_at(value, *target, positions) {
            self.loops.nests.push(nest(name, place, first, reduced, value.clone()));
            return;
        }
        // Aside first: one element per point.
        let shape = free.iter().map(|index| (indices[*index].hi - indices[*index].lo) as u32).collect();
        let aside = self.temporary(format!("{name} aside"), value.ty.dtype(), shape);
        let beside: Vec<_> = free.iter().map(|index| offset_by(*index, -indices[*index].lo)).collect();
        let (first, then) = match (write, first) {
            (Write::Onto(op), first) => (Some((*op, Expr::constant(neutral(value.ty.dtype(), *op)))), first),
            (_, first) => (first, None),
        };
        let made = load(aside, beside.clone(), value.ty);
        let computed = Place { target: aside, positions: beside };
        self.loops.nests.push(nest(name.clone(), computed, first, reduced, value.clone()));
        self.loops.nests.push(nest(format!("{name} in place"), place, then, &[], made));
    }

    /// Several points may reach one element.
    fn scatter(&mut self, name: String, statement: &Statement) {
        let Statement { target, positions, write, value, indices, free, reduced, .. } = statement;
        let (Write::Fresh(op) | Write::Onto(op)) = write else {
            // The checker admits `=` only where no two points meet, and computed positions only where values accumulate.
            self.direct(name, statement);
            return;
        };
        let Buffer { dtype, shape, .. } = self.loops.buffers[*target].clone();
        let reads_target = reads(value, *target) || positions.iter().any(|position| position_reads(position, *target));
        let is_wide = matches!(dtype, DType::F32 | DType::I32 | DType::U32);
        let is_whole = !matches!(write, Write::Fresh(_)) || covers(statement, &shape);
        let in_place = is_wide && !reads_target && is_whole;
        let sum =
            if in_place { *target } else { self.temporary(format!("{name} sum"), value.ty.dtype(), shape.clone()) };
        let neutral = Expr::constant(neutral(dtype, *op));
        match write {
            Write::Fresh(_) => self.everywhere(format!("{name} start"), sum, neutral),
            _ if in_place => {}
            _ => {
                let old = load(*target, all_of(&shape), value.ty);
                self.everywhere(format!("{name} start"), sum, old);
            }
        }
        let store = Store { target: sum, positions: positions.clone(), atomic: Some(*op) };
        self.loops.nests.push(Nest {
            name: name.clone(),
            indices: indices.clone(),
            free: free.iter().chain(reduced).copied().collect(),
            stages: vec![Stage { value: value.clone(), fold: None, store: Some(store) }],
        });
        if in_place {
            return;
        }
        let made = load(sum, all_of(&shape), value.ty);
        let put = if is_whole {
            made
        } else {
            let reached = self.reached(&name, statement, &shape);
            let is_reached = load(reached, all_of(&shape), Ty::U32);
            let is_reached = Expr::binary(BinaryOp::Ne, is_reached, Expr::constant(Value::U32(0)), Ty::Bool);
            Expr::conditional(is_reached, made, load(*target, all_of(&shape), value.ty))
        };
        self.everywhere(format!("{name} in place"), *target, put);
    }

    /// A buffer that is 1 where the left side can address an element, and 0 elsewhere.
    fn reached(&mut self, name: &str, statement: &Statement, shape: &[u32]) -> BufferIndex {
        let reached = self.temporary(format!("{name} reached"), DType::U32, shape.to_vec());
        self.everywhere(format!("{name} unreached"), reached, Expr::constant(Value::U32(0)));
        let mut indices = statement.indices.clone();
        let mut free = Vec::new();
        let mut positions = Vec::with_capacity(shape.len());
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
                    positions.push(offset_by(indices.len(), 0));
                    indices.push(LoopIndex { name: "axis".to_owned(), lo: 0, hi: i64::from(*extent) });
                }
            }
        }
        self.loops.nests.push(Nest {
            name: format!("{name} reach"),
            indices,
            free,
            stages: vec![Stage {
                value: Expr::constant(Value::U32(1)),
                fold: None,
                store: Some(Store { target: reached, positions, atomic: Some(Accumulate::Max) }),
            }],
        });
        reached
    }

    /// Sets every element of a buffer to a value that may depend on the position, through [`all_of`].
    fn everywhere(&mut self, name: String, target: BufferIndex, value: Expr) {
        let shape = self.loops.buffers[target].shape.clone();
        let index =
            |(axis, extent): (usize, &u32)| LoopIndex { name: format!("a{axis}"), lo: 0, hi: i64::from(*extent) };
        self.loops.nests.push(Nest {
            name,
            indices: shape.iter().enumerate().map(index).collect(),
            free: (0..shape.len()).collect(),
            stages: vec![stage(Place { target, positions: all_of(&shape) }, None, &[], value)],
        });
    }
}

/// An element that is set.
struct Place {
    target: BufferIndex,
    positions: Vec<Position>,
}

/// A value that is set, or accumulated onto `first` over indices and then set.
fn stage(place: Place, first: Option<(Accumulate, Expr)>, over: &[IndexId], value: Expr) -> Stage {
    let Place { target, positions } = place;
    let store = Some(Store { target, positions, atomic: None });
    match first {
        None => Stage { value, fold: None, store },
        Some((op, start)) if over.is_empty() => Stage { value: combined(op, start, value), fold: None, store },
        Some((op, start)) => Stage { value, fold: Some(Fold { op, start, over: over.to_vec() }), store },
    }
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

/// The position of an index, moved.
fn offset_by(index: IndexId, constant: i64) -> Position {
    Position::Affine(Affine::index(index, constant))
}

/// The positions of the indices 0, 1 and so on.
fn all_of(shape: &[u32]) -> Vec<Position> {
    (0..shape.len()).map(|axis| offset_by(axis, 0)).collect()
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
    statement.positions.iter().zip(shape).all(|(position, extent)| match position {
        Position::Computed(_) => true,
        Position::Affine(Affine { constant: 0, terms }) => match terms[..] {
            [(Term::Index(index), 1)] if !seen.contains(&index) => {
                seen.push(index);
                let LoopIndex { lo, hi, .. } = statement.indices[index];
                (lo, hi) == (0, i64::from(*extent))
            }
            // Position 0 is the whole axis where that is all there is.
            [] => *extent == 1,
            _ => false,
        },
        Position::Affine(_) => false,
    })
}

/// Whether an expression reads a buffer at those positions alone.
fn reads_only_at(expr: &Expr, buffer: BufferIndex, positions: &[Position]) -> bool {
    !any_load(expr, &mut |load| load.node == buffer && load.positions != positions)
}

fn reads(expr: &Expr, buffer: BufferIndex) -> bool {
    any_load(expr, &mut |load| load.node == buffer)
}

fn position_reads(position: &Position, buffer: BufferIndex) -> bool {
    match position {
        Position::Affine(_) => false,
        Position::Computed(expr) => reads(expr, buffer),
    }
}
