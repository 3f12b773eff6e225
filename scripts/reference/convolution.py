"""Convolutions, their gradients, pooling."""

import numpy as np

from case_file import Values, case, wide

CLOSE = (1e-5, 2e-5)


def padded(x, by, value=0.0):
    return np.pad(x, [(0, 0), (0, 0)] + [(by, by)] * (x.ndim - 2), constant_values=value)


def conv1(x, w, stride, padding, dilation):
    x = padded(x, padding)
    size = (x.shape[2] - dilation * (w.shape[2] - 1) - 1) // stride + 1
    y = np.zeros((x.shape[0], w.shape[0], size))
    for i in range(size):
        for u in range(w.shape[2]):
            y[:, :, i] += x[:, :, stride * i + dilation * u] @ w[:, :, u].T
    return y


def conv2(x, w, stride, padding, dilation, groups):
    x = padded(x, padding)
    outs, ins, kh, kw = w.shape
    size = [(x.shape[2 + axis] - dilation * (w.shape[2 + axis] - 1) - 1) // stride + 1 for axis in (0, 1)]
    y = np.zeros((x.shape[0], outs, *size))
    for o in range(outs):
        first = o // (outs // groups) * ins
        for i in range(size[0]):
            for j in range(size[1]):
                rows = slice(stride * i, stride * i + dilation * (kh - 1) + 1, dilation)
                cols = slice(stride * j, stride * j + dilation * (kw - 1) + 1, dilation)
                y[:, o, i, j] = (x[:, first:first + ins, rows, cols] * w[o]).sum((1, 2, 3))
    return y


def forward():
    v = Values(9)
    x, w = v.normal(2, 3, 16), v.normal(4, 3, 3)
    X, W = wide(x, w)
    given = {"x": ("f32", x), "w": ("f32", w)}
    case("conv1d", "y[n, o, i] +=! w[o, c, u] * x[n, c, i + u]", given, {"y": ("f32", conv1(X, W, 1, 0, 1), *CLOSE)})
    case("conv1d_stride_dilation_padding", """
        y[n, o, i] +=! w[o, c, u] * pad(x[n, c, 2 * i + 3 * u - 2], 0) where i in 0:7
        """, given, {"y": ("f32", conv1(X, W, 2, 2, 3), *CLOSE)})
    x, w = v.normal(2, 3, 9, 8), v.normal(4, 3, 3, 3)
    X, W = wide(x, w)
    given = {"x": ("f32", x), "w": ("f32", w)}
    case("conv2d", "y[n, o, i, j] +=! w[o, c, u, v] * x[n, c, i + u, j + v]", given,
         {"y": ("f32", conv2(X, W, 1, 0, 1, 1), *CLOSE)})
    case("conv2d_padding_stride", """
        y[n, o, i, j] +=! w[o, c, u, v] * pad(x[n, c, 2 * i + u - 1, 2 * j + v - 1], 0) where i in 0:5, j in 0:4
        """, given, {"y": ("f32", conv2(X, W, 2, 1, 1, 1), *CLOSE)})
    case("conv2d_dilation", """
        y[n, o, i, j] +=! w[o, c, u, v] * x[n, c, i + 2 * u, j + 2 * v]
        """, given, {"y": ("f32", conv2(X, W, 1, 0, 2, 1), *CLOSE)})
    x, w = v.normal(2, 4, 6, 6), v.normal(6, 2, 3, 3)
    X, W = wide(x, w)
    case("conv2d_groups", """
        y: f32[2, 6, 6, 6]
        y[n, 3 * g + o, i, j] +=! w[3 * g + o, c, u, v] * pad(x[n, 2 * g + c, i + u - 1, j + v - 1], 0) \
where g in 0:2, o in 0:3
        """, {"x": ("f32", x), "w": ("f32", w)}, {"y": ("f32", conv2(X, W, 1, 1, 1, 2), *CLOSE)})
    w = v.normal(4, 3, 3)
    case("conv2d_depthwise", """
        y[n, c, i, j] +=! w[c, u, v] * pad(x[n, c, i + u - 1, j + v - 1], 0) where i in 0:6, j in 0:6
        """, {"x": ("f32", x), "w": ("f32", w)}, {"y": ("f32", conv2(X, wide(w)[:, None], 1, 1, 1, 4), *CLOSE)})


def gradients():
    v = Values(10)
    # 1-D, stride 2, padding 1: the gradient of the input is put together in a padded node.
    x, w, dy = v.normal(2, 3, 12), v.normal(4, 3, 3), v.normal(2, 4, 6)
    X, W, DY = wide(x, w, dy)
    P = padded(X, 1)
    dw, dp = np.zeros_like(W), np.zeros_like(P)
    for i in range(6):
        for u in range(3):
            dw[:, :, u] += DY[:, :, i].T @ P[:, :, 2 * i + u]
            dp[:, :, 2 * i + u] += DY[:, :, i] @ W[:, :, u]
    case("conv1d_gradients", """
        dw[o, c, u] +=! dy[n, o, i] * pad(x[n, c, 2 * i + u - 1], 0) where u in 0:3
        around: f32[2, 3, 14]
        around[n, c, 2 * i + u] +=! w[o, c, u] * dy[n, o, i]
        dx[n, c, q] = around[n, c, q + 1] where q in 0:12
        """, {"x": ("f32", x), "w": ("f32", w), "dy": ("f32", dy)},
         {"dw": ("f32", dw, *CLOSE), "dx": ("f32", dp[:, :, 1:13], *CLOSE)})
    x, w, dy = v.normal(2, 3, 6, 7), v.normal(4, 3, 3, 3), v.normal(2, 4, 6, 7)
    X, W, DY = wide(x, w, dy)
    P = padded(X, 1)
    dw, dp = np.zeros_like(W), np.zeros_like(P)
    for i in range(6):
        for j in range(7):
            dw += np.einsum("no,ncuv->ocuv", DY[:, :, i, j], P[:, :, i:i + 3, j:j + 3])
            dp[:, :, i:i + 3, j:j + 3] += np.einsum("no,ocuv->ncuv", DY[:, :, i, j], W)
    case("conv2d_gradients", """
        dw[o, c, u, v] +=! dy[n, o, i, j] * pad(x[n, c, i + u - 1, j + v - 1], 0) where u in 0:3, v in 0:3
        dx[n, c, p, q] +=! w[o, c, u, v] * pad(dy[n, o, p - u + 1, q - v + 1], 0) where p in 0:6, q in 0:7
        """, {"x": ("f32", x), "w": ("f32", w), "dy": ("f32", dy)},
         {"dw": ("f32", dw, *CLOSE), "dx": ("f32", dp[:, :, 1:7, 1:8], *CLOSE)})


def pooling():
    v = Values(11)
    x = v.normal(2, 3, 7, 8)
    even = wide(x)[:, :, :6].reshape(2, 3, 3, 2, 4, 2)
    around = padded(wide(x), 1, -np.inf)
    windows = np.stack([around[:, :, u:u + 7:2, v:v + 8:2][:, :, :4, :4] for u in range(3) for v in range(3)])
    case("pooling", """
        most[n, c, i, j] max=! x[n, c, 2 * i + u, 2 * j + v] where u in 0:2, v in 0:2
        mean[n, c, i, j] = sum[u, v](x[n, c, 2 * i + u, 2 * j + v]) / 4 where u in 0:2, v in 0:2
        over[n, c, i, j] max=! pad(x[n, c, 2 * i + u - 1, 2 * j + v - 1], -inf) \
where i in 0:4, j in 0:4, u in 0:3, v in 0:3
        """, {"x": ("f32", x)},
         {"most": ("f32", even.max((3, 5))), "mean": ("f32", even.mean((3, 5)), 1e-6, 1e-6),
          "over": ("f32", windows.max(0))})


def write():
    forward()
    gradients()
    pooling()
