"""What networks are made of, and how they are trained."""

import math

import numpy as np

from case_file import Values, case, wide

CLOSE = (1e-5, 1e-5)
LOOSE = (1e-4, 1e-5)
erf = np.vectorize(math.erf)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def losses():
    v = Values(3)
    x, labels = v.normal(9, 13) * 3, v.integers(0, 13, 9)
    p = softmax(wide(x))
    case("softmax", """
        m[i] max=! x[i, j]
        e[i, j] = exp(x[i, j] - m[i])
        s[i] +=! e[i, j]
        y[i, j] = e[i, j] / s[i]
        """, {"x": ("f32", x)}, {"y": ("f32", p, *CLOSE)})
    case("log_softmax", """
        m[i] = max[j](x[i, j])
        y[i, j] = x[i, j] - m[i] - log(sum[k](exp(x[i, k] - m[i])))
        """, {"x": ("f32", x)}, {"y": ("f32", np.log(p), *CLOSE)})
    picked = np.log(p)[np.arange(9), labels]
    gradient = (p - np.eye(13)[labels]) / 9
    case("cross_entropy_and_gradient", """
        m[i] max=! x[i, j]
        s[i] +=! exp(x[i, j] - m[i])
        loss = -sum[i](x[i, labels[i]] - m[i] - log(s[i])) / 9
        dx[i, j] = (exp(x[i, j] - m[i]) / s[i] - f32(labels[i] == j)) / 9
        """, {"x": ("f32", x), "labels": ("i32", labels)},
         {"loss": ("f32", -picked.mean(), *CLOSE), "dx": ("f32", gradient, *CLOSE)})
    case("one_hot", "y[i, c] = f32(labels[i] == c) where c in 0:13\nb[i, c] = labels[i] == c where c in 0:13",
         {"labels": ("i32", labels)}, {"y": ("f32", np.eye(13)[labels]), "b": ("bool", np.eye(13)[labels])})
    x[2, 5], x[2, 7] = 9, 9
    best = x.argmax(1)
    labels[:5] = best[:5]
    case("argmax_accuracy", """
        best[i] = argmax[c](x[i, c])
        accuracy = f32(sum[i](i32(best[i] == labels[i]))) / 9
        """, {"x": ("f32", x), "labels": ("i32", labels)},
         {"best": ("i32", best), "accuracy": ("f32", (best == labels).mean(), 1e-6)})


def norms():
    v = Values(4)
    x, gain, bias = v.normal(7, 24), v.normal(24), v.normal(24)
    w, g, b = wide(x, gain, bias)
    mean, var = w.mean(1, keepdims=True), w.var(1, keepdims=True)
    case("layer_norm", """
        mean[i] = sum[j](x[i, j]) / 24
        var[i] = sum[j]((x[i, j] - mean[i]) ** 2) / 24
        y[i, j] = (x[i, j] - mean[i]) * rsqrt(var[i] + 1e-5) * gain[j] + bias[j]
        """, {"x": ("f32", x), "gain": ("f32", gain), "bias": ("f32", bias)},
         {"y": ("f32", (w - mean) / np.sqrt(var + 1e-5) * g + b, *LOOSE)})
    case("rms_norm", """
        s[i] +=! x[i, j] * x[i, j]
        y[i, j] = x[i, j] / sqrt(s[i] / 24 + 1e-6) * gain[j]
        """, {"x": ("f32", x), "gain": ("f32", gain)},
         {"y": ("f32", w / np.sqrt((w ** 2).mean(1, keepdims=True) + 1e-6) * g, *CLOSE)})
    x, gain, bias, running = v.normal(4, 3, 5, 5), v.normal(3), v.normal(3), v.normal(3)
    w, g, b, r = wide(x, gain, bias, running)
    mean, var = w.mean((0, 2, 3)), w.var((0, 2, 3))
    for _ in range(2):
        r = 0.9 * r + 0.1 * mean
    y = (w - mean[:, None, None]) / np.sqrt(var + 1e-5)[:, None, None] * g[:, None, None] + b[:, None, None]
    case("batch_norm", """
        mean[c] = sum[n, i, j](x[n, c, i, j]) / 100
        var[c] +=! (x[n, c, i, j] - mean[c]) ** 2 / 100
        y[n, c, i, j] = (x[n, c, i, j] - mean[c]) / sqrt(var[c] + 1e-5) * gain[c] + bias[c]
        running[c] = 0.9 * running[c] + 0.1 * mean[c]
        """, {"x": ("f32", x), "gain": ("f32", gain), "bias": ("f32", bias), "running": ("f32", running)},
         {"y": ("f32", y, *LOOSE), "running": ("f32", r, *CLOSE)}, repeat=2)


def mlp():
    v = Values(5)
    x, w1, b1 = v.normal(6, 10), v.normal(14, 10), v.normal(14)
    w2, b2, dy = v.normal(5, 14), v.normal(5), v.normal(6, 5)
    X, W1, B1, W2, B2, DY = wide(x, w1, b1, w2, b2, dy)
    a = X @ W1.T + B1
    g = a * 0.5 * (1 + erf(a / np.sqrt(2)))
    y = g @ W2.T + B2
    slope = 0.5 * (1 + erf(a / np.sqrt(2))) + a * np.exp(-a * a / 2) / np.sqrt(2 * np.pi)
    da = DY @ W2 * slope
    forward = """
        a[n, k] +=! x[n, i] * w1[k, i]
        a[n, k] = a[n, k] + b1[k]
        g[n, k] = gelu(a[n, k])
        y[n, o] +=! g[n, k] * w2[o, k]
        y[n, o] += b2[o]
        """
    given = {"x": ("f32", x), "w1": ("f32", w1), "b1": ("f32", b1), "w2": ("f32", w2), "b2": ("f32", b2)}
    case("mlp_forward", forward, given, {"y": ("f32", y, 1e-4, 1e-4)})
    case("mlp_backward", forward + """
        dg[n, k] +=! dy[n, o] * w2[o, k]
        slope[n, k] = 0.5 * (1 + erf(a[n, k] / sqrt(2.0))) + a[n, k] * exp(-a[n, k] ** 2 / 2) / sqrt(2 * pi)
        da[n, k] = dg[n, k] * slope[n, k]
        dx[n, i] +=! da[n, k] * w1[k, i]
        dw1[k, i] +=! da[n, k] * x[n, i]
        db1[k] +=! da[n, k]
        dw2[o, k] +=! dy[n, o] * g[n, k]
        db2[o] +=! dy[n, o]
        """, given | {"dy": ("f32", dy)},
         {"y": ("f32", y, 1e-4, 1e-4), "dx": ("f32", da @ W1, 1e-4, 1e-4), "dw1": ("f32", da.T @ X, 1e-4, 1e-4),
          "db1": ("f32", da.sum(0), 1e-4, 1e-4), "dw2": ("f32", DY.T @ g, 1e-4, 1e-4),
          "db2": ("f32", DY.sum(0), *CLOSE)})


def rotated(x):
    heads, steps, width = x.shape
    angle = np.arange(steps)[:, None] * 10000.0 ** (-np.arange(width // 2) / (width // 2))
    even, odd = x[..., 0::2], x[..., 1::2]
    y = np.empty_like(x)
    y[..., 0::2] = even * np.cos(angle) - odd * np.sin(angle)
    y[..., 1::2] = even * np.sin(angle) + odd * np.cos(angle)
    return y


def attention():
    v = Values(6)
    q, k, val = v.normal(3, 11, 8), v.normal(3, 11, 8), v.normal(3, 11, 8)
    score = rotated(wide(q)) @ rotated(wide(k)).transpose(0, 2, 1) / np.sqrt(8)
    score[:, ~np.tri(11, dtype=bool)] = -np.inf
    rotate = """
        r{0}: f32[3, 11, 8]
        r{0}[h, t, 2 * p] = {0}[h, t, 2 * p] * cos(angle[t, p]) - {0}[h, t, 2 * p + 1] * sin(angle[t, p])
        r{0}[h, t, 2 * p + 1] = {0}[h, t, 2 * p] * sin(angle[t, p]) + {0}[h, t, 2 * p + 1] * cos(angle[t, p])
        """
    case("attention", "angle[t, p] = f32(t) * 10000.0 ** (-f32(p) / 4) where t in 0:11, p in 0:4"
         + rotate.format("q") + rotate.format("k") + """
        score[h, i, j] +=! rq[h, i, d] * rk[h, j, d]
        masked[h, i, j] = j <= i ? score[h, i, j] / sqrt(8.0) : -inf
        m[h, i] max=! masked[h, i, j]
        e[h, i, j] = exp(masked[h, i, j] - m[h, i])
        z[h, i] +=! e[h, i, j]
        y[h, i, d] +=! e[h, i, j] / z[h, i] * v[h, j, d]
        """, {"q": ("f32", q), "k": ("f32", k), "v": ("f32", val)},
         {"y": ("f32", softmax(score) @ wide(val), 1e-4, 1e-4)})


def embedding():
    v = Values(7)
    table, ids, dy = v.normal(11, 4), v.integers(0, 11, 15), v.normal(15, 4)
    case("embedding", "y[t, d] = table[ids[t], d]", {"table": ("f32", table), "ids": ("i32", ids)},
         {"y": ("f32", table[ids])})
    g = np.zeros((11, 4))
    np.add.at(g, ids, wide(dy))
    case("embedding_gradient", "g: f32[11, 4]\ng[ids[t], d] +=! dy[t, d]", {"ids": ("i32", ids), "dy": ("f32", dy)},
         {"g": ("f32", g, *CLOSE)}, repeat=2)


def in_one_statement():
    """Reductions inside a statement that are the same for many of its points."""
    v = Values(11)
    x, w, u = v.normal(24, 40) * 2, v.normal(24, 30), v.normal(40)
    X, W, U = wide(x, w, u)
    centred = X - X.mean(1, keepdims=True)
    normal = centred / np.sqrt((centred ** 2).mean(1, keepdims=True) + 1e-5)
    case("in_one_statement", """
        y[i, j] = exp(x[i, j] - max[k](x[i, k])) / sum[k](exp(x[i, k] - max[l](x[i, l])))
        z[i, j] = (x[i, j] - sum[k](x[i, k]) / 40) / sqrt(sum[k]((x[i, k] - sum[l](x[i, l]) / 40) ** 2) / 40 + 1e-5)
        c[i] = sum[j](w[i, j] * sum[k](x[23 - j, k] * u[k])) where j in 0:24
        d: f32[24, 40]
        d[i, j] = x[i, j] - sum[k](x[i - 3, k] * u[k]) where i in 3:24
        best[i, j] = argmax[k](x[i, k]) == j where j in 0:40
        odd[i, j] = sum[k](i32(x[i, k] > 0) * (i + k)) % 2 == 0 ? x[i, j] : -x[i, j]
        """, {"x": ("f32", x), "w": ("f32", w), "u": ("f32", u)},
         {"y": ("f32", softmax(X), *CLOSE), "z": ("f32", normal, 1e-4, 1e-4),
          "c": ("f32", W[:, :24] @ (X @ U)[::-1], 1e-3, 1e-3),
          "d": ("f32", np.concatenate([np.zeros((3, 40)), X[3:] - (X @ U)[:21, None]]), 1e-4, 1e-4),
          "best": ("bool", np.arange(40) == X.argmax(1)[:, None]),
          "odd": ("f32", np.where((((X > 0) * np.add.outer(np.arange(24), np.arange(40))).sum(1) % 2 == 0)[:, None], x, -x))})


def optimisers():
    v = Values(8)
    w, g = v.normal(19), v.normal(19)
    W, G, m, s = wide(w, g, np.zeros(19), np.zeros(19))
    for step in range(1, 4):
        m, s = 0.9 * m + 0.1 * G, 0.99 * s + 0.01 * G * G
        W = W - 0.01 * (m / (1 - 0.9 ** step)) / (np.sqrt(s / (1 - 0.99 ** step)) + 1e-8)
    case("adam", """
        step += 1
        m[i] = 0.9 * m[i] + 0.1 * g[i]
        s[i] = 0.99 * s[i] + 0.01 * g[i] * g[i]
        w[i] += -0.01 * (m[i] / (1 - 0.9 ** step)) / (sqrt(s[i] / (1 - 0.99 ** step)) + 1e-8)
        """, {"w": ("f32", w), "g": ("f32", g), "m": ("f32", np.zeros(19)), "s": ("f32", np.zeros(19)),
              "step": ("i32", 0)},
         {"w": ("f32", W, 1e-5, 2e-6), "m": ("f32", m, *CLOSE), "s": ("f32", s, *CLOSE), "step": ("i32", 3)},
         repeat=3)
    W, u = wide(w, np.zeros(19))
    for _ in range(3):
        u = 0.9 * u + G
        W = W - 0.1 * u
    case("sgd_momentum", "u: f32[19]\nu[i] = 0.9 * u[i] + g[i]\nw[i] += -0.1 * u[i]",
         {"w": ("f32", w), "g": ("f32", g)}, {"w": ("f32", W, *CLOSE), "u": ("f32", u, *CLOSE)}, repeat=3)


def write():
    losses()
    norms()
    mlp()
    attention()
    embedding()
    in_one_statement()
    optimisers()
