//! Programs made by hand, and their runs: lowered, emitted, compiled and linked nest by nest.

use wgslab::loops::lower::lower;
use wgslab::notation::ast::{BinaryOp, Function, ReduceOp, Span, UnaryOp};
use wgslab::notation::program::{
    Affine, Expr, ExprKind, IndexId, Load, LoopIndex, NodeIndex, Origin, Position, Program, ProgramNode, Statement,
    Term, Ty, Value, Write,
};
use wgslab::schedule::{Schedule, Target, candidates};
use wgslab::wgsl::emit::{Emitted, emit};
use wgslab::{Access, Context, DType, Device, KernelSpec, TensorNode, gpu};

pub fn expr(kind: ExprKind, ty: Ty) -> Expr {
    Expr::new(kind, ty)
}

pub fn constant(value: Value) -> Expr {
    expr(ExprKind::Const(value), value.ty())
}

pub fn f(value: f32) -> Expr {
    constant(Value::F32(value))
}

pub fn i(value: i32) -> Expr {
    constant(Value::I32(value))
}

pub fn u(value: u32) -> Expr {
    constant(Value::U32(value))
}

pub fn index(id: IndexId) -> Expr {
    expr(ExprKind::Index(id), Ty::I32)
}

pub fn unary(op: UnaryOp, a: Expr) -> Expr {
    let ty = a.ty;
    expr(ExprKind::Unary(op, a), ty)
}

pub fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    use BinaryOp::*;
    let ty = if matches!(op, Lt | Le | Gt | Ge | Eq | Ne) { Ty::Bool } else { a.ty };
    expr(ExprKind::Binary(op, a, b), ty)
}

pub fn call(function: Function, arguments: Vec<Expr>) -> Expr {
    let ty = match function {
        Function::IsNan | Function::IsInf => Ty::Bool,
        Function::Uniform | Function::Normal => Ty::F32,
        _ => arguments[0].ty,
    };
    expr(ExprKind::Call(function, arguments), ty)
}

pub fn cast(dtype: DType, a: Expr) -> Expr {
    expr(ExprKind::Cast(dtype, a), Ty::of(dtype))
}

pub fn bitcast(ty: Ty, a: Expr) -> Expr {
    expr(ExprKind::Bitcast(a), ty)
}

pub fn conditional(condition: Expr, a: Expr, b: Expr) -> Expr {
    let ty = a.ty;
    expr(ExprKind::Conditional(condition, a, b), ty)
}

pub fn reduce(op: ReduceOp, indices: &[IndexId], body: Expr) -> Expr {
    let ty = if matches!(op, ReduceOp::ArgMax | ReduceOp::ArgMin) { Ty::I32 } else { body.ty };
    expr(ExprKind::Reduce { op, indices: indices.to_vec(), body }, ty)
}

/// `constant + sum of factor * index`
pub fn affine(constant: i64, terms: &[(IndexId, i64)]) -> Position {
    let terms = terms.iter().map(|(index, factor)| (Term::Index(*index), *factor)).collect();
    Position::Affine(Affine { constant, terms })
}

pub fn at(indices: &[IndexId]) -> Vec<Position> {
    indices.iter().map(|index| affine(0, &[(*index, 1)])).collect()
}

/// A program that grows, with the bytes of its given nodes.
#[derive(Default)]
pub struct Lab {
    pub program: Program,
    /// What schedules are chosen for.
    pub target: Target,
    /// Invocations of a workgroup, if they are settled.
    pub lanes: Option<u32>,
    given: Vec<(NodeIndex, Vec<u8>)>,
}

impl Lab {
    pub fn given<T: bytemuck::Pod>(&mut self, dtype: DType, shape: &[u32], data: &[T]) -> NodeIndex {
        let node = self.node(dtype, shape, Origin::Given);
        self.given.push((node, bytemuck::cast_slice(data).to_vec()));
        node
    }

    pub fn output(&mut self, dtype: DType, shape: &[u32]) -> NodeIndex {
        self.node(dtype, shape, Origin::Declared)
    }

    fn node(&mut self, dtype: DType, shape: &[u32], origin: Origin) -> NodeIndex {
        let name = format!("x{}", self.program.nodes.len());
        let is_output = origin != Origin::Given;
        self.program.nodes.push(ProgramNode { name, dtype, shape: shape.to_vec(), origin, is_output });
        self.program.nodes.len() - 1
    }

    pub fn load(&self, node: NodeIndex, positions: Vec<Position>) -> Expr {
        let ty = Ty::of(self.program.nodes[node].dtype);
        expr(ExprKind::Load(Load { node, positions, pad: None }), ty)
    }

    pub fn padded(&self, node: NodeIndex, positions: Vec<Position>, pad: Expr) -> Expr {
        let ty = Ty::of(self.program.nodes[node].dtype);
        expr(ExprKind::Load(Load { node, positions, pad: Some(pad) }), ty)
    }

    /// `target[positions] write value` over ranges; the first `free` indices stand on the left.
    #[allow(clippy::too_many_arguments, reason = "the parts of a statement, in its order")]
    pub fn say(
        &mut self,
        target: NodeIndex,
        positions: Vec<Position>,
        write: Write,
        value: Expr,
        ranges: &[(i64, i64)],
        free: &[IndexId],
        reduced: &[IndexId],
    ) {
        let range = |(at, (lo, hi)): (usize, &(i64, i64))| LoopIndex { name: format!("i{at}"), lo: *lo, hi: *hi };
        self.program.statements.push(Statement {
            target,
            positions,
            write,
            value,
            indices: ranges.iter().enumerate().map(range).collect(),
            free: free.to_vec(),
            reduced: reduced.to_vec(),
            span: Span::default(),
        });
    }

    /// A new node of one axis, `value` at each place; index 0 is the place.
    pub fn map(&mut self, dtype: DType, len: usize, value: Expr) -> NodeIndex {
        let node = self.output(dtype, &[len as u32]);
        self.say(node, at(&[0]), Write::Set, value, &[(0, len as i64)], &[0], &[]);
        node
    }

    /// Lowers, emits and runs everything, nest by nest.
    pub async fn run(&self, device: &Device<gpu::Gpu>, statics: &[i32]) -> Outcome {
        let loops = lower(&self.program);
        let nodes: Vec<TensorNode> = loops
            .buffers
            .iter()
            .map(|buffer| TensorNode::new(buffer.name.clone(), buffer.dtype, buffer.shape.clone()))
            .collect();
        let given: Vec<(&TensorNode, &[u8])> =
            self.given.iter().map(|(node, bytes)| (&nodes[*node], bytes.as_slice())).collect();
        let mut context = Context::root(device).init_from_host_many(&given).unwrap();
        for nest in &loops.nests {
            let candidates = candidates(nest, &self.target);
            let schedules = candidates.iter().map(|candidate| &candidate.schedule);
            let is_wanted = |schedule: &&Schedule| self.lanes.is_none_or(|lanes| schedule.lanes == lanes);
            let schedule = schedules.into_iter().find(is_wanted).unwrap();
            let emitted = emit(&loops, nest, schedule, device.limits().workgroups_per_dimension);
            let spec = spec(&nest.name, &emitted, &nodes);
            let code = match device.compile(spec).await {
                Ok(code) => code,
                Err(error) => panic!("{error}\n{:?}\n{}", error.diagnostics(), emitted.text),
            };
            let routine = context.link(&code).await.unwrap();
            let values: Vec<i32> = emitted.statics.iter().map(|index| statics[*index]).collect();
            let done = routine.run_values(&values);
            done.unwrap_or_else(|error| panic!("{error}\n{}", emitted.text));
            context = routine.context().clone();
        }
        let written = |index: &usize| loops.nests.iter().any(|nest| nest.writes(*index));
        let read: Vec<usize> = (0..nodes.len())
            .filter(|index| written(index) || self.given.iter().any(|(node, _)| node == index))
            .collect();
        let wanted: Vec<&TensorNode> = read.iter().map(|index| &nodes[*index]).collect();
        let bytes = context.to_host_many(&wanted).await.unwrap();
        let mut all = vec![Vec::new(); nodes.len()];
        for (index, bytes) in read.into_iter().zip(bytes) {
            all[index] = bytes;
        }
        Outcome { bytes: all }
    }
}

fn spec(name: &str, emitted: &Emitted, nodes: &[TensorNode]) -> KernelSpec {
    let spec = KernelSpec::new(name, emitted.text.clone())
        .statics(emitted.statics.iter().map(|index| format!("s{index}")))
        .grid(emitted.grid);
    let tensors = emitted.tensors.iter().enumerate();
    tensors.fold(spec, |spec, (at, (buffer, access)): (usize, &(usize, Access))| {
        spec.tensor(format!("t{at}"), &nodes[*buffer], *access)
    })
}

/// What every node holds afterwards.
pub struct Outcome {
    bytes: Vec<Vec<u8>>,
}

impl Outcome {
    pub fn of<T: bytemuck::Pod>(&self, node: NodeIndex) -> Vec<T> {
        bytemuck::pod_collect_to_vec(&self.bytes[node])
    }
}
