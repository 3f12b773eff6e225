//! Steps as text: a line for each, with constants where they are used.

use crate::notation::ast::Function;
use crate::steps::block::{Reg, Step, Steps};
use crate::steps::ops::Op;

/// Prints steps.
#[derive(Debug)]
pub(super) struct Printer<'a> {
    steps: &'a Steps,
    /// What [`Op::Text`], [`Op::Line`] and [`Op::Head`] stand for.
    texts: &'a [String],
    /// Whether a constant has a name, by its register.
    named: Vec<bool>,
    out: String,
}

/// The text of all steps. A front end computes what it knows all operands of, and refuses what overflows, but it does not
/// look behind a name.
pub(super) fn print(steps: &Steps, texts: &[String]) -> String {
    let mut printer = Printer { steps, texts, named: vec![false; steps.steps.len()], out: String::new() };
    for &reg in &steps.order {
        let step = printer.step(reg);
        if step.op == Op::Float && decimal(step.number).is_none() {
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
        printer.out.push('\n');
    }
    printer.out
}

impl Printer<'_> {
    fn step(&self, reg: Reg) -> Step {
        self.steps.steps[reg as usize]
    }

    fn line(&mut self, reg: Reg, step: Step) {
        if step.op.is_constant() || step.op == Op::Load || step.op >= Op::Static {
            self.fill("let $4 = ", reg, step);
            if step.op.is_constant() {
                self.literal(step)
            } else {
                self.fill(step.op.wgsl(), reg, step)
            }
            self.out.push(';');
            return;
        }
        let is_conditional = matches!(step.op, Op::AtomicAdd | Op::AtomicMul | Op::AtomicMax | Op::AtomicMin)
            && self.step(step.args[2]).op != Op::Truth;
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
    fn fill(&mut self, pattern: &str, reg: Reg, step: Step) {
        let mut is_operand = false;
        for char in pattern.chars() {
            match char {
                '$' => is_operand = true,
                '0'..='4' if is_operand => {
                    let at = char as usize - '0' as usize;
                    self.operand(step.args.get(at).copied().unwrap_or(reg));
                    is_operand = false;
                }
                '#' => self.number(step.number),
                '@' => self.out.push_str(&self.texts[step.number as usize]),
                '&' if step.op == Op::Call => self.call(step),
                _ => self.out.push(char),
            }
        }
    }

    fn number(&mut self, number: u32) {
        self.out.push_str(&number.to_string());
    }

    fn operand(&mut self, reg: Reg) {
        let step = self.step(reg);
        match step.op {
            Op::Text => self.out.push_str(&self.texts[step.number as usize]),
            op if op.is_constant() && !self.named[reg as usize] => self.literal(step),
            op => {
                self.out.push(match op {
                    Op::Counter => 'n',
                    Op::Var => 'a',
                    _ => 'v',
                });
                self.number(reg);
            }
        }
    }

    fn literal(&mut self, step: Step) {
        let bits = step.number;
        let text = match step.op {
            Op::Word => format!("{bits}u"),
            // The least one is not a literal.
            Op::Int if (bits as i32) < 0 => format!("i32({})", bits as i32),
            Op::Int => format!("{bits}i"),
            Op::Float => decimal(bits).unwrap_or_else(|| format!("lab_f({bits:#x}u)")),
            _ => (bits != 0).to_string(),
        };
        self.out.push_str(&text);
    }

    fn call(&mut self, step: Step) {
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
        self.out.push(')');
    }
}

/// A number with few binary places as a decimal, exactly; none that is subnormal, infinite, NaN or -0.
fn decimal(bits: u32) -> Option<String> {
    const PLACES: f32 = 1024.0;
    let scaled = f32::from_bits(bits) * PLACES;
    if !(scaled.abs() < 16_777_216.0 && scaled.trunc() == scaled) || bits == 0x8000_0000 {
        return None;
    }
    let scaled = scaled as i32;
    let (whole, part) = (scaled.unsigned_abs() / 1024, scaled.unsigned_abs() % 1024);
    // 1 / 1024 is 0.0009765625. The digits behind the point, with a 1 in front for the zeros between.
    let mut digits = (10_000_000_000 + u64::from(part) * 9_765_625).to_string();
    while digits.len() > 2 && digits.ends_with('0') {
        digits.pop();
    }
    let digits = &digits[1..];
    Some(if scaled < 0 { format!("f32(-{whole}.{digits})") } else { format!("{whole}.{digits}f") })
}
