"""Products, views and copies."""

import numpy as np

from case_file import Values, case, wide

SUM = (1e-5, 1e-5)


def products():
    v = Values(1)
    m, k, n = 7, 13, 5
    for name, left, right in [("nn", "i, k", "k, j"), ("nt", "i, k", "j, k"), ("tn", "k, i", "k, j"),
                              ("tt", "k, i", "j, k")]:
        a, b = v.normal(m, k), v.normal(k, n)
        want = wide(a) @ wide(b)
        case(f"matmul_{name}", f"c[i, j] +=! a[{left}] * b[{right}]",
             {"a": ("f32", a if left == "i, k" else a.T), "b": ("f32", b if right == "k, j" else b.T)},
             {"c": ("f32", want, *SUM)})
    a, b = v.normal(33, 17), v.normal(17, 65)
    case("matmul_odd_33x17x65", "c[i, j] +=! a[i, k] * b[k, j]", {"a": ("f32", a), "b": ("f32", b)},
         {"c": ("f32", wide(a) @ wide(b), *SUM)})
    a, b = v.normal(1, 97), v.normal(97, 1)
    case("matmul_long_sum", "c[i, j] +=! a[i, k] * b[k, j]", {"a": ("f32", a), "b": ("f32", b)},
         {"c": ("f32", wide(a) @ wide(b), *SUM)})
    a, b = v.normal(3, 5, 9), v.normal(3, 9, 4)
    case("matmul_batch", "c[n, i, j] +=! a[n, i, k] * b[n, k, j]", {"a": ("f32", a), "b": ("f32", b)},
         {"c": ("f32", wide(a) @ wide(b), *SUM)})
    case("matmul_batch_of_a_static", "c[i, j] +=! a[@batch, i, k] * b[@batch, k, j]",
         {"a": ("f32", a), "b": ("f32", b)}, {"c": ("f32", wide(a[2]) @ wide(b[2]), *SUM)}, {"batch": 2})
    a, b = v.integers(-128, 128, 6, 11), v.integers(0, 256, 11, 5)
    case("matmul_i8_u8", "c[i, j] +=! a[i, k] * i32(b[k, j])", {"a": ("i8", a), "b": ("u8", b)},
         {"c": ("i32", a @ b)})
    a, b = v.normal(6, 16).astype(np.float16), v.normal(16, 6).astype(np.float16)
    case("matmul_f16", "c[i, j] +=! a[i, k] * b[k, j]", {"a": ("f16", a), "b": ("f16", b)},
         {"c": ("f32", wide(a) @ wide(b), *SUM)})
    a, b = v.normal(9), v.normal(6)
    case("outer_product", "c[i, j] = a[i] * b[j]", {"a": ("f32", a), "b": ("f32", b)},
         {"c": ("f32", np.outer(wide(a), wide(b)), 1e-6)})


def views():
    v = Values(2)
    a = v.normal(9, 9)
    case("trace_and_diagonal", "t +=! a[i, i]\nd[i] = a[i, i]", {"a": ("f32", a)},
         {"t": ("f32", np.trace(wide(a)), *SUM), "d": ("f32", np.diagonal(a))})
    case("diagonal_set", "a[i, i] = 0", {"a": ("f32", a)}, {"a": ("f32", a * (1 - np.eye(9)))})
    a = v.integers(0, 256, 7, 11)
    case("transpose_u8", "y[j, i] = x[i, j]", {"x": ("u8", a)}, {"y": ("u32", a.T)})
    a = v.normal(2, 3, 4, 5)
    case("transpose_rank_4", "y[l, j, i, k] = x[i, j, k, l]", {"x": ("f32", a)},
         {"y": ("f32", a.transpose(3, 1, 0, 2))})
    a, m = v.normal(17), v.normal(7, 10)
    case("slices_and_strides", """
        odd[i] = x[2 * i + 1]
        back[i] = x[16 - i]
        part[i, j] = m[i + 2, 3 * j] where i in 0:4
        row[j] = m[@row, j]
        far: f32[20]
        far[3 * i + 1] = x[i] where i in 0:6
        """, {"x": ("f32", a), "m": ("f32", m)},
         {"odd": ("f32", a[1::2]), "back": ("f32", a[::-1]), "part": ("f32", m[2:6, ::3]), "row": ("f32", m[5]),
          "far": ("f32", spread(a))}, {"row": 5})
    a, b = v.normal(5, 3), v.normal(7, 3)
    case("concatenation", """
        y: f32[12, 3]
        y[i, c] = a[i, c] where i in 0:5
        y[i, c] = b[i - 5, c] where i in 5:12
        """, {"a": ("f32", a), "b": ("f32", b)}, {"y": ("f32", np.concatenate([a, b]))})
    names = [f"x{number}" for number in range(40)]
    xs = {name: v.normal(16) for name in names}
    want = sum(wide(x) * (number + 1) for number, x in enumerate(xs.values()))
    case("forty_tensors", "y[i] = " + " + ".join(f"{name}[i] * {number + 1}" for number, name in enumerate(names)),
         {name: ("f32", x) for name, x in xs.items()}, {"y": ("f32", want, 1e-5, 1e-3)})


def spread(a):
    far = np.zeros(20, np.float32)
    far[1:19:3] = a[:6]
    return far


def write():
    products()
    views()
