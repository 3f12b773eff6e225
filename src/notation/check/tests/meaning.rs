//! What programs that are accepted mean: types, ranges, what is a node and what an index.

use super::{check, checked, given, parse, printed, program};
use crate::dtype::DType;
use crate::error::ErrorKind;
use crate::notation::ast::{self, Function, Item, Statement};
use crate::notation::program::{ExprKind, Origin, StaticIndex};

fn means(cases: &[(&str, &str)]) {
    let mut wrong = String::new();
    for (text, expected) in cases {
        let found = printed(text).pop().unwrap();
        if found != *expected {
            wrong += &format!("        (\n            {text:?},\n            {found:?},\n        ),\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn literals_take_the_type_of_what_they_meet() {
    means(&[
        ("y[i] = v[i] * (1/2)", "y[i] = (v[i] * 0.0): f32 for i in 0:8"),
        ("y[i] = 2 * v[i] + 1", "y[i] = ((2.0 * v[i]) + 1.0): f32 for i in 0:8"),
        ("y[i] = us[i] & ~15", "y[i] = (us[i] & 4294967280u): u32 for i in 0:8"),
        ("y[i] = ids[i] & 1 << 31", "y[i] = (ids[i] & -2147483648i): i32 for i in 0:8"),
        ("y[i] = us[i] * 4294967295", "y[i] = (us[i] * 4294967295u): u32 for i in 0:8"),
        ("y = -2147483648", "y[] = -2147483648i: i32"),
        ("y = 7 / 0 + 7 % 0 + 2 ** -1 + (-1) ** -3 + -7 / 2 + -7 % 3", "y[] = 2i: i32"),
        ("y = 3000000000 > 1", "y[] = true: bool"),
        ("y[i] = us[i] + (flags[i] ? 1 : 0)", "y[i] = (us[i] + (flags[i] ? 1u : 0u)): u32 for i in 0:8"),
        ("y[i] = us[i] + max(1, 2)", "y[i] = (us[i] + 2u): u32 for i in 0:8"),
        ("y[i] = 1 << us[i]", "y[i] = (1u << us[i]): u32 for i in 0:8"),
        ("y[i] = us[i] ** -1", "y[i] = (us[i] ** -1i): u32 for i in 0:8"),
        ("y[i] = ids[i] ** us[i]", "y[i] = (ids[i] ** us[i]): i32 for i in 0:8"),
        ("y[i] = 2 ** v[i]", "y[i] = (2.0 ** v[i]): f32 for i in 0:8"),
        (
            "y = i32(3000000000) + i32(u32(-1)) + i32(u8(300))",
            "y[] = ((i32(3000000000u) + i32(u32(-1i))) + i32(u8(300i))): i32",
        ),
        ("y = f32(16777217) + 1.5e0 + sqrt(2)", "y[] = ((16777216.0 + 1.5) + sqrt(2.0)): f32"),
        (
            "y = bitcast_f32(2139095040) + bitcast_f32(4286578688)",
            "y[] = (bitcast_f32(2139095040i) + bitcast_f32(4286578688u)): f32",
        ),
        ("v[i] = 1", "v[i] = 1.0: f32 for i in 0:8"),
        ("half[i] = i", "half[i] = f32(i): f32 for i in 0:8"),
        ("half[i] = flags[i] ? 1 : 0", "half[i] = (flags[i] ? 1.0 : 0.0): f32 for i in 0:8"),
    ]);
}

#[test]
fn types_are_wide_and_conversions_are_explicit() {
    means(&[
        ("y[i] = half[i] + signed[i]", "y[i] = (half[i] + f32(signed[i])): f32 for i in 0:8"),
        ("y[i] = bytes[i] + us[i]", "y[i] = (bytes[i] + us[i]): u32 for i in 0:8"),
        ("y[i] = i8(ids[i]) + i", "y[i] = (i8(ids[i]) + i): i32 for i in 0:8"),
        ("y[i] = f16(ids[i])", "y[i] = f16(f32(ids[i])): f32 for i in 0:8"),
        ("y[i] = bf16(v[i]) + f16(3)", "y[i] = (bf16(v[i]) + f16(3.0)): f32 for i in 0:8"),
        ("y[i] = bool(v[i]) && !flags[i]", "y[i] = (bool(v[i]) && !(flags[i])): bool for i in 0:8"),
        ("y[i] = flags[i] == (v[i] < 1)", "y[i] = (flags[i] == (v[i] < 1.0)): bool for i in 0:8"),
        ("y[i] = clamp(ids[i], 0, 7.5)", "y[i] = clamp(f32(ids[i]), 0.0, 7.5): f32 for i in 0:8"),
        ("y[i] = v[i] + atan2(i, 2)", "y[i] = (v[i] + atan2(f32(i), 2.0)): f32 for i in 0:8"),
        ("y[i] = select(flags[i], v[i], 0)", "y[i] = (flags[i] ? v[i] : 0.0): f32 for i in 0:8"),
        ("y[i] = isnan(v[i])", "y[i] = isnan(v[i]): bool for i in 0:8"),
        ("y[i] = v[i] * normal(1, us[i])", "y[i] = (v[i] * normal(1u, us[i])): f32 for i in 0:8"),
        (
            "y[i] = i32(threefry2x32(0, 1, us[i], 3)) + @t",
            "y[i] = (i32(threefry2x32(0u, 1u, us[i], 3u)) + @t): i32 for i in 0:8",
        ),
        ("y[i] = -pi * inf + nan * v[i]", "y[i] = ((-(3.1415927) * inf) + (NaN * v[i])): f32 for i in 0:8"),
        ("y[i] = relu(ids[i]) + abs(i) + sign(n)", "y[i] = ((relu(ids[i]) + abs(i)) + sign(n[])): i32 for i in 0:8"),
    ]);
}

#[test]
fn names_are_nodes_before_they_are_indices() {
    means(&[
        ("y[i] = v[n] + v[i]", "y[i] = (v[at n[]] + v[i]): f32 for i in 0:8"),
        ("k = 3; y[i] = v[k] + v[i]", "y[i] = (v[at k[]] + v[i]): f32 for i in 0:8"),
        ("y[i] = v[i] * i; i = 2; z[j] = y[i] + v[j]", "z[j] = (y[at i[]] + v[j]): f32 for j in 0:8"),
        (
            "y[k] = sum[k](v[k]) * w[k] + sum[k](w[k])",
            "y[k] = ((sum[k in 0:8](v[k]) * w[k]) + sum[k in 0:3](w[k])): f32 for k in 0:3",
        ),
        (
            "y = sum[i, j](a[i, j] * sum[i](v[i]))",
            "y[] = sum[i in 0:4, j in 0:6]((a[i, j] * sum[i in 0:8](v[i]))): f32",
        ),
        ("y +=! f32(k) where k in 2:5", "y[] +=! f32(k): f32 over k in 2:5"),
        ("y[fn] = v[fn] where fn in 0:4", "y[fn] = v[fn]: f32 for fn in 0:4"),
    ]);
}

#[test]
fn ranges_are_found() {
    means(&[
        ("v[i] = v[i + 1] where i in 0:7", "v[i] = v[i + 1]: f32 for i in 0:7"),
        ("y[i] +=! v[i + k] where k in 2:2, i in 0:3", "y[i] +=! v[i + k]: f32 for i in 0:3 over k in 2:2"),
        ("y[i] +=! v[i + k] * w[k]", "y[i] +=! (v[i + k] * w[k]): f32 for i in 0:6 over k in 0:3"),
        ("y[i] +=! w[k] * v[7 - k - i]", "y[i] +=! (w[k] * v[-i - k + 7]): f32 for i in 0:6 over k in 0:3"),
        ("y[i, j] = a[i + 1, j + 2]", "y[i, j] = a[i + 1, j + 2]: f32 for i in 0:3, j in 0:4"),
        ("y[i] +=! v[i + 1] * v[i + j]", "y[i] +=! (v[i + 1] * v[i + j]): f32 for i in 0:7 over j in 0:2"),
        ("y[i] = pad(v[i], 0)", "y[i] = pad(v[i], 0.0): f32 for i in 0:8"),
        ("y[i] = pad(v[i], 0) + v[i + 2]", "y[i] = (pad(v[i], 0.0) + v[i + 2]): f32 for i in 0:6"),
        (
            "y[i] = pad(v[ids[i + 5] - 1], i) + w[2 - i]",
            "y[i] = (pad(v[at (ids[i + 5] - 1i)], f32(i)) + w[-i + 2]): f32 for i in 0:3",
        ),
        ("y[i] = empty[i]", "y[i] = empty[i]: f32 for i in 0:0"),
        ("y +=! empty[i]", "y[] +=! empty[i]: f32 over i in 0:0"),
        ("y = sum[k](v[k + 99] * empty[k])", "y[] = sum[k in 0:0]((v[k + 99] * empty[k])): f32"),
        ("v[i] += v[i + 99] where i in 5:5", "v[i] += v[i + 99]: f32 for i in 5:5"),
        ("a[i, i] = 0 where i in 0:4", "a[i, i] = 0.0: f32 for i in 0:4"),
        ("y = sum[k](w[k + 1] * sum[j](v[k + j]))", "y[] = sum[k in 0:2]((w[k + 1] * sum[j in 0:7](v[k + j]))): f32"),
        ("v[4 * i + u] = 1 where i in 0:2, u in 0:4", "v[4 * i + u] = 1.0: f32 for i in 0:2, u in 0:4"),
        ("v[2 * i + 3 * j] = 1 where i in 0:3, j in 0:2", "v[2 * i + 3 * j] = 1.0: f32 for i in 0:3, j in 0:2"),
        ("a[i + j, j] = 1 where i in 0:2, j in 0:3", "a[i + j, j] = 1.0: f32 for i in 0:2, j in 0:3"),
        ("v[7 - i] = w[i]", "v[-i + 7] = w[i]: f32 for i in 0:3"),
        ("v[i + @t] = w[i]", "v[i + @t] = w[i]: f32 for i in 0:3"),
        ("v[i + j] = 1 where i in 3:4, j in 0:4", "v[i + j] = 1.0: f32 for i in 3:4, j in 0:4"),
        (
            "v[i + j + 4 * k] = 1 where i in 0:2, j in 0:1, k in 0:2",
            "v[i + j + 4 * k] = 1.0: f32 for i in 0:2, j in 0:1, k in 0:2",
        ),
    ]);
}

#[test]
fn statics_are_bounded_by_the_accesses_outside_pad() {
    let text = "y: f32[3]; y[i] = v[2 * i + @t - 3 * @u] + pad(v[i + @w], 0) + v[ids[i] + @x] where i in 1:3\nz = v[@t] + v[@t]";
    let program = program(text);
    let shown: Vec<(StaticIndex, i64)> = program.static_bounds.iter().flat_map(|bound| bound.terms.clone()).collect();
    assert_eq!(program.statics, ["t", "u", "w", "x"]);
    assert_eq!(shown, [(0, 1), (1, -3), (0, 1)], "one bound for both accesses of the second line");
    let limits: Vec<_> = program.static_bounds.iter().map(|bound| (bound.least, bound.most)).collect();
    assert_eq!(limits, [(-2, 3), (0, 7)]);
    assert!(program.to_string().contains("-2 <= @t - 3 * @u <= 3 for axis 0 of v\n"), "{program}");
}

#[test]
fn nodes_come_from_where_they_come() {
    let program = program("v: f32[8]; kept: bf16[2, 0]; y[i] = v[i]; s = 1; u: f32; u = 0");
    let nodes: Vec<_> = program.nodes.iter().map(|node| (node.name.as_str(), node.origin)).collect();
    let (given, declared, created) = (Origin::Given, Origin::Declared, Origin::Created);
    assert_eq!(nodes, [("v", given), ("kept", declared), ("y", created), ("s", given), ("u", declared)]);
}

#[test]
fn deep_and_large_programs_are_checked_at_once() {
    let deep = format!("y[i] = {}v[i]{}", "(1 + ".repeat(180), ")".repeat(180));
    assert_eq!(program(&deep).statements.len(), 1);
    let literal = format!("y[i] = v[i] + {}1{}", "(1 + ".repeat(180), ")".repeat(180));
    assert_eq!(printed(&literal), ["y[i] = (v[i] + 181.0): f32 for i in 0:8"]);
    let choices = format!("y[i] = v[i] + ({}0)", "flags[i] ? 1 : ".repeat(90));
    assert!(matches!(program(&choices).statements[0].value.kind, ExprKind::Binary(..)));
    let position = format!("y[i] = v[{}i{}]", "1 - (1 - (".repeat(45), "))".repeat(45));
    assert_eq!(printed(&position), ["y[i] = v[i]: f32 for i in 0:8"]);
    let gathers = format!("y[i] = v[{}i{}]", "ids[".repeat(150), "]".repeat(150));
    assert_eq!(program(&gathers).statements.len(), 1);
    let sums = format!("y = {}1{}", "sum[k](".repeat(150), ")".repeat(150)) + " where k in 0:2";
    assert_eq!(program(&sums).statements[0].indices.len(), 150);
    let large = "y[i] = huge[4294967295 * i]";
    assert_eq!(printed(large), ["y[i] = huge[4294967295 * i]: f32 for i in 0:1"]);
    let lines: Vec<String> = (0..2000).map(|number| format!("t{}[i] = t{number}[i] + v[i]", number + 1)).collect();
    assert_eq!(program(&format!("t0[i] = v[i]\n{}", lines.join("\n"))).statements.len(), 2001);
}

#[test]
fn outputs_must_exist_and_given_names_must_differ() {
    let text = "y[i] = v[i]";
    let ast = parse(text).unwrap();
    let error = check(text, &ast, &given(), &["z".to_owned()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownNode);
    assert_eq!(
        error.to_string(),
        "output \"z\" is no node of the program; list nodes that it assigns, or that are declared or given"
    );
    let program = check(text, &ast, &given(), &["y".to_owned(), "w".to_owned()]).unwrap();
    let outputs: Vec<_> = program.nodes.iter().filter(|node| node.is_output).map(|node| &node.name).collect();
    assert_eq!(outputs, ["y", "w"]);
    let mut twice = given();
    twice.push(twice[0].clone());
    let error = check(text, &ast, &twice, &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DuplicateNode);
    twice.pop();
    twice[0].shape = vec![1; 9];
    assert_eq!(check(text, &ast, &twice, &[]).unwrap_err().kind(), ErrorKind::ShapeMismatch);
}

#[test]
fn a_program_without_a_text_names_the_statement() {
    let ast = parse("y[i] = v[i]\nz[i] = y[i] + w[i]").unwrap();
    let error = check("", &ast, &given(), &[]).unwrap_err();
    assert!(error.diagnostics().is_empty());
    let message = error.to_string();
    assert!(
        message.starts_with("item 2 of the program, the statement that writes \"z\": i runs over axis 0"),
        "{message}"
    );
    assert!(!message.contains('\n'));
}

/// What the parser refuses, a builder may make.
#[test]
fn programs_without_a_text_are_checked_as_closely() {
    let built = |change: &dyn Fn(&mut Statement)| {
        let mut ast = parse("y[i] = exp(v[i]) where i in 0:5").unwrap();
        let Item::Statement(statement) = &mut ast.items[0] else { panic!("a statement") };
        change(statement);
        check("", &ast, &given(), &[]).unwrap_err().to_string()
    };
    let backwards = built(&|statement| statement.ranges[0].lo = 6);
    assert!(backwards.ends_with("the range 6:5 ends before it starts; lo:hi needs lo <= hi"), "{backwards}");
    let arity = built(&|statement| statement.value.kind = ast::ExprKind::Call(Function::Clamp, Vec::new()));
    assert!(arity.ends_with("clamp takes 3 arguments, found 0; write clamp(..)"), "{arity}");
    let padded = built(&|statement| {
        let value = statement.value.clone();
        statement.value.kind = ast::ExprKind::Pad { access: value.clone(), value };
    });
    assert!(padded.contains("pad takes an access of a tensor first"), "{padded}");
    let narrow = built(&|statement| {
        statement.value.kind = ast::ExprKind::Bitcast(DType::F16, statement.value.clone());
    });
    assert!(narrow.ends_with("bitcast_f16 takes a value of 32 bits to another; write f16(..)"), "{narrow}");
    let ranks = built(&|statement| statement.positions = vec![statement.positions[0].clone(); 9]);
    assert!(ranks.contains("\"y\" has rank 9; programs work with rank 0 to 8"), "{ranks}");
    let twice = built(&|statement| {
        let index = ast::Name { text: "k".to_owned(), span: ast::Span::default() };
        let (indices, body) = (vec![index.clone(), index], statement.value.clone());
        statement.value.kind = ast::ExprKind::Reduce { op: ast::ReduceOp::Sum, indices, body };
    });
    assert!(twice.ends_with("k is named twice; name each index once"), "{twice}");
    let none = built(&|statement| {
        let (indices, body) = (Vec::new(), statement.value.clone());
        statement.value.kind = ast::ExprKind::Reduce { op: ast::ReduceOp::ArgMax, indices, body };
    });
    assert!(none.ends_with("argmax takes one index, found 0; write argmax[k](..)"), "{none}");
}

#[test]
fn a_disagreement_points_to_both_places() {
    let error = checked("y[i] = v[i] *\n  w[i]").unwrap_err();
    let places: Vec<_> = error.diagnostics().iter().map(|at| (at.line, at.column)).collect();
    assert_eq!(places, [(2, 5), (1, 10)]);
}
