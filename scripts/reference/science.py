"""Programs that are no networks."""

import numpy as np

from case_file import Values, case, wide

CLOSE = (1e-5, 1e-5)
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
MASK = 0xFFFFFFFF


def threefry(k0, k1, c0, c1):
    """Threefry-2x32 with 20 rounds, the first word (Salmon et al. 2011). Of arrays."""
    c0, c1 = np.broadcast_arrays(np.asarray(c0, np.uint64), np.asarray(c1, np.uint64))
    keys = [int(k0), int(k1), 0x1BD11BDA ^ int(k0) ^ int(k1)]
    x, y = (c0 + keys[0]) & MASK, (c1 + keys[1]) & MASK
    for block in range(5):
        for turn in ROTATIONS[block % 2]:
            x = (x + y) & MASK
            y = ((y << np.uint64(turn)) | (y >> np.uint64(32 - turn))) & MASK ^ x
        x = (x + keys[(block + 1) % 3]) & MASK
        y = (y + keys[(block + 2) % 3] + block + 1) & MASK
    return x


# The known answers that come with Random123.
assert threefry(0, 0, 0, 0) == 0x6B200159
assert threefry(MASK, MASK, MASK, MASK) == 0x1CB996FC
assert threefry(0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3) == 0xC4923A9C


def uniform(seed, counter, word=0):
    return (threefry(seed, 0, counter, word) >> np.uint64(8)) * 2.0 ** -24


def random():
    counter = np.arange(24)
    words = np.stack([threefry(3, 4, counter, 7), threefry(0x13198A2E, 0x03707344, 0x243F6A88, counter)])
    case("threefry", """
        y[j, i] = j == 0 ? threefry2x32(3, 4, u32(i), 7) : threefry2x32(320440878, 57701188, 608135816, u32(i)) \
where j in 0:2, i in 0:24
        """, {}, {"y": ("u32", words)}, source=SALMON)
    normal = np.sqrt(-2 * np.log1p(-uniform(5, counter))) * np.cos(2 * np.pi * uniform(5, counter, 1))
    case("uniform_and_normal", """
        u[i] = uniform(u32(@seed), u32(i)) where i in 0:24
        n[i] = normal(u32(@seed), u32(i)) where i in 0:24
        """, {}, {"u": ("f32", uniform(5, counter)), "n": ("f32", normal, 1e-4, 2e-5)}, {"seed": 5}, source=SALMON)
    # Nothing but statics goes into the words: a compiler that follows them along every path has no end.
    word = int(threefry(7, 7, 7, 7))
    normal = np.sqrt(-2 * np.log1p(-uniform(word, word))) * np.cos(2 * np.pi * uniform(word, word, 1))
    v = Values(14)
    x, ids = v.normal(5), v.integers(0, 4, 9)
    case("random_numbers_of_statics", """
        w = threefry2x32(u32(@a), u32(@b), u32(@a), u32(@b))
        y[i] = x[i] * normal(w, w) + sin(uniform(u32(@a), u32(@b)) * 9)
        h[i32(threefry2x32(u32(@a), u32(@b), u32(@a), u32(@b)) % 3) + ids[t]] += 1
        """, {"x": ("f32", x), "ids": ("i32", ids), "h": ("i32", np.zeros(7))},
        {"w": ("u32", word), "y": ("f32", wide(x) * normal + np.sin(9 * uniform(7, 7)), 1e-4, 2e-5),
         "h": ("i32", np.bincount(ids + word % 3, minlength=7))}, {"a": 7, "b": 7}, source=SALMON)
    counter = np.arange(4096)
    radius = uniform(11, 2 * counter) ** 2 + uniform(11, 2 * counter + 1) ** 2
    # No point is so near to the circle that rounding could decide.
    assert np.abs(radius - 1).min() > 1e-6
    case("monte_carlo_pi", """
        inside[i] = uniform(11, u32(2 * i)) ** 2 + uniform(11, u32(2 * i + 1)) ** 2 < 1 where i in 0:4096
        hits = sum[i](i32(inside[i]))
        estimate = 4 * f32(hits) / 4096
        """, {}, {"hits": ("i32", (radius < 1).sum()), "estimate": ("f32", 4 * (radius < 1).mean(), 1e-6)},
         source=SALMON)


SALMON = "scripts/reference (NumPy; threefry after Salmon et al. 2011, checked by the known answers of Random123)"


def counting():
    v = Values(12)
    ids = v.integers(0, 8, 100)
    ids[ids == 5] = 6
    case("histogram", "h: u32[8]\nh[ids[t]] +=! 1", {"ids": ("u8", ids)},
         {"h": ("u32", np.bincount(ids, minlength=8))}, repeat=2)
    x = v.normal(23)
    x[4] = x[9] = x[17]
    case("rank_sort", """
        rank[i] = sum[j](i32(x[j] < x[i] || x[j] == x[i] && j < i))
        y: f32[23]
        y[rank[i]] +=! x[i]
        """, {"x": ("f32", x)},
         {"y": ("f32", np.sort(x)), "rank": ("i32", np.argsort(np.argsort(x, kind="stable"), kind="stable"))})
    primes = [n > 1 and all(n % d for d in range(2, n)) for n in range(120)]
    case("primes", """
        prime[n] = n > 1 && sum[d](i32(d < n && n % d == 0)) == 0 where n in 0:120, d in 2:120
        count = sum[n](i32(prime[n]))
        """, {}, {"prime": ("bool", primes), "count": ("i32", sum(primes))})


def kmeans():
    v = Values(13)
    middles = np.array([[0, 0], [5, 5], [-5, 4], [50, 50]], np.float32)
    x = (middles[v.integers(0, 3, 31)] + v.normal(31, 2)).astype(np.float32)
    X, M = wide(x, middles)
    for _ in range(2):
        nearest = ((X[:, None] - M) ** 2).sum(2).argmin(1)
        M = np.array([X[nearest == k].mean(0) if (nearest == k).any() else M[k] for k in range(4)])
    case("kmeans", """
        distance[i, k] = sum[c]((x[i, c] - m[k, c]) ** 2)
        nearest[i] = argmin[k](distance[i, k])
        count: i32[4]
        total: f32[4, 2]
        count[nearest[i]] +=! 1
        total[nearest[i], c] +=! x[i, c]
        m[k, c] = count[k] > 0 ? total[k, c] / count[k] : m[k, c]
        """, {"x": ("f32", x), "m": ("f32", middles)},
         {"m": ("f32", M, *CLOSE), "nearest": ("i32", nearest), "count": ("i32", np.bincount(nearest, minlength=4))},
         repeat=2)


def physics():
    v = Values(14)
    x, speed, mass = v.normal(17, 3), v.normal(17, 3), v.uniform(0.5, 2, 17)
    X, S, M = wide(x, speed, mass)
    for _ in range(2):
        apart = X[None] - X[:, None]
        near = ((apart ** 2).sum(2) + 0.01) ** -1.5
        S = S + 0.01 * (M[None, :, None] * apart * near[..., None]).sum(1)
        X = X + 0.01 * S
    case("n_body", """
        near[i, j] = rsqrt(sum[c]((x[j, c] - x[i, c]) ** 2) + 0.01)
        force[i, c] +=! m[j] * (x[j, c] - x[i, c]) * near[i, j] ** 3
        v[i, c] += 0.01 * force[i, c]
        x[i, c] += 0.01 * v[i, c]
        """, {"x": ("f32", x), "v": ("f32", speed), "m": ("f32", mass)},
         {"x": ("f32", X, *CLOSE), "v": ("f32", S, 1e-4, 1e-4)}, repeat=2)
    u = v.normal(9, 12)
    U = wide(u)
    for _ in range(3):
        P = np.pad(U, 1, mode="edge")
        U = U + 0.1 * (P[:-2, 1:-1] + P[2:, 1:-1] + P[1:-1, :-2] + P[1:-1, 2:] - 4 * U)
    case("heat", """
        u[i, j] += 0.1 * (pad(u[i - 1, j], u[i, j]) + pad(u[i + 1, j], u[i, j]) + pad(u[i, j - 1], u[i, j]) \
+ pad(u[i, j + 1], u[i, j]) - 4 * u[i, j])
        """, {"u": ("f32", u)}, {"u": ("f32", U, *CLOSE)}, repeat=3)
    g = v.integers(0, 2, 10, 13)
    G = g
    for _ in range(4):
        P = np.pad(G, 1)
        around = sum(P[a:a + 10, b:b + 13] for a in range(3) for b in range(3)) - G
        G = ((around == 3) | ((around == 2) & (G == 1))).astype(int)
    case("game_of_life", """
        n[i, j] = sum[a, b](pad(g[i + a - 1, j + b - 1], 0)) - g[i, j] where a in 0:3, b in 0:3
        g[i, j] = u32(n[i, j] == 3 || n[i, j] == 2 && g[i, j] == 1)
        """, {"g": ("u8", g)}, {"g": ("u8", G)}, repeat=4)


def quantised():
    v = Values(15)
    codes, scale, x = v.integers(0, 16, 6, 24), v.uniform(0.1, 1, 6, 3), v.normal(4, 24)
    words = (codes.reshape(6, 3, 8).astype(np.uint64) << (4 * np.arange(8, dtype=np.uint64))).sum(2)
    want = wide(x) @ ((codes - 8) * np.repeat(wide(scale), 8, 1)).T
    case("matmul_4_bit", """
        y[n, o] +=! x[n, 8 * q + r] * (f32((w[o, q] >> (4 * r)) & 15) - 8) * scale[o, q]
        """, {"x": ("f32", x), "w": ("u32", words), "scale": ("f32", scale)}, {"y": ("f32", want, 1e-5, 1e-4)})


def write():
    random()
    counting()
    kmeans()
    physics()
    quantised()
