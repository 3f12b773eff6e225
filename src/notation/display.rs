//! Syntax → text: the canonical form, with no bracket that could be left out, which reads back as the same syntax.

use std::fmt::{Display, Formatter, Result};

use crate::notation::ast::{Ast, BinaryOp, Declaration, Expr, ExprKind, IndexRange, Item, Name, Statement};
use crate::notation::words::level;

/// One line for each declaration and statement.
impl Display for Ast {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (number, item) in self.items.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            item.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Item::Declaration(declaration) => declaration.fmt(f),
            Item::Statement(statement) => statement.fmt(f),
        }
    }
}

impl Display for Declaration {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}: {}", self.name, self.dtype)?;
        if self.extents.is_empty() { Ok(()) } else { listed(f, "[", &self.extents, "]") }
    }
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.target.fmt(f)?;
        if !self.positions.is_empty() {
            listed(f, "[", &self.positions, "]")?;
        }
        write!(f, " {} {}", self.op.symbol(), self.value)?;
        if self.ranges.is_empty() { Ok(()) } else { listed(f, " where ", &self.ranges, "") }
    }
}

impl Display for IndexRange {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} in {}:{}", self.index, self.lo, self.hi)
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&self.text)
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        bound(f, self, level::CONDITIONAL)
    }
}

fn listed(f: &mut Formatter<'_>, open: &str, list: &[impl Display], close: &str) -> Result {
    f.write_str(open)?;
    for (number, part) in list.iter().enumerate() {
        if number > 0 {
            f.write_str(", ")?;
        }
        part.fmt(f)?;
    }
    f.write_str(close)
}

/// Where something stands that binds at least that tightly.
fn bound(f: &mut Formatter<'_>, expr: &Expr, least: u8) -> Result {
    let level = match &expr.kind {
        ExprKind::Conditional(..) => level::CONDITIONAL,
        ExprKind::Binary(op, ..) => op.level(),
        ExprKind::Unary(..) => level::UNARY,
        // The parser and the builder make none, but whoever makes syntax by hand may.
        ExprKind::Float(value) if value.is_sign_negative() => level::UNARY,
        _ => level::PRIMARY,
    };
    if level >= least {
        return plain(f, expr);
    }
    f.write_str("(")?;
    plain(f, expr)?;
    f.write_str(")")
}

fn plain(f: &mut Formatter<'_>, expr: &Expr) -> Result {
    match &expr.kind {
        ExprKind::Int(value) => value.fmt(f),
        ExprKind::Float(value) if value.is_nan() => f.write_str("nan"),
        // Debug, since it keeps the point or the exponent, and the shortest digits that read back as the same value.
        ExprKind::Float(value) => write!(f, "{value:?}"),
        ExprKind::Inf => f.write_str("inf"),
        ExprKind::Nan => f.write_str("nan"),
        ExprKind::Pi => f.write_str("pi"),
        ExprKind::Bool(value) => value.fmt(f),
        ExprKind::Name(name) => f.write_str(name),
        ExprKind::Static(name) => write!(f, "@{name}"),
        ExprKind::Access { name, positions } => {
            name.fmt(f)?;
            listed(f, "[", positions, "]")
        }
        ExprKind::Unary(op, operand) => {
            f.write_str(op.symbol())?;
            bound(f, operand, level::UNARY)
        }
        ExprKind::Binary(op, left, right) => {
            // `**` takes a sign on its right only, and is the one that groups to the right.
            let (least_left, least_right) = match op {
                BinaryOp::Pow => (level::PRIMARY, level::UNARY),
                _ => (op.level(), op.level() + 1),
            };
            bound(f, left, least_left)?;
            write!(f, " {} ", op.symbol())?;
            bound(f, right, least_right)
        }
        ExprKind::Conditional(condition, then, other) => {
            bound(f, condition, level::OR)?;
            f.write_str(" ? ")?;
            then.fmt(f)?;
            f.write_str(" : ")?;
            other.fmt(f)
        }
        ExprKind::Call(function, arguments) => {
            f.write_str(function.name())?;
            listed(f, "(", arguments, ")")
        }
        ExprKind::Cast(dtype, operand) => write!(f, "{dtype}({operand})"),
        ExprKind::Bitcast(dtype, operand) => write!(f, "bitcast_{dtype}({operand})"),
        ExprKind::Reduce { op, indices, body } => {
            f.write_str(op.name())?;
            listed(f, "[", indices, "]")?;
            write!(f, "({body})")
        }
        ExprKind::Pad { access, value } => write!(f, "pad({access}, {value})"),
    }
}

#[cfg(test)]
mod tests {
    use crate::notation::ast::{BinaryOp, Expr, ExprKind, Span};
    use crate::notation::parse;
    use crate::notation::testing::{PROGRAMS, Random, random_ast};

    fn canonical(text: &str) -> String {
        parse(text).unwrap_or_else(|error| panic!("{text}\n{error}")).to_string()
    }

    #[test]
    fn the_canonical_form_has_no_bracket_too_many() {
        for (text, form) in [
            ("y=((a)+(b*c))", "y = a + b * c"),
            ("y=(a+b)*c", "y = (a + b) * c"),
            ("y=a-(b-c)-(d)", "y = a - (b - c) - d"),
            ("y=(a**b)**c", "y = (a ** b) ** c"),
            ("y=a**(b**c)", "y = a ** b ** c"),
            ("y=-(a**2)", "y = -a ** 2"),
            ("y=(-a)**2", "y = (-a) ** 2"),
            ("y=2**(-1)", "y = 2 ** -1"),
            ("y=2**(-1)*3", "y = 2 ** -1 * 3"),
            ("y=2**(-(1*3))", "y = 2 ** -(1 * 3)"),
            ("y=-(-(!(~a)))", "y = --!~a"),
            ("y=(a?b:c)?(d?e:f):(g?h:k)", "y = (a ? b : c) ? d ? e : f : g ? h : k"),
            ("y=!(a==b)", "y = !(a == b)"),
            ("y=a==(b==c)", "y = a == (b == c)"),
            ("y[]+=! x[]", "y +=! x[]"),
            ("x : f32 []\nz:u8[ 1 , 2 ]", "x: f32\nz: u8[1, 2]"),
            ("y[i]=2.*1e30+.5E-10-1e0+00.10", "y[i] = 2.0 * 1e30 + 5e-11 - 1.0 + 0.1"),
            ("y[i]=sum [k] ( a[ i ,k ] )where i in - 1 :5", "y[i] = sum[k](a[i, k]) where i in -1:5"),
            ("y = pad(x[i-1],f16(bitcast_u32(@s)))", "y = pad(x[i - 1], f16(bitcast_u32(@s)))"),
        ] {
            assert_eq!(canonical(text), form, "{text}");
            assert_eq!(canonical(form), form);
        }
    }

    #[test]
    fn floats_by_hand_keep_their_meaning() {
        for (value, form) in [(-1.5, "(-1.5) ** -1.5"), (f64::NAN, "nan ** nan"), (f64::INFINITY, "inf ** inf")] {
            let float = || Expr::new(ExprKind::Float(value), Span::default());
            let power = ExprKind::Binary(BinaryOp::Pow, float(), float());
            let shown = Expr::new(power, Span::default()).to_string();
            assert_eq!(shown, form);
        }
    }

    #[test]
    fn the_reference_programs_read_back() {
        for text in PROGRAMS {
            let ast = parse(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
            let form = ast.to_string();
            assert_eq!(parse(&form).unwrap(), ast, "{form}");
        }
    }

    #[test]
    fn any_syntax_reads_back() {
        let mut random = Random::new(1);
        for _ in 0..5_000 {
            let ast = random_ast(&mut random);
            let form = ast.to_string();
            let again = parse(&form).unwrap_or_else(|error| panic!("{form}\n{error}"));
            assert_eq!(again, ast, "{form}");
            assert_eq!(again.to_string(), form);
        }
    }

    /// Where the bracket that opens at `open` closes.
    fn closing(text: &[u8], open: usize) -> usize {
        let mut depth = 0;
        for (place, byte) in text.iter().enumerate().skip(open) {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return place;
            }
        }
        panic!("an open bracket");
    }

    #[test]
    fn no_bracket_of_any_form_can_be_left_out() {
        let mut random = Random::new(2);
        let mut seen = 0;
        for _ in 0..1_000 {
            let ast = random_ast(&mut random);
            let form = ast.to_string().into_bytes();
            for open in (1..form.len()).filter(|place| form[*place] == b'(') {
                // Behind a word or an index list, the bracket belongs to a function.
                if form[open - 1].is_ascii_alphanumeric() || form[open - 1] == b']' {
                    continue;
                }
                let mut without = form.clone();
                without[closing(&form, open)] = b' ';
                without[open] = b' ';
                let without = String::from_utf8(without).unwrap();
                assert!(parse(&without).map_or(true, |other| other != ast), "{}\n{without}", ast);
                seen += 1;
            }
        }
        assert!(seen > 1_000, "{seen}");
    }
}
