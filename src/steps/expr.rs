//! Expressions: every value by an operation where one does what the language says, else by a few.

use crate::dtype::DType;
use crate::notation::ast::{Accumulate, BinaryOp, Function, UnaryOp};
use crate::notation::program::{Expr, ExprKind, Ty, Value};
use crate::steps::Lowering;
use crate::steps::block::{Reg, ZERO};
use crate::steps::ops::{Op, accumulation, binary};

impl Lowering<'_> {
    pub(crate) fn expr(&mut self, expr: &Expr) -> Reg {
        match &expr.kind {
            ExprKind::Const(value) => self.constant(*value),
            ExprKind::Index(index) => self.index_value(*index),
            ExprKind::Static(index) => self.block.value(Op::Static, *index as u32, &[]),
            ExprKind::Load(load) => self.load(load),
            ExprKind::Stage(stage) => self.stage(*stage).unwrap_or(ZERO),
            ExprKind::Unary(op, a) => {
                let a = self.expr(a);
                self.unary(*op, a, expr.ty)
            }
            ExprKind::Binary(op, left, right) => {
                let (a, b) = (self.expr(left), self.expr(right));
                self.binary(*op, (a, left.ty), (b, right.ty))
            }
            ExprKind::Conditional(condition, a, b) => {
                let args = [self.expr(condition), self.expr(a), self.expr(b)];
                self.block.value(Op::Select, 0, &args)
            }
            ExprKind::Call(function, arguments) => self.function(*function, arguments),
            ExprKind::Cast(dtype, a) => {
                let value = self.expr(a);
                self.cast(*dtype, value, a.ty)
            }
            ExprKind::Bitcast(a) => {
                let value = self.expr(a);
                self.bits_as(expr.ty, value, a.ty)
            }
            ExprKind::Reduce { op, indices, body } => self.reduce(*op, indices, body),
        }
    }

    /// The same bits as another type.
    fn bits_as(&mut self, to: Ty, value: Reg, from: Ty) -> Reg {
        match to {
            _ if from == to => value,
            Ty::F32 => self.one(Op::AsF, value),
            Ty::I32 => self.one(Op::AsI, value),
            _ => self.one(Op::AsU, value),
        }
    }

    fn unary(&mut self, op: UnaryOp, a: Reg, ty: Ty) -> Reg {
        match op {
            UnaryOp::Neg if ty == Ty::F32 => self.one(Op::NegF, a),
            UnaryOp::Neg => {
                let zero = self.number(ty, 0);
                self.two(Op::Sub, zero, a)
            }
            UnaryOp::Not => self.one(Op::Not, a),
            UnaryOp::BitNot => {
                let ones = self.number(ty, -1);
                self.two(Op::Xor, a, ones)
            }
        }
    }

    /// The number that a value is known to be.
    pub(super) fn known(&self, value: Reg) -> Option<f32> {
        let step = self.block.step(value);
        (step.op == Op::Float).then(|| f32::from_bits(step.number))
    }

    fn binary(&mut self, op: BinaryOp, (a, ty): (Reg, Ty), (b, right): (Reg, Ty)) -> Reg {
        let (x, y) = (self.known(a), self.known(b));
        // Mesa (llvmpipe) takes 0 * x for 0, also where x is known to be infinite.
        if let Some(known) = x.zip(y).and_then(|(x, y)| folded(op, x, y)) {
            return self.constant(Value::F32(known));
        }
        let of = binary(op, ty);
        match op {
            BinaryOp::Pow => self.power((a, ty), (b, right)),
            // Mesa 22.3 (llvmpipe) makes 0 of 0 / 0 where it knows the divisor.
            BinaryOp::Div if y == Some(0.0) => {
                let infinity = self.constant(Value::F32(1.0 / y.unwrap_or(0.0)));
                self.two(Op::MulF, a, infinity)
            }
            BinaryOp::Shl | BinaryOp::Shr => {
                let (amount, most) = (self.bits_as(Ty::U32, b, right), self.word(31));
                let amount = self.two(Op::And, amount, most);
                self.two(of, a, amount)
            }
            BinaryOp::Gt | BinaryOp::Ge => self.two(of, b, a),
            BinaryOp::Eq => self.equal(of, a, b),
            // Also since naga's `!=` is false for NaN (OpFOrdNotEqual).
            BinaryOp::Ne => {
                let is_equal = self.equal(of, a, b);
                self.one(Op::Not, is_equal)
            }
            _ => self.two(of, a, b),
        }
    }

    fn equal(&mut self, op: Op, a: Reg, b: Reg) -> Reg {
        // The only way to ask for NaN that a driver cannot take for a tautology.
        if op == Op::EqF && a == b {
            let is_nan = self.one(Op::IsNan, a);
            return self.one(Op::Not, is_nan);
        }
        self.two(op, a, b)
    }

    fn power(&mut self, (a, ty): (Reg, Ty), (b, right): (Reg, Ty)) -> Reg {
        let exponent = self.known(b);
        if exponent == Some(2.0) || exponent == Some(3.0) {
            let square = self.two(Op::MulF, a, a);
            return if exponent == Some(2.0) { square } else { self.two(Op::MulF, square, a) };
        }
        match (ty, right) {
            (Ty::U32, Ty::I32) => self.two(Op::PowUI, a, b),
            // The low bits of a power do not depend on the sign.
            (Ty::I32, Ty::U32) => {
                let base = self.bits_as(Ty::U32, a, ty);
                let power = self.two(Op::PowU, base, b);
                self.bits_as(ty, power, Ty::U32)
            }
            _ => self.block.value(binary(BinaryOp::Pow, ty), 0, &[a, b]),
        }
    }

    fn cast(&mut self, dtype: DType, a: Reg, from: Ty) -> Reg {
        let to = Ty::of(dtype);
        let mut value = match (from, to) {
            (Ty::F32, Ty::I32) => self.one(Op::FToI, a),
            (Ty::F32, Ty::U32) => self.one(Op::FToU, a),
            (Ty::I32, Ty::F32) => self.one(Op::IToF, a),
            (Ty::U32, Ty::F32) => self.one(Op::UToF, a),
            (Ty::Bool, Ty::F32 | Ty::I32 | Ty::U32) => {
                let args = [a, self.number(to, 1), self.number(to, 0)];
                self.block.value(Op::Select, 0, &args)
            }
            // By the bits, without the sign: a NaN is true.
            (Ty::F32, Ty::Bool) => {
                let (bits, magnitude) = (self.bits_as(Ty::U32, a, from), self.word(0x7fff_ffff));
                let bits = self.two(Op::And, bits, magnitude);
                self.two(Op::LtU, ZERO, bits)
            }
            (_, Ty::Bool) if from != to => {
                let zero = self.number(from, 0);
                let is_zero = self.two(Op::Eq, a, zero);
                self.one(Op::Not, is_zero)
            }
            _ => self.bits_as(to, a, from),
        };
        let is_float = from == Ty::F32;
        match dtype {
            DType::F16 => self.one(Op::F16, value),
            DType::BF16 => self.one(Op::BF16, value),
            DType::I8 if is_float => {
                let ends = [self.number(to, -128), self.number(to, 127)];
                value = self.two(Op::MaxI, value, ends[0]);
                self.two(Op::MinI, value, ends[1])
            }
            DType::I8 => {
                let bits = self.word(24);
                value = self.two(Op::Shl, value, bits);
                self.two(Op::ShrI, value, bits)
            }
            DType::U8 => {
                let most = self.word(255);
                self.two(if is_float { Op::MinU } else { Op::And }, value, most)
            }
            DType::F32 | DType::I32 | DType::U32 | DType::Bool => value,
        }
    }

    fn function(&mut self, function: Function, arguments: &[Expr]) -> Reg {
        let mut args = [ZERO; 4];
        for (arg, argument) in args.iter_mut().zip(arguments) {
            *arg = self.expr(argument);
        }
        let ty = |at: usize| arguments.get(at).map_or(Ty::U32, |argument| argument.ty);
        let ([a, b, c, _], ty, right) = (args, ty(0), ty(1));
        let (max, min) = (accumulation(Accumulate::Max, ty), accumulation(Accumulate::Min, ty));
        match (function, ty) {
            (Function::Select, _) => self.block.value(Op::Select, 0, &args),
            (Function::Pow, _) => self.power((a, ty), (b, right)),
            (Function::Max, _) => self.two(max, a, b),
            (Function::Min, _) => self.two(min, a, b),
            (Function::Clamp, _) => {
                let value = self.two(max, a, b);
                self.two(min, value, c)
            }
            (Function::IsNan, _) => self.one(Op::IsNan, a),
            (Function::Relu, _) => {
                let zero = self.number(ty, 0);
                self.two(max, a, zero)
            }
            (Function::Abs | Function::Sign, Ty::U32) => {
                let most = self.number(ty, if function == Function::Sign { 1 } else { -1 });
                self.two(Op::MinU, a, most)
            }
            (Function::Abs, Ty::I32) => {
                let negative = self.unary(UnaryOp::Neg, a, ty);
                self.two(max, a, negative)
            }
            (Function::Sign, Ty::I32) => {
                let ends = [self.number(ty, -1), self.number(ty, 1)];
                let value = self.two(max, a, ends[0]);
                self.two(min, value, ends[1])
            }
            _ => self.block.value(Op::Call, function as u32, &args[..function.arity()]),
        }
    }
}

/// The value of an operation on constants that IEEE 754 rounds correctly.
fn folded(op: BinaryOp, x: f32, y: f32) -> Option<f32> {
    match op {
        BinaryOp::Add => Some(x + y),
        BinaryOp::Sub => Some(x - y),
        BinaryOp::Mul => Some(x * y),
        BinaryOp::Div => Some(x / y),
        _ => None,
    }
}
