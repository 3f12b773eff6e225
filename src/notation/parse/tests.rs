//! Well-formed texts: what they mean.

use super::parse;
use crate::dtype::DType;
use crate::notation::ast::{Accumulate, AssignOp, Expr, ExprKind, Item, Statement};

/// Every expression in brackets, so that what binds to what can be read.
fn shown(expr: &Expr) -> String {
    let list = |list: &[Expr]| list.iter().map(shown).collect::<Vec<_>>().join(",");
    match &expr.kind {
        ExprKind::Int(value) => value.to_string(),
        ExprKind::Float(value) => format!("{value:?}"),
        ExprKind::Inf => "inf".to_owned(),
        ExprKind::Nan => "nan".to_owned(),
        ExprKind::Pi => "pi".to_owned(),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Static(name) => format!("@{name}"),
        ExprKind::Access { name, positions } => format!("{}[{}]", name.text, list(positions)),
        ExprKind::Unary(op, a) => format!("({}{})", op.symbol(), shown(a)),
        ExprKind::Binary(op, a, b) => format!("({}{}{})", shown(a), op.symbol(), shown(b)),
        ExprKind::Conditional(c, a, b) => format!("({}?{}:{})", shown(c), shown(a), shown(b)),
        ExprKind::Call(function, arguments) => format!("{}({})", function.name(), list(arguments)),
        ExprKind::Cast(dtype, a) => format!("{dtype}({})", shown(a)),
        ExprKind::Bitcast(dtype, a) => format!("bitcast_{dtype}({})", shown(a)),
        ExprKind::Reduce { op, indices, body } => {
            let indices: Vec<&str> = indices.iter().map(|name| name.text.as_str()).collect();
            format!("{}[{}]({})", op.name(), indices.join(","), shown(body))
        }
        ExprKind::Pad { access, value } => format!("pad({},{})", shown(access), shown(value)),
    }
}

fn statements(text: &str) -> Vec<Statement> {
    let items = parse(text).unwrap_or_else(|error| panic!("{text}\n{error}")).items;
    items.into_iter().filter_map(|item| if let Item::Statement(it) = item { Some(it) } else { None }).collect()
}

fn expression(text: &str) -> String {
    let statements = statements(&format!("y = {text}"));
    assert_eq!(statements.len(), 1, "{text}");
    shown(&statements[0].value)
}

#[test]
fn operators_bind_as_in_python() {
    for (text, meaning) in [
        // Each level against the next tighter one, both ways round.
        ("-a ** 2", "(-(a**2))"),
        ("a ** b ** c", "(a**(b**c))"),
        ("2 ** -1", "(2**(-1))"),
        ("2 ** -a ** b", "(2**(-(a**b)))"),
        ("2 ** -a * b", "((2**(-a))*b)"),
        ("2 ** -!~a + b", "((2**(-(!(~a))))+b)"),
        ("-a * b", "((-a)*b)"),
        ("a * -b", "(a*(-b))"),
        ("!a == b", "((!a)==b)"),
        ("~a & b", "((~a)&b)"),
        ("a * b / c % d", "(((a*b)/c)%d)"),
        ("a + b * c", "(a+(b*c))"),
        ("a * b + c", "((a*b)+c)"),
        ("a - b + c", "((a-b)+c)"),
        ("a - -b", "(a-(-b))"),
        ("a << b + c", "(a<<(b+c))"),
        ("a + b >> c", "((a+b)>>c)"),
        ("a << b >> c", "((a<<b)>>c)"),
        ("a & b << c", "(a&(b<<c))"),
        ("a >> b & c", "((a>>b)&c)"),
        ("a ^ b & c", "(a^(b&c))"),
        ("a & b ^ c", "((a&b)^c)"),
        ("a | b ^ c", "(a|(b^c))"),
        ("a ^ b | c", "((a^b)|c)"),
        ("a == b | c", "(a==(b|c))"),
        ("a & 1 == b", "((a&1)==b)"),
        ("a < b == c", "((a<b)==c)"),
        ("a != b >= c", "((a!=b)>=c)"),
        ("a <= b > c", "((a<=b)>c)"),
        ("a && b < c", "(a&&(b<c))"),
        ("a == b && c", "((a==b)&&c)"),
        ("a || b && c", "(a||(b&&c))"),
        ("a && b || c", "((a&&b)||c)"),
        ("a || b || c", "((a||b)||c)"),
        ("a || b ? c : d", "((a||b)?c:d)"),
        ("a ? b : c ? d : e", "(a?b:(c?d:e))"),
        ("a ? b ? c : d : e", "(a?(b?c:d):e)"),
        ("a ? b : c || d", "(a?b:(c||d))"),
        ("(a + b) * c", "((a+b)*c)"),
        ("((a))", "a"),
        ("a < b ? -a ** 2 + 1 : b << 2 | c", "((a<b)?((-(a**2))+1):((b<<2)|c))"),
    ] {
        assert_eq!(expression(text), meaning, "{text}");
        assert_eq!(expression(&text.replace(' ', "")), meaning, "{text} without spaces");
    }
}

#[test]
fn operands_are_what_they_say() {
    for (text, meaning) in [
        ("007", "7"),
        ("4294967295", "4294967295"),
        ("-2147483648", "(-2147483648)"),
        ("1.5 + .5 + 2. + 1e-3 + 1E5 + 2.e1 + 1e+2", "((((((1.5+0.5)+2.0)+0.001)+100000.0)+20.0)+100.0)"),
        ("inf - nan * pi", "(inf-(nan*pi))"),
        ("true || false", "(true||false)"),
        ("@batch + i", "(@batch+i)"),
        ("x[] + x", "(x[]+x)"),
        ("x[i, ids[t] + 1, @s]", "x[i,(ids[t]+1),@s]"),
        ("sum[k](a[i, k] * b[k, j]) + 1", "(sum[k]((a[i,k]*b[k,j]))+1)"),
        ("max[k, l](a[k, l]) + max(a, b)", "(max[k,l](a[k,l])+max(a,b))"),
        ("min[k](a[k]) + min(a, b) + prod[k](1)", "((min[k](a[k])+min(a,b))+prod[k](1))"),
        ("argmax[j](a[j]) - argmin[j](a[j])", "(argmax[j](a[j])-argmin[j](a[j]))"),
        ("select(c, a, b)", "select(c,a,b)"),
        ("threefry2x32(1, 2, 3, 4)", "threefry2x32(1,2,3,4)"),
        ("f16(x) + bool(y)", "(f16(x)+bool(y))"),
        ("bitcast_u32(1.0) + bitcast_f32(x) + bitcast_i32(x)", "((bitcast_u32(1.0)+bitcast_f32(x))+bitcast_i32(x))"),
        ("pad(x[i - 1], -inf)", "pad(x[(i-1)],(-inf))"),
        ("fn[var] + loop", "(fn[var]+loop)"),
        ("max (a, b) + exp (x)", "(max(a,b)+exp(x))"),
    ] {
        assert_eq!(expression(text), meaning, "{text}");
    }
    for function in crate::notation::ast::Function::ALL {
        let arguments = ["a", "b", "c", "d"][..function.arity()].join(",");
        let text = format!("{}({arguments})", function.name());
        assert_eq!(expression(&text), text);
    }
    for dtype in DType::ALL {
        assert_eq!(expression(&format!("{dtype}(a)")), format!("{dtype}(a)"));
    }
}

#[test]
fn every_assignment_is_one_token() {
    for (text, op) in [
        ("=", AssignOp::Set),
        ("+=", AssignOp::Onto(Accumulate::Add)),
        ("*=", AssignOp::Onto(Accumulate::Mul)),
        ("max=", AssignOp::Onto(Accumulate::Max)),
        ("min=", AssignOp::Onto(Accumulate::Min)),
        ("+=!", AssignOp::Fresh(Accumulate::Add)),
        ("*=!", AssignOp::Fresh(Accumulate::Mul)),
        ("max=!", AssignOp::Fresh(Accumulate::Max)),
        ("min=!", AssignOp::Fresh(Accumulate::Min)),
    ] {
        let program = format!("y[i]{text}x[i]");
        let statement = statements(&program).remove(0);
        assert_eq!((statement.op, statement.positions.len()), (op, 1), "{text}");
        assert_eq!(&program[statement.op_span.start as usize..statement.op_span.end as usize], text);
        assert_eq!(op.symbol(), text);
    }
    // The longest match takes the `!`; a space gives it back.
    assert_eq!(shown(&statements("y += !c")[0].value), "(!c)");
    assert_eq!(shown(&statements("y =!c")[0].value), "(!c)");
    assert_eq!(statements("y +=!c")[0].op, AssignOp::Fresh(Accumulate::Add));
}

#[test]
fn declarations_and_targets_have_any_rank() {
    let items = parse("x: f32[128, 64]\nb: bool[]; s:i8\nz: bf16[0, 4294967295, 3, 4, 5, 6, 7, 8]").unwrap().items;
    let seen: Vec<_> = items
        .iter()
        .map(|item| match item {
            Item::Declaration(it) => (it.name.text.as_str(), it.dtype, it.extents.as_slice()),
            Item::Statement(_) => panic!("a statement"),
        })
        .collect();
    assert_eq!(seen[0], ("x", DType::F32, &[128, 64][..]));
    assert_eq!(seen[1], ("b", DType::Bool, &[][..]));
    assert_eq!(seen[2], ("s", DType::I8, &[][..]));
    assert_eq!(seen[3], ("z", DType::BF16, &[0, u32::MAX, 3, 4, 5, 6, 7, 8][..]));
    assert_eq!(statements("y[] = 1"), statements("y = 1"));
    assert_eq!(statements("y[ids[t], 2 * i + 1] += 1")[0].positions.len(), 2);
}

#[test]
fn ranges_are_integers_with_a_sign() {
    let ranges = &statements("y[i] = x[i] where i in -3:9, j in 0:0,\n\n k in -5:-2 # c\n;")[0].ranges;
    let seen: Vec<_> = ranges.iter().map(|range| (range.index.text.as_str(), range.lo, range.hi)).collect();
    assert_eq!(seen, [("i", -3, 9), ("j", 0, 0), ("k", -5, -2)]);
}

#[test]
fn lines_go_on_where_they_must() {
    let one = statements("y[i] = x[i] + (a ? b : c) * 2");
    for text in [
        "y[\n\n# comment\ni] = x[\r\ni\r\n] + (a\n? b\n: c\n) * 2",
        "y[i] = # comment\n\n   # another\n x[i] + # third\r\n\r\n(a ? # c\n b : \n c) *\n2\n\n",
        "\u{feff}\n\n;;# c\n;y[i] =\nx[i]+(a?b:c)*2;;\n;",
        "\ty[i]\t=\tx[i]\t+ (a ? b : c) * 2",
    ] {
        assert_eq!(statements(text), one, "{text}");
    }
    for sign in ["**", "*", "/", "%", "+", "-", "<<", ">>", "&", "^", "|", "<", "<=", ">", ">=", "==", "!=", "&&", "||"]
    {
        assert_eq!(statements(&format!("y = a {sign}\n\n # c\n b")), statements(&format!("y = a {sign} b")));
    }
    for sign in ["=", "+=", "*=", "max=", "min=", "+=!", "*=!", "max=!", "min=!"] {
        assert_eq!(statements(&format!("y {sign}\n b")), statements(&format!("y {sign} b")));
    }
    for sign in ["-", "!", "~"] {
        assert_eq!(statements(&format!("y = {sign}\n b")), statements(&format!("y = {sign} b")));
    }
    assert_eq!(parse("x:\nf32").unwrap(), parse("x: f32").unwrap());
    assert_eq!(statements("y = a ?\n b :\n c"), statements("y = a ? b : c"));
    assert_eq!(statements("y = 1\nz = 2\r\nw = 3;v = 4").len(), 4);
    assert_eq!(statements("y = x[i]\nz = exp(2)\n").len(), 2);
    assert_eq!(parse("").unwrap().items.len(), 0);
    assert_eq!(parse("# nothing").unwrap().items.len(), 0);
    assert_eq!(parse(" \r\n;\n").unwrap().items.len(), 0);
}

#[test]
fn spans_are_what_was_written() {
    let text = "x: f32[4]\ny[i, i+1] +=! (a + b) * exp(x[i]) where i in 0:3";
    let ast = parse(text).unwrap();
    let of = |span: crate::notation::ast::Span| &text[span.start as usize..span.end as usize];
    let (Item::Declaration(declaration), Item::Statement(statement)) = (&ast.items[0], &ast.items[1]) else {
        panic!("{ast:?}");
    };
    assert_eq!(of(declaration.span), "x: f32[4]");
    assert_eq!(of(statement.span), "y[i, i+1] +=! (a + b) * exp(x[i]) where i in 0:3");
    assert_eq!(of(statement.target.span), "y");
    assert_eq!(of(statement.positions[1].span), "i+1");
    assert_eq!(of(statement.value.span), "(a + b) * exp(x[i])");
    assert_eq!(of(statement.ranges[0].span), "i in 0:3");
    let ExprKind::Binary(_, left, right) = &statement.value.kind else { panic!("{statement:?}") };
    assert_eq!((of(left.span), of(right.span)), ("(a + b)", "exp(x[i])"));
}
