"""Programs that must be refused, and where. ¦ stands before the place of the mistake."""

import numpy as np

from case_file import error

X = ("f32", np.arange(8))
M = ("f32", np.arange(24).reshape(4, 6))
IDS = ("i32", [0, 1, 2])
SYNTAX, NAME, TWICE = "notation-syntax", "unknown-node", "duplicate-node"
SHAPE, TYPE, MEANING = "shape-mismatch", "dtype-mismatch", "notation-meaning"


def syntax():
    x = {"x": X}
    error("syntax_unclosed", "y[i] = ¦(x[i] + 1¦", SYNTAX, ")", x)
    error("syntax_character", "# é counts as one\ny[i] = x[i] ¦$ 2", SYNTAX, "$", x)
    error("syntax_unary_plus", "y[i] = x[i] * ¦+2", SYNTAX, "+", x)
    error("syntax_hexadecimal", "y[i] = x[i] + ¦0xff", SYNTAX, "0xff", x)
    error("syntax_reserved_name", "y[i] = x[i]\n¦sum = 1", SYNTAX, "sum", x)
    error("syntax_trailing_comma", "y[i] = max(x[i], 1,¦)", SYNTAX, ")", x)
    error("syntax_literal_too_large", "y[i] = x[i] * ¦4294967296", SYNTAX, "4294967295", x)
    error("syntax_infinite_literal", "y[i] = x[i] * ¦1e999", SYNTAX, "inf", x)
    error("syntax_lone_carriage_return", "y[i] = x[i]¦\rz = 1", SYNTAX, "CR", x)
    error("syntax_where_on_the_next_line", "y[i] = x[i]\n¦where i in 0:4", SYNTAX, "where", x)


def names():
    x = {"x": X}
    error("name_unknown", "y[i] = x[i] + ¦z[i]", NAME, '"z"', x)
    error("name_unknown_scalar", "y[i] = x[i] * 2\nz[i] = y[i] *\n  ¦scale", NAME, '"scale"', x)
    error("name_of_no_contents", "y[i] ¦+= x[i]", NAME, '"y"', x)
    error("name_declared_twice", "y: f32[8]\n¦y: f32[8]\ny[i] = x[i]", TWICE, '"y"', x)
    error("name_of_an_index_is_a_node", "y[i] = x[i]; z = sum[¦y](x[y])", TWICE, '"y"', x)
    error("name_declared_otherwise", "¦x: f32[9]\ny[i] = x[i]", SHAPE, "[9]", x)


def ranges():
    x = {"x": X, "m": M, "ids": IDS}
    error("range_two_extents", "y[i] = x[¦i] + m[0, ¦i]", SHAPE, "6", x)
    error("range_unknown", "y[¦i] = ¦i", SHAPE, "where", {})
    error("range_two_unknown", "y[i] +=! x[¦i + ¦k]", SHAPE, "where", x)
    error("range_left_by_an_access", "x[i] = x[¦i + 1]", SHAPE, "8", x)
    error("range_in_a_branch", "x[i] = i > 0 ? x[¦i - 1] : 0", SHAPE, "-1", x)
    error("range_ends_before_it_starts", "y[i] = x[i] where ¦i in ¦5:3", SYNTAX, "5:3", x)
    error("range_of_nothing", "y[i] = x[i] where ¦k in 0:3", MEANING, "k", x)
    error("range_of_argmax_is_empty", "y = ¦argmax[k](x[k]) where k in 3:3", SHAPE, "nothing", x)
    error("rank", "y[i] = ¦m[i]", SHAPE, "rank 2", x)
    error("gather_from_nothing", "y[t] = none[¦ids[t]]", SHAPE, "none", {"ids": IDS, "none": ("f32", [])})
    error("two_points_meet", "x[¦i / 2 + 0] = 1 where i in 0:8", MEANING, "", x)
    error("set_does_not_scatter", "x[¦ids[t]] = 1", MEANING, "scatter", x)
    error("sum_without_accumulation", "y[i] = m[i, ¦j]", MEANING, "sum", x)


def types():
    x = {"x": X, "n": ("i32", [1, 2, 3]), "u": ("u32", [1, 2, 3])}
    error("type_i32_with_u32", "y[i] = ¦n[i] ¦+ ¦u[i]", TYPE, "u32", x)
    error("type_condition", "y[i] = ¦n[i] ? 1 : 2", TYPE, "bool", x)
    error("type_chained_comparison", "y[i] = ¦0 < n[i] < 3", TYPE, "bool", x)
    error("type_bool_is_no_number", "y[i] = ¦(n[i] > 1) + 1", TYPE, "bool", x)
    error("type_float_into_integer", "n[i] = ¦n[i] * 0.5", TYPE, "i32", x)
    error("type_bits_of_floats", "y[i] = ¦x[i] & 1", TYPE, "f32", x)
    error("type_literal_does_not_fit", "y[i] = u[i] + ¦-1", TYPE, "u32", x)
    error("type_position", "y[t] = x[¦x[t]]", TYPE, "integer", x)


def statics():
    x = {"x": X, "y": ("f32", [5, 5, 5])}
    error("static_at_run", "y[i] = x[i + @at] where i in 0:3\nz: f32[3]\nz[i] = y[i]", SHAPE, "0 to 5", x, {"at": 6},
          "run")
    error("static_below_at_run", "y[i] = x[i + @at] where i in 0:3", SHAPE, "0 to 5", x, {"at": -1}, "run")
    error("static_does_not_wrap", "y[i] = x[i + 2 * @at] where i in 0:3", SHAPE, "0 to 2", x, {"at": 2**31 - 1}, "run")
    error("static_missing", "y[i] = x[i + @at] where i in 0:3", "kernel-interface", "at", x, {}, "run")
    error("static_without_a_value", "z[i] = x[¦i + @at] where i in 0:9", SHAPE, "8", x)


def write():
    syntax()
    names()
    ranges()
    types()
    statics()
