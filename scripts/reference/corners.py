"""Statements that read what they write, constants that a shader compiler must not see, statics, types at their ends."""

import numpy as np

from case_file import Values, case
from edges import HIGHEST, INF, LOWEST, NAN, by_hand


def reading_what_is_written():
    x = np.array([[1, 2], [3, 4], [5, 6]])
    by_hand("accumulating_its_own_element", "a[i] += a[i] * x[i, j]\nb[i] max= b[i] + x[i, j]\nc[i] *= c[i]",
            {"a": ("i32", [1, 10, 100]), "b": ("i32", [0, -10, 10]), "x": ("i32", x), "c": ("f32", [2, 3])},
            {"a": ("i32", [4, 80, 1200]), "b": ("i32", [2, -6, 16]), "c": ("f32", [4, 9])})
    by_hand("gather_in_place", "y[i] = y[ids[i]]\nn[n[t]] += 1\nz[ids[t]] +=! z[t] * 2",
            {"y": ("f32", [1, 2, 3, 4]), "ids": ("i32", [3, 0, 0, 9]), "n": ("i32", [1, 2, 2, 7]),
             "z": ("f32", [1, 2, 3, 4])},
            {"y": ("f32", [4, 1, 1, 4]), "n": ("i32", [1, 3, 4, 7]), "z": ("f32", [10, 0, 0, 2])})
    by_hand("product_with_itself_on_the_right", "x[i] +=! x[j] * m[i, j]",
            {"x": ("f32", [1, 2]), "m": ("f32", [[0, 1], [1, 1]])}, {"x": ("f32", [2, 3])})
    by_hand("scattered_products", "p[ids[t]] *=! x[t]\nq[ids[t]] *= x[t]\nh[ids[t]] max= x[t]",
            {"ids": ("i32", [0, 1, 0, 2, 0]), "x": ("f32", [2, -3, 4, 5, -6]), "p": ("f32", [9, 9, 9, 9]),
             "q": ("f32", [1, 2, 3, 4]), "h": ("f16", [-7, -7, 7, -7])},
            {"p": ("f32", [-48, -3, 5, 1]), "q": ("f32", [-48, -6, 15, 4]), "h": ("f16", [4, -3, 7, -7])})
    by_hand("overlapping_windows_accumulate", """
            y[i + u] +=! x[i] where u in 0:2
            z[i + u] max= x[i] where u in 0:2
            n[i + u] += u32(100 * u + i) where i in 0:2, u in 0:2
            """, {"x": ("f32", [1, 2, 3]), "y": ("f32", [9, 9, 9, 9]), "z": ("f16", [-5, 5, -5, -5]),
                  "n": ("u8", [250, 200, 7])},
            {"y": ("f32", [1, 3, 5, 3]), "z": ("f16", [1, 5, 3, 3]), "n": ("u8", [250, 45, 108])})
    by_hand("ranges_below_zero", "y[i + 3] = x[i + 3] + i where i in -3:2\nx[-i] += 100 where i in -4:-2",
            {"x": ("i32", [0, 10, 20, 30, 40]), "y": ("i32", [7, 7, 7, 7, 7, 7])},
            {"y": ("i32", [-3, 8, 19, 30, 41, 7]), "x": ("i32", [0, 10, 20, 130, 140])})
    by_hand("rank_zero", "s = s * 2 + 1\nt[] +=! x[i]\ns[] += t", {"s": ("f32", 3), "x": ("f32", [1, 2])},
            {"s": ("f32", 10), "t": ("f32", 3)})


def reductions():
    x = np.array([[1, 5, 2], [4, 4, 0]])
    by_hand("reductions_in_reductions", """
            a[i] = sum[j](x[i, j] * max[k](x[k, j]))
            b[i] = table[argmax[j](x[i, j])]
            c[i] = argmin[j](x[i, j]) * 10 + argmax[k](-x[i, k])
            d = prod[i, j](x[i, j] + 1)
            e = argmax[j](x[0, j]) where j in 1:3
            f[i] = min[j](x[i, j] * (j - i))
            g = argmax[j](f32(j) * nan) where j in 5:9
            """, {"x": ("i32", x), "table": ("i32", [7, 8, 9])},
            {"a": ("i32", [4 + 25 + 4, 16 + 20]), "b": ("i32", [8, 7]), "c": ("i32", [0, 22]),
             "d": ("i32", 2 * 6 * 3 * 5 * 5 * 1), "e": ("i32", 1), "f": ("i32", [0, -4]), "g": ("i32", 0)})
    by_hand("neutral_elements_of_narrow_types", """
            a[j] max=! x[i, j]; b[j] min=! x[i, j]
            c[j] max=! y[i, j]; d[j] min=! y[i, j]
            e[j] max=! z[i, j]; f[j] min=! z[i, j]
            g[j] *=! z[i, j]
            """, {"x": ("i8", np.zeros((0, 1))), "y": ("u8", np.zeros((0, 1))), "z": ("f16", np.zeros((0, 1))),
                  "a": ("i8", [1]), "b": ("i8", [1]), "c": ("u8", [1]), "d": ("u8", [1]), "e": ("f16", [1]),
                  "f": ("f16", [1]), "g": ("bf16", [5])},
            {"a": ("i8", [-128]), "b": ("i8", [127]), "c": ("u8", [0]), "d": ("u8", [255]), "e": ("f16", [-INF]),
             "f": ("f16", [INF]), "g": ("bf16", [1])})
    x = np.arange(2**8).reshape([2] * 8)
    by_hand("rank_8", "y[h, g, f, e, d, c, b, a] = x[a, b, c, d, e, f, g, h]\ns[a, h] +=! x[a, b, c, d, e, f, g, h]",
            {"x": ("i32", x)}, {"y": ("i32", x.transpose(range(7, -1, -1))), "s": ("i32", x.sum((1, 2, 3, 4, 5, 6)))})
    n = np.array([-72, -3, 100, -100000, 16777217, -16777217, -(2**31)])
    case("edge_integers_as_floats", "y[i] = n[i] + 0.1\nz[i] = 0.1 - b[i]", {"n": ("i32", n), "b": ("i8", n[:4].clip(-128, 127))},
         {"y": ("f32", n.astype("f4") + 0.1), "z": ("f32", 0.1 - n[:4].clip(-128, 127))})
    # Bodies of loops that are long once they are repeated: branches in them take SwiftShader's compiler no end.
    i, k = np.arange(64)[:, None], np.arange(32)
    a, b = (i * 7 + k * 3) % 11, (k[:, None] * 5 + i.T) % 13
    case("edge_long_bodies_of_loops", """
         x[i] = f32(i == 90) where i in 0:40000
         h = max[i](x[i])
         a[i, k] = f32((i * 7 + k * 3) % 11) where i in 0:64, k in 0:32
         b[k, j] = f32((k * 5 + j) % 13) where k in 0:32, j in 0:64
         c[i, j] max=! a[i, k] + b[k, j]
         d[i] +=! c[i, j]
         """, {}, {"h": ("f32", 1), "d": ("f32", (a[:, :, None] + b).max(1).sum(1))})
    x = Values(30).integers(-50, 50, 300)
    case("edge_whole_reductions", "a +=! x[i]\nb max=! x[i]\nc min=! x[i]\nd = argmax[i](x[i])\ne = argmin[i](x[i])",
         {"x": ("i32", x)}, {"a": ("i32", x.sum()), "b": ("i32", x.max()), "c": ("i32", x.min()),
                             "d": ("i32", x.argmax()), "e": ("i32", x.argmin())})


def constants():
    by_hand("constants_are_computed_alike", """
            a = 1.0 / 0.0
            b = sqrt(-1.0)
            c = i32(1e10) + i32(nan)
            d = u32(-1.0)
            e = 1.0 % 0.0
            f = exp(1000.0)
            g = log(-1.0) + log(0.0)
            h = pow(-2.0, 3.0) + (-2.0) ** 2
            i = inf - inf
            j = max(nan, 1.0) + clamp(nan, 2.0, 3.0)
            k = isnan(nan) && isinf(-inf) && nan != nan && !(nan < 1.0)
            l = 5 / 0 + 5 % 0
            m = u32(1) << 40
            n = asin(2.0)
            o = f16(70000.0)
            p = i32(2147483647) + 1
            q = -2147483648
            r = bitcast_f32(u32(2139095040))
            s = 0.0 * inf
            t = u32(3) - 5
            u = i32(-2147483648) / -1
            v = true ? 1.5 : 1 / 0
            """, {},
            {"a": ("f32", INF), "b": ("f32", NAN), "c": ("i32", HIGHEST), "d": ("u32", 0), "e": ("f32", NAN),
             "f": ("f32", INF), "g": ("f32", NAN), "h": ("f32", -4, 1e-5), "i": ("f32", NAN), "j": ("f32", 3),
             "k": ("bool", 1), "l": ("i32", 5), "m": ("u32", 256), "n": ("f32", NAN), "o": ("f32", INF),
             "p": ("i32", LOWEST), "q": ("i32", LOWEST), "r": ("f32", INF), "s": ("f32", NAN),
             "t": ("u32", 2**32 - 2), "u": ("i32", LOWEST), "v": ("f32", 1.5)})
    by_hand("bools", "y[i] = a[i] && !b[i] || a[i] == b[i]\nz[i] = y[i] ? 1 : 0\nw[i] = f32(a[i]) + f32(i32(b[i]))\na[i] = b[i]",
            {"a": ("bool", [1, 1, 0, 0]), "b": ("bool", [1, 0, 1, 0])},
            {"y": ("bool", [1, 1, 0, 1]), "z": ("i32", [1, 1, 0, 1]), "w": ("f32", [2, 1, 1, 0]),
             "a": ("bool", [1, 0, 1, 0])})
    by_hand("conversions", """
            a[i] = f32(u[i])
            b[i] = f32(n[i])
            c[i] = i32(u[i])
            d[i] = u32(n[i])
            x[i] = n[i]
            y[i] = n[i] + 0.5
            z[i] = u[i] > 7
            """, {"u": ("u32", [7, 2**31, 2**32 - 1]), "n": ("i32", [-1, LOWEST, 2**24 + 1]), "x": ("f32", [0, 0, 0])},
            {"a": ("f32", [7, 2.0**31, 2.0**32]), "b": ("f32", [-1, -2.0**31, 2.0**24]), "c": ("i32", [7, LOWEST, -1]),
             "d": ("u32", [2**32 - 1, 2**31, 2**24 + 1]), "x": ("f32", [-1, -2.0**31, 2.0**24]),
             "y": ("f32", [-0.5, -2.0**31, 2.0**24 + 1.5], 3e-7), "z": ("bool", [0, 1, 1])})


def statics():
    by_hand("statics_on_both_sides", """
            w[@slot, i] = x[i + @first] + @slot
            p[i] = pad(x[i + @first], 0) where i in 0:6
            q[i] = pad(x[3 * @far + i], -1) where i in 0:6
            """, {"x": ("i32", [1, 2, 3, 4, 5]), "w": ("i32", np.zeros((3, 2)))},
            {"w": ("i32", [[0, 0], [0, 0], [6, 7]]), "p": ("i32", [4, 5, 0, 0, 0, 0]), "q": ("i32", [-1] * 6)},
            {"slot": 2, "first": 3, "far": -100})
    by_hand("pad_of_a_static_does_not_wrap", "y[i] = pad(x[i + 2 * @far], -1) where i in 0:4",
            {"x": ("i32", [1, 2, 3, 4, 5])}, {"y": ("i32", [-1, -1, -1, -1])}, {"far": HIGHEST})


def size():
    """More than a shader compiler or a workgroup takes at once, in small files."""
    x = np.arange(6)
    # The limit is 200, of brackets and operators together.
    deep, want = "x[i]", x
    for step in range(99):
        deep, want = (f"({deep} + {step})", want + step) if step % 3 else (f"({deep} ^ {step})", want ^ step)
    signs = "-" * 198 + "x[i]"
    calls = "".join(f"max({step}, " for step in range(-190, 3)) + "x[i]" + ")" * 193
    choices = "".join(f"x[i] == {step} ? {step + 100} : " for step in range(3, 193)) + "-1"
    by_hand("deep_expression", f"y[i] = {deep}\ns[i] = {signs}\nm[i] = {calls}\nc[i] = {choices}", {"x": ("i32", x)},
            {"y": ("i32", want), "s": ("i32", x), "m": ("i32", np.maximum(x, 2)),
             "c": ("i32", np.where(x < 3, -1, x + 100))})
    long = "\n".join(f"t{n + 1}[i] = t{n}[i] * 3 + t{n}[0]" for n in range(60))
    by_hand("long_chain", f"t0[i] = x[i] + 1\n{long}", {"x": ("i32", x)},
            {"t60": ("i32", chain(x + 1, 60))})
    ids = Values(31).integers(-1, 4, 2000)
    counts = np.bincount(ids[ids >= 0], minlength=4)[:3]
    case("edge_crowded_scatters", """
         a: u8[3]
         a[ids[t]] += u32(1)
         b: i32[3]
         b[ids[t]] += t
         c: f16[3]
         c[ids[t]] max=! -f32(t)
         d: u32[3]
         d[ids[t]] min=! u32(t)
         e: i8[3]
         e[ids[t]] *=! 3
         """, {"ids": ("i8", ids)},
         {"a": ("u8", counts % 256), "b": ("i32", [np.flatnonzero(ids == k).sum() for k in range(3)]),
          "c": ("f16", [-float(np.flatnonzero(ids == k)[0]) for k in range(3)]),
          "d": ("u32", [np.flatnonzero(ids == k)[0] for k in range(3)]),
          "e": ("i8", [(pow(3, int(count), 256) + 128) % 256 - 128 for count in counts])})
    # More workgroups than one dimension of a grid holds.
    count = 4_300_001
    picked = np.arange(0, count, 100_000)
    case("edge_folded_grid", f"big: i32[{count}]\nbig[i] = i % 251 where i in 0:{count}\ny[k] = big[100000 * k]\nlast = big[{count - 1}]", {},
         {"y": ("i32", picked % 251), "last": ("i32", (count - 1) % 251)})


def long_reductions():
    i = np.arange(200000)
    x = (i == 199990) + (i == 5) * 0.5 - (i == 150001)
    case("long_reductions", """
        x: f32[200000]
        x[i] = f32(i == 199990) + f32(i == 5) * 0.5 - f32(i == 150001) where i in 0:200000
        m = argmax[i](x[i])
        l = argmin[i](x[i])
        none = argmax[i](x[i] * nan)
        h = max[i](x[i])
        s = sum[i](x[i])
        c = sum[i](i32(x[i] * 2.0))
        q[k] = argmax[i](x[i] * f32(k)) where k in 0:3
        b = sum[i](x[i] * sum[j](f32(j))) where j in 0:3
        n[k] = sum[i](sum[j](i32(i == j) * (k + 1))) where k in 0:20, i in 0:400, j in 0:300
        t[k] +=! i32(x[i] * x[i]) * k where k in 0:20
        """, {},
        {"m": ("i32", x.argmax()), "l": ("i32", x.argmin()), "none": ("i32", 0), "h": ("f32", x.max()),
         "s": ("f32", x.sum()), "c": ("i32", np.trunc(x * 2).sum()),
         "q": ("i32", [(x * k).argmax() for k in range(3)]), "b": ("f32", x.sum() * 3),
         "n": ("i32", 300 * np.arange(1, 21)), "t": ("i32", np.trunc(x * x).sum() * np.arange(20))},
        source="arithmetic; more turns than the 65,535 after which llvmpipe leaves the loops of a kernel")


def chain(values, steps):
    """x * 3 + x[0], so many times, in 32 bits."""
    values = [int(value) for value in values]
    for _ in range(steps):
        values = [value * 3 + values[0] for value in values]
    return [(value + 2**31) % 2**32 - 2**31 for value in values]


def write():
    size()
    long_reductions()
    reading_what_is_written()
    reductions()
    constants()
    statics()
