//! Steps as text: a line for each, with constants where they are used.

use crate::notation::ast::Function;
use crate::steps::block::{Reg, Step, Steps, ZERO};
use crate::steps::ops::Op;
use crate::wgsl::emit::Text;

/// Prints steps.
#[derive(Debug)]
pub(super) struct Printer<'a> {
    steps: &'a Steps,
    /// What [`Op::Text`], [`Op::Line`] and [`Op::Head`] stand for.
    texts: &'a [Text],
    /// Whether a constant has a name, by its register.
    named: Vec<bool>,
    out: String,
}

/// The text of all steps. A front end computes what it knows all operands of, and refuses what overflows, but it does not
/// look behind a name.
pub(super) fn print(steps: &Steps, texts: &[Text]) -> String {
    let mut printer = Printer { steps, texts, named: vec![false; steps.steps.len()], out: String::new() };
    for &reg in &steps.order {
        let step = printer.step(reg);
        if step.op == Op::Float && scaled(step.number).is_none() {
            printer.named[reg as usize] = true;
        }
        if step.op >= Op::AddF && step.args.into_iter().all(|arg| printer.step(arg).op.is_constant()) {
            printer.named[step.args[0] as usize] = true;
        }
    }
    let mut indent = 1;
    for &reg in &steps.order {
        let step = printer.step(reg);
        if step.op.is_constant() && !printer.named[reg as usize] {
            continue;
        }
        indent -= usize::from(step.op == Op::Close);
        (0..indent).for_each(|_| printer.out.push_str("  "));
        indent += usize::from(matches!(step.op, Op::Open | Op::Head));
        printer.line(reg, step);
        printer.out.push_str("\n");
    }
    printer.out
}

impl<'a> Printer<'a> {
    fn step(&self, reg: Reg) -> &'a Step {
        &self.steps.steps[reg as usize]
    }

    fn line(&mut self, reg: Reg, step: &Step) {
        if step.op.is_constant() || step.op == Op::Load || step.op >= Op::Static {
            self.fill("let $4 = ", reg, step);
            if step.op.is_constant() {
                self.literal(step)
            } else {
                self.fill(step.op.wgsl(), reg, step)
            }
            self.out.push_str(";");
            return;
        }
        let is_conditional = (Op::Store..=Op::AtomicMin).contains(&step.op) && self.step(step.args[2]).op != Op::Truth;
        if is_conditional {
            self.fill("if ($2) { ", reg, step);
        }
        self.fill(step.op.wgsl(), reg, step);
        if is_conditional {
            self.out.push_str(" }");
        }
    }

    /// Appends a pattern: `$0` to `$3` are the operands, `$4` is the step's own name, `#` its number, `@` its text, and `&`
    /// a call of its function.
    fn fill(&mut self, pattern: &str, reg: Reg, step: &Step) {
        let mut is_operand = false;
        for (at, byte) in pattern.bytes().enumerate() {
            match byte {
                b'$' => is_operand = true,
                b'0'..=b'4' if is_operand => {
                    self.operand(step.args.get(usize::from(byte - b'0')).copied().unwrap_or(reg));
                    is_operand = false;
                }
                b'#' => self.number(step.number),
                b'@' => self.text(step),
                b'&' if step.op == Op::Call => self.call(step),
                _ => self.out.push_str(pattern.get(at..=at).unwrap_or_default()),
            }
        }
    }

    fn text(&mut self, step: &Step) {
        let (text, number) = self.texts[step.number as usize];
        self.fill(text, ZERO, &Step { number, ..*step });
    }

    fn number(&mut self, number: u32) {
        if number >= 10 {
            self.number(number / 10);
        }
        self.digit(number % 10);
    }

    fn digit(&mut self, digit: u32) {
        let at = digit as usize & 15;
        self.out.push_str("0123456789abcdef".get(at..=at).unwrap_or_default());
    }

    fn operand(&mut self, reg: Reg) {
        let step = self.step(reg);
        match step.op {
            Op::Text => self.text(step),
            op if op.is_constant() && !self.named[reg as usize] => self.literal(step),
            op => {
                self.out.push_str(match op {
                    Op::Counter => "n",
                    Op::Var => "a",
                    _ => "v",
                });
                self.number(reg);
            }
        }
    }

    fn literal(&mut self, step: &Step) {
        let bits = step.number;
        match step.op {
            Op::Float if scaled(bits).is_some() => self.decimal(scaled(bits).unwrap_or_default()),
            Op::Float => {
                self.out.push_str("lab_f(0x");
                for nibble in (0..8).rev() {
                    self.digit(bits >> (4 * nibble) & 15);
                }
                self.out.push_str("u)");
            }
            // The least one is not a literal.
            Op::Int if (bits as i32) < 0 => {
                self.out.push_str("i32(-");
                self.number(bits.wrapping_neg());
                self.out.push_str(")");
            }
            Op::Truth => self.out.push_str(if bits == 0 { "false" } else { "true" }),
            op => {
                self.number(bits);
                self.out.push_str(if op == Op::Word { "u" } else { "i" });
            }
        }
    }

    /// A number that is so many times 1 / [`PLACES`].
    fn decimal(&mut self, scaled: i32) {
        let is_negative = scaled < 0;
        if is_negative {
            self.out.push_str("f32(-");
        }
        let mut rest = scaled.unsigned_abs();
        self.number(rest / PLACES);
        self.out.push_str(".");
        loop {
            rest = rest % PLACES * 10;
            self.digit(rest / PLACES);
            if rest.is_multiple_of(PLACES) {
                break;
            }
        }
        self.out.push_str(if is_negative { ")" } else { "f" });
    }

    fn call(&mut self, step: &Step) {
        let Some(function) = Function::ALL.get(step.number as usize) else { return };
        match function {
            Function::Rsqrt => self.out.push_str("inverseSqrt"),
            Function::Floor
            | Function::Ceil
            | Function::Round
            | Function::Trunc
            | Function::Sqrt
            | Function::Fma
            | Function::Abs => self.out.push_str(function.name()),
            _ => {
                self.out.push_str("lab_");
                self.out.push_str(function.name());
            }
        }
        for at in 0..function.arity() {
            self.out.push_str(if at == 0 { "(" } else { ", " });
            self.operand(step.args[at]);
        }
        self.out.push_str(")");
    }
}

/// What numbers with few binary places are multiples of the inverse of.
const PLACES: u32 = 1024;

/// Which multiple a number is, exactly; none that is subnormal, infinite, NaN or -0.
fn scaled(bits: u32) -> Option<i32> {
    let scaled = f32::from_bits(bits) * PLACES as f32;
    let is_exact = scaled.abs() < 16_777_216.0 && scaled.trunc() == scaled && bits != 0x8000_0000;
    is_exact.then_some(scaled as i32)
}
