//! Mistakes: what is said, and where the caret stands.

use super::parse;
use crate::error::ErrorKind;
use crate::notation::words::MAX_DEPTH;

const MISTAKES: &[(&str, &str)] = &[
    // Characters and numbers.
    ("y[i] = x[i] $ 2", "1:13: found `$`, expected an operator or a name; a static index is written `@name`"),
    ("y[i] = {x}", "1:8: found `{`, expected an operator or a bracket; brackets are `(` `)` and `[` `]`"),
    (
        "y = \"text\"",
        "1:5: found `\"`, expected an operator or a name; there are no strings, and a comment starts with `#`",
    ),
    (
        "y = x.T",
        "1:6: found `.`, expected an operator; there are no attributes, and a number has a digit beside its point",
    ),
    (
        "y = a \\",
        "1:7: found `\\`, expected an operator; a line goes on by itself inside brackets and after an operator",
    ),
    ("y = 2 × 3", "1:7: found the character U+00D7, expected an operator; multiply with `*`"),
    ("y = 2 − 3", "1:7: found the character U+2212, expected an operator; subtract with `-`"),
    ("y = a ≤ b", "1:7: found the character U+2264, expected an operator; write `<=`"),
    (
        "y = é",
        "1:5: found the character U+00E9, expected an operator or a name; names are ASCII letters, digits and `_`",
    ),
    ("y =\u{a0}1", "1:4: found the character U+00A0, expected a plain space; replace it"),
    (
        "y = \u{7}",
        "1:5: found the character U+0007, expected an operator or a name; names are ASCII letters, digits and `_`",
    ),
    (
        "y = 1\rz = 2",
        "1:6: found the character U+000D, expected a line end; end lines with LF or CR LF, not with CR alone",
    ),
    (
        "y = 1 # comment\rz = 2",
        "1:16: found the character U+000D, expected a line end; end lines with LF or CR LF, not with CR alone",
    ),
    (
        "y = 0xff",
        "1:5: found `0xff`, expected a decimal number without `_` or a suffix; multiply with `*`, and choose a type with a cast, as in `u32(1)`",
    ),
    (
        "y = 1_000",
        "1:5: found `1_000`, expected a decimal number without `_` or a suffix; multiply with `*`, and choose a type with a cast, as in `u32(1)`",
    ),
    (
        "y = 2x",
        "1:5: found `2x`, expected a decimal number without `_` or a suffix; multiply with `*`, and choose a type with a cast, as in `u32(1)`",
    ),
    (
        "y = 1.5f",
        "1:5: found `1.5f`, expected a decimal number without `_` or a suffix; multiply with `*`, and choose a type with a cast, as in `u32(1)`",
    ),
    ("y = 1e", "1:5: found `1e`, expected digits in the exponent, as in `1e-3`"),
    ("y = 1e-", "1:5: found `1e`, expected digits in the exponent, as in `1e-3`"),
    ("y = 1.2.3", "1:5: found `1.2.3`, expected one point in a number; a range is written `lo:hi`"),
    ("y = 1 where i in 0..5", "1:18: found `0..5`, expected one point in a number; a range is written `lo:hi`"),
    (
        "y = 4294967296",
        "1:5: found `4294967296`, expected an integer of at most 4294967295; write a float with a point or an exponent",
    ),
    ("y = 1e999", "1:5: found `1e999`, expected a float of at most 1.7976931348623157e308; write `inf` for infinity"),
    (
        "y = a @ b",
        "1:7: found `@`, expected the name of a static index directly behind it; a matrix product is `c[i, j] +=! a[i, k] * b[k, j]`",
    ),
    (
        "y = @1",
        "1:5: found `@`, expected the name of a static index directly behind it; a matrix product is `c[i, j] +=! a[i, k] * b[k, j]`",
    ),
    // The start of a statement.
    (
        "1 = y",
        "1:1: found `1`, expected a statement `name[index, ...] = expression` or a declaration `name: dtype[extents]`",
    ),
    (
        "y = 1\n+ 2",
        "2:1: found `+`, expected a statement; to go on with the line before, end that line with the operator",
    ),
    (
        "y = 1\n  where i in 0:3",
        "2:3: found `where`, expected a statement; `where` stands on the line on which its statement ends",
    ),
    ("// comment", "1:1: found `/`, expected a statement; a comment starts with `#`"),
    (
        "@s = 1",
        "1:1: found `@s`, expected a statement; a static index is given when the routine is run, and cannot be assigned",
    ),
    ("sum[i] = 1", "1:1: found `sum`, which is reserved, expected the name of a node"),
    ("f32[i] = 1", "1:1: found `f32`, which is reserved, expected the name of a node"),
    (")", "1:1: found `)`, expected a statement; no bracket is open here"),
    (
        "= 1",
        "1:1: found `=`, expected a statement `name[index, ...] = expression` or a declaration `name: dtype[extents]`",
    ),
    // The operator.
    ("y[i] == 1", "1:6: found `==`, expected an assignment operator; did you mean `=`?"),
    ("y[i] -= x[i]", "1:6: found `-`, expected an assignment operator; subtract with `+= -(...)`"),
    ("y[i] /= x[i]", "1:6: found `/`, expected an assignment operator; divide with `*= 1.0 / (...)`"),
    ("y[i] + = x[i]", "1:6: found `+`, expected an assignment operator; `+=` and `*=` are written without a space"),
    (
        "y[i] max = x[i]",
        "1:6: found `max`, expected an assignment operator; `max=` and `min=` are written without a space",
    ),
    ("y[i] min", "1:6: found `min`, expected an assignment operator; `max=` and `min=` are written without a space"),
    ("y[i][j] = 1", "1:5: found `[`, expected an assignment operator; all indices stand in one bracket, `x[i, j]`"),
    (
        "y[i]",
        "1:5: found the end of the program, expected an assignment operator: `=`, `+=`, `*=`, `max=`, `min=`, or with `!`, as in `+=!`",
    ),
    (
        "y",
        "1:2: found the end of the program, expected an assignment operator: `=`, `+=`, `*=`, `max=`, `min=`, or with `!`, as in `+=!`",
    ),
    ("y := 1", "1:4: found `=`, expected a dtype; assign with `=` alone"),
    (
        "y **= 2",
        "1:3: found `**`, expected an assignment operator: `=`, `+=`, `*=`, `max=`, `min=`, or with `!`, as in `+=!`",
    ),
    (
        "y[i] : f32",
        "1:6: found `:`, expected an assignment operator: `=`, `+=`, `*=`, `max=`, `min=`, or with `!`, as in `+=!`",
    ),
    // Declarations.
    ("x: f64[3]", "1:4: found `f64`, expected a dtype: f32, f16, bf16, i32, u32, i8, u8 or bool"),
    ("x: float32", "1:4: found `float32`, expected a dtype: f32, f16, bf16, i32, u32, i8, u8 or bool"),
    ("x:", "1:3: found the end of the program, expected a dtype: f32, f16, bf16, i32, u32, i8, u8 or bool"),
    ("x: f32[-1]", "1:8: found `-`, expected an extent, an integer of at most 4294967295"),
    ("x: f32[n]", "1:8: found `n`, expected an extent, an integer of at most 4294967295"),
    ("x: f32[2.0]", "1:8: found `2.0`, expected an extent, an integer of at most 4294967295"),
    ("x: f32[1,]", "1:10: found `]`, expected an extent, an integer of at most 4294967295"),
    ("x: f32[1, 2", "1:12: found the end of the program, expected `,` or `]` for the bracket at 1:7"),
    ("x: f32[1, 1, 1, 1, 1, 1, 1, 1, 1]", "1:32: found a ninth axis; nodes have at most 8: flatten some of them"),
    (
        "x: f32[3] = 0",
        "1:11: found `=`, expected the end of the line or `;`; a declaration is `name: dtype[extents]` and has no value",
    ),
    ("max: f32", "1:1: found `max`, which is reserved, expected the name of a node"),
    // Expressions.
    (
        "y =",
        "1:4: found the end of the program, expected an expression; a line goes on behind an operator, `=`, `?`, `:` or `,`",
    ),
    (
        "y = \n\n# nothing",
        "1:4: found the end of the program, expected an expression; a line goes on behind an operator, `=`, `?`, `:` or `,`",
    ),
    ("y = +x", "1:5: found `+`, expected an expression; there is no unary plus: leave it out"),
    ("y = a + * b", "1:9: found `*`, expected an expression"),
    ("y = a // b", "1:8: found `/`, expected an expression; `/` truncates integers, and a comment starts with `#`"),
    ("y = = 1", "1:5: found `=`, expected an expression; write `=` once"),
    ("y = a = b", "1:7: found `=`, expected an operator, `where`, the end of the line, or `;`; did you mean `==`?"),
    ("y = a b", "1:7: found `b`, expected an operator, `where`, the end of the line, or `;`; multiply with `*`"),
    ("y = 2 (a)", "1:7: found `(`, expected an operator, `where`, the end of the line, or `;`; multiply with `*`"),
    ("y = 2 3", "1:7: found `3`, expected an operator, `where`, the end of the line, or `;`; multiply with `*`"),
    ("y = a and b", "1:7: found `and`, expected an operator, `where`, the end of the line, or `;`; write `&&`"),
    ("y = a or b", "1:7: found `or`, expected an operator, `where`, the end of the line, or `;`; write `||`"),
    ("y = not a", "1:5: found `not`, expected an operator; write `!`"),
    (
        "y = a if c else b",
        "1:7: found `if`, expected an operator, `where`, the end of the line, or `;`; write `c ? a : b`",
    ),
    ("y = a is b", "1:7: found `is`, expected an operator, `where`, the end of the line, or `;`; write `==`"),
    ("y = a ! b", "1:7: found `!`, expected an operator, `where`, the end of the line, or `;`; did you mean `!=`?"),
    (
        "y = x[i][j]",
        "1:9: found `[`, expected an operator, `where`, the end of the line, or `;`; all indices stand in one bracket behind a name: `x[i, j]`, not `x[i][j]`",
    ),
    (
        "y = (a)[i]",
        "1:8: found `[`, expected an operator, `where`, the end of the line, or `;`; all indices stand in one bracket behind a name: `x[i, j]`, not `x[i][j]`",
    ),
    ("y = [1, 2]", "1:5: found `[`, expected an expression; there are no lists: brackets stand behind a name"),
    (
        "y = x[:, 0]",
        "1:7: found `:`, expected an expression; there are no slices: name an index, and give its range with `where`",
    ),
    (
        "y = x[0:3]",
        "1:8: found `:`, expected `,` or `]` for the bracket at 1:6; there are no slices: name an index, and give its range with `where`",
    ),
    ("y = x[i,]", "1:9: found `]`, expected an expression; leave out the comma before it"),
    ("y = max(a,\n  b\n  c)", "2:4: found the end of the line, expected `,` or `)` for the bracket at 1:8"),
    (
        "y = a : b",
        "1:7: found `:`, expected an operator, `where`, the end of the line, or `;`; `:` belongs to `c ? a : b`",
    ),
    ("y = x[i", "1:8: found the end of the program, expected `,` or `]` for the bracket at 1:6"),
    ("y = (a + b", "1:11: found the end of the program, expected `)` for the bracket at 1:5"),
    ("y = (a + b\nz = 1", "1:11: found the end of the line, expected `)` for the bracket at 1:5"),
    ("y = (a + b]", "1:11: found `]`, expected `)` for the bracket at 1:5"),
    (
        "y = a + b)",
        "1:10: found `)`, expected an operator, `where`, the end of the line, or `;`; no bracket is open here",
    ),
    ("y = (a; b)", "1:7: found `;`, expected `)` for the bracket at 1:5; `;` ends a statement"),
    ("y = ()", "1:6: found `)`, expected an expression"),
    (
        "y = a, b",
        "1:6: found `,`, expected an operator, `where`, the end of the line, or `;`; `,` stands in brackets and in `where`",
    ),
    ("y = a ? b", "1:10: found the end of the program, expected `:` and the other value of `c ? a : b`"),
    (
        "y = a ? b, c",
        "1:10: found `,`, expected `:` and the other value of `c ? a : b`; `,` stands in brackets and in `where`",
    ),
    ("y = a ? : c", "1:9: found `:`, expected an expression"),
    ("y[1, 1, 1, 1, 1, 1, 1, 1, 1] = 1", "1:27: found a ninth axis; nodes have at most 8: flatten some of them"),
    ("y = x[1, 1, 1, 1, 1, 1, 1, 1, 1]", "1:31: found a ninth axis; nodes have at most 8: flatten some of them"),
    ("y = @sum", "1:5: found `@sum`, which is reserved, expected another name"),
    ("y = in", "1:5: found `in`, expected an expression"),
    (
        "y = where(c, a, b)",
        "1:5: found `where`, expected an expression; choose by a condition with `c ? a : b` or `select(c, a, b)`",
    ),
    // Functions.
    (
        "y = foo(x)",
        "1:5: found `foo(`, which is no function; an access is written with brackets, `x[i]`, and a product with `*`",
    ),
    ("y = ln(x)", "1:5: found `ln(`, which is no function; write `log(...)`"),
    (
        "y = i(x)",
        "1:5: found `i(`, which is no function; an access is written with brackets, `x[i]`, and a product with `*`",
    ),
    (
        "y = max(a)",
        "1:5: found 1 argument, but `max` takes 2; over an index, write it in brackets, as in `max[i](...)`",
    ),
    ("y = max(a, b, c)", "1:5: found 3 arguments, but `max` takes 2; nest it, as in `max(max(a, b), c)`"),
    ("y = exp()", "1:5: found 0 arguments, but `exp` takes 1"),
    ("y = exp(a, b)", "1:5: found 2 arguments, but `exp` takes 1"),
    ("y = log(a, 2)", "1:5: found 2 arguments, but `log` takes 1; for another base, divide by its `log`"),
    (
        "y = exp",
        "1:8: found the end of the program, expected `(` and its 1 argument; `exp` is reserved for the function",
    ),
    ("y = exp[i]", "1:8: found `[`, expected `(` and its 1 argument; `exp` is reserved for the function"),
    ("y = f32 + 1", "1:9: found `+`, expected `(` and its 1 argument; `f32` is reserved for the function"),
    ("y = f16(a, b)", "1:5: found 2 arguments, but `f16` takes 1"),
    ("y = bitcast_u32()", "1:5: found 0 arguments, but `bitcast_u32` takes 1"),
    (
        "y = bitcast_f16(x)",
        "1:5: found `bitcast_f16(`, which is no function; there are `bitcast_f32`, `bitcast_i32` and `bitcast_u32`",
    ),
    ("y = pad(x[i])", "1:5: found 1 argument, but `pad` takes 2; the second is the value outside the tensor"),
    ("y = pad(x, 0)", "1:9: found `x`, expected an access; write `pad(x[i - 1], value)`"),
    ("y = pad(2 * x[i], 0)", "1:9: found `2 * x[i]`, expected an access; write `pad(x[i - 1], value)`"),
    ("y = sum(x[i])", "1:8: found `(`, expected `[` and the indices to reduce over, as in `sum[i](...)`"),
    ("y = max + 1", "1:9: found `+`, expected `(` and its 2 arguments; `max` is reserved for the function"),
    ("y = sum[](x)", "1:9: found `]`, expected the name of an index to reduce over"),
    ("y = sum[i + 1](x)", "1:11: found `+`, expected `,` or `]` for the bracket at 1:8"),
    ("y = sum[2](x)", "1:9: found `2`, expected the name of an index to reduce over"),
    ("y = sum[i, i](x)", "1:12: found `i` twice in `sum`; name each index once"),
    ("y = sum[max](x)", "1:9: found `max`, which is reserved, expected the name of an index to reduce over"),
    ("y = sum[i] x[i]", "1:12: found `x`, expected `(` and what to reduce, as in `sum[i](...)`"),
    (
        "y = sum[i](x[i], 2)",
        "1:16: found `,`, expected `)` for the bracket at 1:11; `,` stands in brackets and in `where`",
    ),
    (
        "y = argmax[i, j](x)",
        "1:15: found an index too many for `argmax`, which takes 1: flatten axes, or reduce in several statements",
    ),
    // `where`.
    ("y = 1 where", "1:12: found the end of the program, expected the name of an index, as in `where i in 0:9`"),
    (
        "y = 1 where\n i in 0:3",
        "1:12: found the end of the line, expected the name of an index, as in `where i in 0:9`",
    ),
    ("y = 1 where i = 0:3", "1:15: found `=`, expected `in` and a range, as in `where i in 0:9`"),
    ("y = 1 where i", "1:14: found the end of the program, expected `in` and a range, as in `where i in 0:9`"),
    (
        "y = 1 where i in range(5)",
        "1:18: found `range`, expected an integer; the ends of a range are integer literals, as in `-1:9`",
    ),
    ("y = 1 where i in 5", "1:19: found the end of the program, expected `:` and the end of the range, as in `0:9`"),
    (
        "y = 1 where i in 0:n",
        "1:20: found `n`, expected an integer; the ends of a range are integer literals, as in `-1:9`",
    ),
    (
        "y = 1 where i in 0:2.5",
        "1:20: found `2.5`, expected an integer; the ends of a range are integer literals, as in `-1:9`",
    ),
    (
        "y = 1 where i in 0:-",
        "1:21: found the end of the program, expected an integer; the ends of a range are integer literals, as in `-1:9`",
    ),
    ("y = 1 where i in 5:3", "1:13: found 5:3 for `i`, a range that ends before it starts, expected `lo <= hi`"),
    ("y = 1 where i in 0:3 j in 0:3", "1:22: found `j`, expected `,` and another range, the end of the line, or `;`"),
    ("y = 1 where i in 0:3, \nz = 1", "2:3: found `=`, expected `in` and a range, as in `where i in 0:9`"),
    ("y = 1 where @s in 0:3", "1:13: found `@s`, expected the name of an index, as in `where i in 0:9`"),
    ("y = 1 where in in 0:3", "1:13: found `in`, expected the name of an index, as in `where i in 0:9`"),
    ("y = 1 where i in 0:2 * 3", "1:22: found `*`, expected `,` and another range, the end of the line, or `;`"),
    // Columns count characters; long tokens are cut.
    (
        "# äöü\n  y = 1; z = 2 2",
        "2:16: found `2`, expected an operator, `where`, the end of the line, or `;`; multiply with `*`",
    ),
    (
        "y = 1 12345678901234567890123456789012345678901234567890",
        "1:7: found `1234567890123456789012345678901234567890...`, expected an integer of at most 4294967295; write a float with a point or an exponent",
    ),
];

#[test]
fn mistakes_are_told_with_their_place() {
    for (text, expected) in MISTAKES {
        let error = parse(text).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::NotationSyntax, "{text}");
        let [diagnostic] = error.diagnostics() else { panic!("{text}: {error}") };
        let told = format!("{}:{}: {}", diagnostic.line, diagnostic.column, diagnostic.message);
        assert_eq!(&told, expected, "{text}");
        let place = format!("index notation is not well formed at {}:{}\n", diagnostic.line, diagnostic.column);
        assert!(error.to_string().starts_with(&place), "{error}");
    }
}

#[test]
fn an_error_shows_the_line_with_a_caret() {
    let error = parse("x: f32[3]\n\ty[i] == x[i] # ä\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "index notation is not well formed at 2:7\n\
         2:7: found `==`, expected an assignment operator; did you mean `=`?\n\
         2 | \ty[i] == x[i] # ä\n  | \t     ^"
    );
}

/// Less than a thread has by default (2 MiB), so that larger frames show. Optimised code needs a fifth of it.
fn with_little_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(3 << 19).spawn(test).unwrap().join().unwrap();
}

#[test]
fn depth_is_bounded_with_a_clear_error() {
    with_little_stack(|| {
        let most = MAX_DEPTH as usize;
        // What opens a level, what closes it, and how many levels fit above the innermost operand.
        for (open, close, fit) in [
            ("(", ")", most - 1),
            ("exp(", ")", most - 1),
            ("x[", "]", most - 1),
            ("f16(", ")", most - 1),
            ("sum[k](", ")", most - 1),
            ("pad(x[i], ", ")", most - 2),
            ("a ? ", " : b", most - 1),
            ("a ? b : ", "", most - 1),
            ("-", "", most - 1),
            ("!", "", most - 1),
            ("a + ", "", most - 1),
            ("a ** ", "", most - 1),
            ("a == ", "", most - 1),
            ("2 ** -", "", (most - 1) / 2),
            ("a || b && c == d | e ^ f & g << h + i * -(", ")", (most - 1) / 10),
            ("clamp(0, (a ? x[", "] : c), 1)", (most - 1) / 4),
        ] {
            let nested = |levels: usize| format!("y = {}a{}", open.repeat(levels), close.repeat(levels));
            let deep = parse(&nested(fit)).unwrap_or_else(|error| panic!("{open}\n{error}"));
            assert_eq!(parse(&deep.to_string()).unwrap(), deep);
            for levels in [most + 1, 20_000] {
                let error = parse(&nested(levels)).unwrap_err();
                assert_eq!(
                    error.diagnostics()[0].message,
                    "found an expression over 200 operators and brackets deep; give parts of it names in statements of \
                     their own",
                    "{open}"
                );
            }
        }
    });
}

#[test]
fn long_texts_take_linear_time() {
    // Quadratic work on any of these would take a minute.
    let many = 40_000;
    assert_eq!(parse(&"y[i] = x[i] + 1\n".repeat(many)).unwrap().items.len(), many);
    assert_eq!(parse(&"y = 1;".repeat(many)).unwrap().items.len(), many);
    assert_eq!(parse(&";\n \r\n".repeat(many)).unwrap().items.len(), 0);
    parse(&format!("y = {}1", "#\n".repeat(many))).unwrap();
    parse(&format!("y = a +{}1", "\n#\n".repeat(many))).unwrap();
    parse(&format!("y = 1 where {}k in 0:3", "i in 0:3, ".repeat(many))).unwrap();
    for (text, message) in [
        (format!("y = max({}a)", "a, ".repeat(many)), "found 40001 arguments, but `max` takes 2"),
        (format!("y = x[{}a]", "a, ".repeat(many)), "found a ninth axis"),
        (format!("x: f32[{}1]", "1, ".repeat(many)), "found a ninth axis"),
        (
            format!("y = sum[{}k](k)", (0..many).map(|n| format!("k{n}, ")).collect::<String>()),
            "found an index too many for `sum`, which takes 64",
        ),
        (format!("{} = 1 1", "y".repeat(many)), "found `1`"),
        (format!("y = {}", "1".repeat(many)), "found `1111"),
        (format!("y = {}.0", "1".repeat(many)), "found `1111"),
        (format!("y = {}", "[".repeat(many)), "found `[`"),
        (format!("y = 1{}", "]".repeat(many)), "found `]`"),
        (format!("{}y = 1 1", "\n".repeat(many)), "found `1`"),
    ] {
        let error = parse(&text).unwrap_err();
        assert!(error.diagnostics()[0].message.starts_with(message), "{}", error.diagnostics()[0].message);
    }
}
