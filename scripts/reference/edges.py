"""Where meaning is easy to get wrong: values before and after, what is left alone, the ends of the types."""

import math

import numpy as np

from case_file import SOURCE, Values, bf16, case, wide

BY_HAND = "worked out by hand from the definition"
INF, NAN = np.inf, np.nan
LOWEST, HIGHEST = -2**31, 2**31 - 1


def by_hand(name, program, inputs, outputs, statics=None, repeat=1):
    case(f"edge_{name}", program, inputs, outputs, statics, repeat, BY_HAND)


def statements():
    x = np.arange(10)
    by_hand("shift_in_place", "x[i] = x[i + 1] where i in 0:9\nz[i] = z[9 - i]",
            {"x": ("f32", x), "z": ("i32", x)}, {"x": ("f32", [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]), "z": ("i32", x[::-1])})
    by_hand("no_prefix_sum", "x[i] += x[i - 1] where i in 1:10", {"x": ("i32", x)},
            {"x": ("i32", [0, 1, 3, 5, 7, 9, 11, 13, 15, 17])})
    c = np.array([[1, 2], [3, 4]])
    by_hand("product_onto_itself", "c[i, j] +=! c[i, k] * c[k, j]\nd[i, j] += d[i, k] * d[k, j]",
            {"c": ("f32", c), "d": ("i32", c)}, {"c": ("f32", c @ c), "d": ("i32", c + c @ c)})
    by_hand("transpose_in_place", "c[i, j] = c[j, i]", {"c": ("u8", [[1, 2, 3], [4, 5, 6], [7, 8, 9]])},
            {"c": ("u8", [[1, 4, 7], [2, 5, 8], [3, 6, 9]])})
    by_hand("swap_through_a_virtual_node", "t[i] = a[i]\na[i] = b[i]\nb[i] = t[i]",
            {"a": ("f32", [1, 2, 3]), "b": ("f32", [4, 5, 6])}, {"a": ("f32", [4, 5, 6]), "b": ("f32", [1, 2, 3])})
    by_hand("other_slots_stay", """
            w[@slot, i] +=! x[j, i]
            v[2 * i] max=! x[0, i]
            """, {"x": ("f32", [[1, 2], [3, 4]]), "w": ("f32", [[9, 9], [9, 9], [9, 9]]), "v": ("f32", [9, 9, 9, 9])},
            {"w": ("f32", [[9, 9], [4, 6], [9, 9]]), "v": ("f32", [1, 9, 2, 9])}, {"slot": 1})
    by_hand("scattered_axis_starts_whole", "w[@slot, ids[t]] +=! 1",
            {"ids": ("i32", [2, 0, 2, -1, 4]), "w": ("i32", [[7, 7, 7, 7], [7, 7, 7, 7]])},
            {"w": ("i32", [[7, 7, 7, 7], [1, 0, 2, 0]])}, {"slot": 1})
    by_hand("declared_nodes_keep_their_contents", """
            count: i32
            seen: f32[4]
            count += 1
            seen[i] = f32(count) where i in 1:3
            fresh[i] = seen[i] + 1
            """, {}, {"count": ("i32", 3), "seen": ("f32", [0, 3, 3, 0]), "fresh": ("f32", [1, 4, 4, 1])}, repeat=3)
    by_hand("accumulations", """
            a[i] += x[i, j]
            b[i] *= x[i, j]
            c[i] max= x[i, j]
            d[i] min= x[i, j]
            e[i] *=! x[i, j]
            f[i] min=! x[i, j]
            """, {"x": ("i32", [[1, 2, 3], [-4, 5, 6]]), "a": ("i32", [10, 20]), "b": ("i32", [2, 3]),
                  "c": ("i32", [2, 9]), "d": ("i32", [0, 0])},
            {"a": ("i32", [16, 27]), "b": ("i32", [12, -360]), "c": ("i32", [3, 9]), "d": ("i32", [0, -4]),
             "e": ("i32", [6, -120]), "f": ("i32", [1, -4])})
    by_hand("an_index_of_a_reduction_hides_another", """
            y[k] = sum[k](a[k]) + sum[k](b[k]) * x[k]
            z[i] = max[j](x[j] * sum[i](a[i])) + x[i]
            """, {"a": ("i32", [1, 2, 3, 4]), "b": ("i32", [5, 6]), "x": ("i32", [1, 2, 3])},
            {"y": ("i32", [21, 32, 43]), "z": ("i32", [31, 32, 33])})
    by_hand("names_that_wgsl_reserves", "fn[loop] = var[loop] + if\nlet = fn[1]",
            {"var": ("f32", [1, 2]), "if": ("f32", 3)}, {"fn": ("f32", [4, 5]), "let": ("f32", 5)})


def accesses():
    table = [10, 11, 12, 13]
    by_hand("gather_is_clamped", """
            y[t] = table[ids[t]]
            z[t] = table[signed[t]]
            w[t] = table[ids[t] + 1]
            v[t] = table[signed[t] - 1]
            p[t] = pad(table[ids[t]], -1)
            q[t] = pad(table[signed[t]], t)
            """, {"table": ("i32", table), "ids": ("u32", [0, 3, 4, 2**32 - 1, 2**31]),
                  "signed": ("i32", [0, 3, -1, LOWEST, HIGHEST])},
            {"y": ("i32", [10, 13, 13, 13, 13]), "z": ("i32", [10, 13, 10, 10, 13]),
             "w": ("i32", [11, 13, 13, 10, 13]), "v": ("i32", [10, 12, 10, 13, 13]),
             "p": ("i32", [10, 13, -1, -1, -1]), "q": ("i32", [10, 13, 2, 3, 4])})
    by_hand("gather_by_a_node_without_indices", "y[i] = m[at, i]\nz = m[at, at + 1]",
            {"m": ("f32", [[1, 2, 3], [4, 5, 6]]), "at": ("i32", 1)}, {"y": ("f32", [4, 5, 6]), "z": ("f32", 6)})
    by_hand("pad_with_an_expression", "y[i] = pad(x[i - 1], x[i] * 10) + pad(x[i + 2], -i)", {"x": ("i32", [1, 2, 3])},
            {"y": ("i32", [13, 0, 0])})
    by_hand("empty_extents", """
            sums[j] +=! x[i, j]
            most[j] max=! x[i, j]
            ones[j] *=! n[i, j]
            low[j] max=! n[i, j]
            high[j] min=! n[i, j]
            copy[i, j] = x[i, j] + 1
            between[i, j] = x[i, j] * 2
            none = sum[i, j](x[i, j]) + 2
            kept[j] += x[i, j]
            over[i] = x[0, i] where i in 0:0
            later[j] +=! copy[i, j] + between[i, j]
            unused: i32[2]
            """, {"x": ("f32", np.zeros((0, 3))), "n": ("i32", np.zeros((0, 3))), "kept": ("f32", [1, 2, 3])},
            {"sums": ("f32", [0, 0, 0]), "most": ("f32", [-INF] * 3), "ones": ("i32", [1, 1, 1]),
             "low": ("i32", [LOWEST] * 3), "high": ("i32", [HIGHEST] * 3), "copy": ("f32", np.zeros((0, 3))),
             "none": ("f32", 2), "kept": ("f32", [1, 2, 3]), "over": ("f32", []),
             "later": ("f32", [0, 0, 0]), "unused": ("i32", [0, 0])})
    by_hand("scatter_drops_what_is_outside", """
            y[ids[t]] += x[t]
            most[ids[t]] max=! x[t]
            grid[ids[t], rows[t]] +=! 1
            """, {"ids": ("i32", [0, -1, 3, 2, 0, LOWEST]), "rows": ("u32", [1, 0, 0, 1, 2**32 - 1, 0]),
                  "x": ("f32", [-1, 2, 4, -8, -16, 32]), "y": ("f32", [100, 100, 100]), "most": ("f32", [5, 5, 5]),
                  "grid": ("i32", [[9, 9], [9, 9], [9, 9]])},
            {"y": ("f32", [83, 100, 92]), "most": ("f32", [-1, -INF, -8]), "grid": ("i32", [[0, 1], [0, 0], [0, 1]])})
    by_hand("scatter_into_narrow_neighbours", """
            a[ids[t]] += u32(1)
            b[ids[t]] += -100
            c[ids[t]] += 0.5
            d[ids[t]] min= -t
            """, {"ids": ("i32", [1, 5, 1, 6, 1]), "a": ("u8", [1, 254, 3, 4, 5, 255, 7]),
                  "b": ("i8", [1, 2, 3, 4, 5, 6, 7]), "c": ("f16", [1, 2, 3, 4, 5, 6, 7]),
                  "d": ("i8", [1, 2, 3, 4, 5, 6, 7])},
            {"a": ("u8", [1, 1, 3, 4, 5, 0, 8]), "b": ("i8", [1, -42, 3, 4, 5, -94, -93]),
             "c": ("f16", [1, 3.5, 3, 4, 5, 6.5, 7.5]), "d": ("i8", [1, -4, 3, 4, 5, -1, -3])})
    by_hand("statics_are_values", "y[i] = x[i + @at] * @factor where i in 0:3",
            {"x": ("i32", [1, 2, 3, 4, 5])}, {"y": ("i32", [-9, -12, -15])}, {"at": 2, "factor": -3})


def integers():
    a = [7, -7, 7, -7, 5, LOWEST, LOWEST, 0]
    b = [2, 2, -2, -2, 0, -1, 0, 0]
    by_hand("integer_division", "q[i] = a[i] / b[i]\nr[i] = a[i] % b[i]\nu[i] = c[i] / d[i]\nv[i] = c[i] % d[i]",
            {"a": ("i32", a), "b": ("i32", b), "c": ("u32", [7, 2**32 - 1, 5, 0]), "d": ("u32", [2, 2**31, 0, 0])},
            {"q": ("i32", [3, -3, -3, 3, 5, LOWEST, LOWEST, 0]), "r": ("i32", [1, -1, 1, -1, 0, 0, 0, 0]),
             "u": ("u32", [3, 1, 5, 0]), "v": ("u32", [1, 2**31 - 1, 0, 0])})
    by_hand("integers_wrap", """
            s[i] = a[i] + b[i]
            p[i] = a[i] * b[i]
            m[i] = -a[i]
            n[i] = abs(a[i])
            l[i] = a[i] << k[i]
            r[i] = a[i] >> k[i]
            u[i] = c[i] - 3
            z[i] = c[i] >> k[i]
            """, {"a": ("i32", [HIGHEST, LOWEST, -5, 3]), "b": ("i32", [1, -1, 7, -3]), "k": ("i32", [1, 31, 33, 32]),
                  "c": ("u32", [2, 2**31, 2**32 - 1, 0])},
            {"s": ("i32", [LOWEST, HIGHEST, 2, 0]), "p": ("i32", [HIGHEST, LOWEST, -35, -9]),
             "m": ("i32", [-HIGHEST, LOWEST, 5, -3]), "n": ("i32", [HIGHEST, LOWEST, 5, 3]),
             "l": ("i32", [-2, 0, -10, 3]), "r": ("i32", [2**30 - 1, -1, -3, 3]),
             "u": ("u32", [2**32 - 1, 2**31 - 3, 2**32 - 4, 2**32 - 3]), "z": ("u32", [1, 1, 2**31 - 1, 0])})
    by_hand("integer_powers", "y[i] = a[i] ** b[i]\nz[i] = c[i] ** 2\nt[i] = 2 ** a[i]",
            {"a": ("i32", [2, -3, 0, 1, -1, -1, 2, 3]), "b": ("i32", [10, 3, 0, -5, -3, -4, -1, 21]),
             "c": ("u32", [0, 3, 65536, 65537])},
            {"y": ("i32", [1024, -27, 1, 1, -1, 1, 0, 3**21 - (3**21 + 2**31) // 2**32 * 2**32]),
             "z": ("u32", [0, 9, 0, 131073]), "t": ("i32", [4, 0, 1, 2, 0, 0, 4, 8])})
    by_hand("precedence", """
            a[i] = -x[i] ** 2
            b[i] = x[i] * (1 / 2)
            c[i] = x[i] / 2 * 2
            d[i] = 1 + x[i] << 1 & 7
            e[i] = x[i] ^ 1 | 8
            f[i] = x[i] > 2 == true ? x[i] == 3 ? 1 : 2 : 3
            g[i] = 2 ** 3 ** 2 - x[i]
            h[i] = 2.0 ** -1 * x[i]
            k[i] = ~x[i] + - - x[i]
            """, {"x": ("i32", [1, 2, 3, 4])},
            {"a": ("i32", [-1, -4, -9, -16]), "b": ("i32", [0, 0, 0, 0]), "c": ("i32", [0, 2, 2, 4]),
             "d": ("i32", [4, 6, 0, 2]), "e": ("i32", [8, 11, 10, 13]), "f": ("i32", [3, 3, 1, 2]),
             "g": ("i32", [511, 510, 509, 508]), "h": ("f32", [0.5, 1, 1.5, 2]), "k": ("i32", [-1, -1, -1, -1])})


def floats():
    by_hand("nan_in_max_and_min", """
            a[i] max=! x[i, j]
            b[i] min=! x[i, j]
            c[i] = argmax[j](x[i, j])
            d[i] = argmin[j](x[i, j])
            e[i, j] = max(x[i, j], 0)
            f[i, j] = min(0, x[i, j])
            g[i, j] = clamp(x[i, j], -1, 2)
            h[i, j] = relu(x[i, j])
            """, {"x": ("f32", [[NAN, 3, NAN], [NAN, NAN, NAN], [-2, NAN, -1], [1, 5, 5], [-3, -3, NAN]])},
            {"a": ("f32", [3, -INF, -1, 5, -3]), "b": ("f32", [3, INF, -2, 1, -3]), "c": ("i32", [1, 0, 2, 1, 0]),
             "d": ("i32", [1, 0, 0, 0, 0]),
             "e": ("f32", [[0, 3, 0], [0, 0, 0], [0, 0, 0], [1, 5, 5], [0, 0, 0]]),
             "f": ("f32", [[0, 0, 0], [0, 0, 0], [-2, 0, -1], [0, 0, 0], [-3, -3, 0]]),
             "g": ("f32", [[-1, 2, -1], [-1, -1, -1], [-1, -1, -1], [1, 2, 2], [-1, -1, -1]]),
             "h": ("f32", [[0, 3, 0], [0, 0, 0], [0, 0, 0], [1, 5, 5], [0, 0, 0]])})
    # A NaN and nothing, or nothing but NaN, is NaN; long enough that lanes, workgroups and parts begin somewhere.
    stay = ("f32", [NAN, NAN, NAN, 3])
    by_hand("extremes_onto_nan", """
            a[i] min= x[i] * f32(j) where j in 0:0
            b[i] max= x[i] * f32(j) where j in 0:0
            c[i] min= x[i] + f32(j) where j in 0:7
            d[i] max= x[i] - f32(j) where j in 0:7
            e[i] min= e[3 - i] * f32(j) where j in 0:0
            f[i] max= f[0] + x[i] - f32(j) where j in 0:7
            g[i] min= x[i] + f32(j) where j in 0:70000
            h[i] max= x[i] - f32(j) where j in 0:70000
            k[i] max= x[i] * f32(j) where j in 0:0
            l[i] min= x[0] + f32(i * j) where j in 0:300
            m[i] += x[i] + f32(j) where j in 0:0
            """, {"x": ("f32", [NAN, -INF, 1, NAN]), **{name: stay for name in "abcdefghklm"},
                  "k": ("bf16", stay[1]), "l": ("f16", stay[1])},
            {"a": stay, "b": stay, "c": ("f32", [NAN, -INF, 1, 3]), "d": ("f32", [NAN, -INF, 1, 3]), "e": stay,
             "f": stay, "g": ("f32", [NAN, -INF, 1, 3]), "h": ("f32", [NAN, -INF, 1, 3]), "k": ("bf16", stay[1]),
             "l": ("f16", stay[1]), "m": stay})
    by_hand("comparisons_with_nan", """
            a[i] = x[i] < y[i]
            b[i] = !(x[i] < y[i])
            c[i] = x[i] >= y[i]
            d[i] = x[i] != x[i]
            e[i] = isnan(x[i])
            f[i] = isinf(x[i])
            g[i] = x[i] == y[i]
            """, {"x": ("f32", [1, NAN, 2, INF, -INF]), "y": ("f32", [2, 1, NAN, INF, 0])},
            {"a": ("bool", [1, 0, 0, 0, 1]), "b": ("bool", [0, 1, 1, 1, 0]), "c": ("bool", [0, 0, 0, 1, 0]),
             "d": ("bool", [0, 1, 0, 0, 0]), "e": ("bool", [0, 1, 0, 0, 0]), "f": ("bool", [0, 0, 0, 1, 1]),
             "g": ("bool", [0, 0, 0, 1, 0])})
    by_hand("float_to_integer_saturates", "y[i] = i32(x[i])\nz[i] = u32(x[i])\nb[i] = bool(x[i])",
            {"x": ("f32", [1.9, -1.9, 3e9, -3e9, INF, -INF, NAN, 2147483520, 0])},
            {"y": ("i32", [1, -1, HIGHEST, LOWEST, HIGHEST, LOWEST, 0, 2147483520, 0]),
             "z": ("u32", [1, 0, 3000000000, 0, 2**32 - 1, 0, 0, 2147483520, 0]),
             "b": ("bool", [1, 1, 1, 1, 1, 1, 1, 1, 0])})
    by_hand("f16_sum_is_rounded_once", "y: f16[2]\ny[i] +=! x[i, j]\nz[i] += x[i, j]",
            {"x": ("f16", [[2048, 1, 1, 1, 1], [1, 1, 1, 1, 2048]]), "z": ("f16", [0, 2048])},
            {"y": ("f16", [2052, 2052]), "z": ("f16", [2052, 4100])})
    x = np.array([1.0009765625 + 2**-11, 70000, 65519, 65520, -1e-9, 2.5, NAN, -INF])
    with np.errstate(over="ignore"):
        h = x.astype(np.float16)
    case("edge_narrow_stores_round", """
         h: f16[8]
         h[i] = x[i]
         y[i] = h[i] * 2
         b: bf16[8]
         b[i] = x[i]
         z[i] = b[i] * 2
         c[i] = f16(x[i])
         i: i8[6]
         i[k] = n[k]
         s[k] = i[k] + 1
         u: u8[6]
         u[k] = u32(n[k])
         v[k] = i8(n[k])
         """, {"x": ("f32", x), "n": ("i32", [1, 127, 128, 256, -129, -1])},
         {"h": ("f16", h), "y": ("f32", wide(h) * 2), "b": ("bf16", bf16(x)), "z": ("f32", wide(bf16(x)) * 2),
          "c": ("f32", h), "i": ("i8", [1, 127, -128, 0, 127, -1]), "s": ("i32", [2, 128, -127, 1, 128, 0]),
          "u": ("u8", [1, 127, 128, 0, 127, 255]), "v": ("i32", [1, 127, -128, 0, 127, -1])}, source=SOURCE)
    by_hand("rounding", "a[i] = round(x[i])\nb[i] = trunc(x[i])\nc[i] = floor(x[i])\nd[i] = ceil(x[i])\ne[i] = sign(x[i])",
            {"x": ("f32", [0.5, 1.5, 2.5, -0.5, -1.5, -2.25, 3.75])},
            {"a": ("f32", [0, 2, 2, 0, -2, -2, 4]), "b": ("f32", [0, 1, 2, 0, -1, -2, 3]),
             "c": ("f32", [0, 1, 2, -1, -2, -3, 3]), "d": ("f32", [1, 2, 3, 0, -1, -2, 4]),
             "e": ("f32", [1, 1, 1, -1, -1, -1, 1])})
    by_hand("float_division_and_powers", """
            a[i] = x[i] / y[i]
            b[i] = x[i] % y[i]
            c[i] = x[i] ** y[i]
            d[i] = x[i] ** 2
            e[i] = sqrt(x[i])
            """, {"x": ("f32", [5.5, -5.5, 1, 0, -2, 4]), "y": ("f32", [2, 2, 0, 0, 3, 0.5])},
            {"a": ("f32", [2.75, -2.75, INF, NAN, -2 / 3, 8], 1e-6), "b": ("f32", [1.5, -1.5, NAN, NAN, -2, 0]),
             "c": ("f32", [30.25, 30.25, 1, 1, -8, 2], 1e-5), "d": ("f32", [30.25, 30.25, 1, 0, 4, 16], 1e-6),
             "e": ("f32", [math.sqrt(5.5), NAN, 1, 0, NAN, 2], 1e-6)})
    by_hand("bitcasts", "a[i] = bitcast_u32(x[i])\nb[i] = bitcast_f32(a[i])\nc[i] = bitcast_i32(x[i])",
            {"x": ("f32", [1, -2, 0, INF])},
            {"a": ("u32", [0x3F800000, 0xC0000000, 0, 0x7F800000]), "b": ("f32", [1, -2, 0, INF]),
             "c": ("i32", [0x3F800000, -0x40000000, 0, 0x7F800000])})


def functions():
    x = np.array([-200, -20, -3, -1, -0.5, 0, 0.25, 1, 2.5, 20, 200], np.float32)
    w = wide(x)
    erf = np.vectorize(math.erf)(w)
    with np.errstate(over="ignore"):
        sigmoid = 1 / (1 + np.exp(-w))
    cube = np.sqrt(2 / np.pi) * (w + 0.044715 * w ** 3)
    far = {"sigmoid": sigmoid, "tanh": np.tanh(w), "erf": erf, "silu": w * sigmoid, "softplus": np.logaddexp(0, w),
           "gelu": w * 0.5 * (1 + erf), "gelu_tanh": w * 0.5 * (1 + np.tanh(cube))}
    far["gelu"] = w * 0.5 * (1 + np.vectorize(math.erf)(w / np.sqrt(2)))
    program = "\n".join(f"y_{name}[i] = {name}(x[i])" for name in far)
    case("functions_far_out", program, {"x": ("f32", x)},
         {f"y_{name}": ("f32", value, 1e-4, 2e-6) for name, value in far.items()})
    v = Values(20)
    x, y, unit = v.uniform(0.1, 4, 24), v.uniform(-3, 3, 24), v.uniform(-0.95, 0.95, 24)
    X, Y, U = wide(x, y, unit)
    near = {"exp(y[i])": np.exp(Y), "exp2(y[i])": np.exp2(Y), "log(x[i])": np.log(X), "log2(x[i])": np.log2(X),
            "sin(y[i])": np.sin(Y), "cos(y[i])": np.cos(Y), "tan(u[i])": np.tan(U), "asin(u[i])": np.arcsin(U),
            "acos(u[i])": np.arccos(U), "atan(y[i])": np.arctan(Y), "atan2(y[i], x[i])": np.arctan2(Y, X),
            "sinh(y[i])": np.sinh(Y), "cosh(y[i])": np.cosh(Y), "sqrt(x[i])": np.sqrt(X),
            "rsqrt(x[i])": 1 / np.sqrt(X), "pow(x[i], y[i])": X ** Y, "fma(x[i], y[i], u[i])": X * Y + U,
            "select(x[i] > 1, y[i], u[i])": np.where(X > 1, Y, U), "abs(y[i])": np.abs(Y)}
    program = "\n".join(f"r{number}[i] = {call}" for number, call in enumerate(near))
    case("functions", program, {"x": ("f32", x), "y": ("f32", y), "u": ("f32", unit)},
         {f"r{number}": ("f32", value, 2e-4, 5e-4) for number, value in enumerate(near.values())})


def write():
    statements()
    accesses()
    integers()
    floats()
    functions()
