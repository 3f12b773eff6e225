// The programs of the menu, with how their inputs are filled at first.

import type { Generator } from "./generators.ts";

/** A program to start from. */
export interface Example {
  readonly name: string;
  readonly text: string;
  /** By the names of inputs; others get noise. */
  readonly fill?: Readonly<Record<string, Generator>>;
  /** The node that is shown first. */
  readonly show?: string;
}

const MATRIX_PRODUCT = `# k stands only on the right: it is summed over
a: f32[48, 32]
b: f32[32, 64]
c[i, j] +=! a[i, k] * b[k, j]
y[i, j] = max(c[i, j], 0)
`;

const SOFTMAX = `# Each statement reads what those before it wrote
x: f32[12, 24]
m[i] max=! x[i, j]
e[i, j] = exp(2 * (x[i, j] - m[i]))
s[i] +=! e[i, j]
y[i, j] = e[i, j] / s[i]
`;

const ATTENTION = `# Causal attention: 4 heads, 24 tokens, 16 features
q: f32[4, 24, 16]
k: f32[4, 24, 16]
v: f32[4, 24, 16]
w[h, i, j] = sum[d](q[h, i, d] * k[h, j, d]) / sqrt(16.0)
w[h, i, j] = j <= i ? w[h, i, j] : -inf
m[h, i] max=! w[h, i, j]
e[h, i, j] = exp(w[h, i, j] - m[h, i])
z[h, i] +=! e[h, i, j]
weights: f32[4, 24, 24]
weights[h, i, j] = e[h, i, j] / z[h, i]
y[h, i, d] +=! weights[h, i, j] * v[h, j, d]
`;

const CONVOLUTION = `# Where an image changes (Sobel); beyond the edge are zeros
x: f32[96, 144]
dx[i, j] = pad(x[i, j + 1], 0) -
           pad(x[i, j - 1], 0) where j in 0:144
dy[i, j] = pad(x[i + 1, j], 0) -
           pad(x[i - 1, j], 0) where i in 0:96
gx[i, j] = pad(dx[i - 1, j], 0) + 2 * dx[i, j] +
           pad(dx[i + 1, j], 0)
gy[i, j] = pad(dy[i, j - 1], 0) + 2 * dy[i, j] +
           pad(dy[i, j + 1], 0)
edges[i, j] = sqrt(gx[i, j] ** 2 + gy[i, j] ** 2)
`;

const LIFE = `# Declared nodes keep their values from run to run: play it
life: u8[96, 144]
near[i, j] = sum[u, v](pad(life[i + u - 1, j + v - 1], 0)) -
             life[i, j] where u in 0:3, v in 0:3
life[i, j] = u8(near[i, j] == 3 ||
                near[i, j] == 2 && life[i, j] == 1)
`;

const PATTERNS = `# Two substances diffuse and react (Gray and Scott): play it
u: f32[96, 144]
v: f32[96, 144]
du[i, j] = pad(u[i - 1, j], 1) + pad(u[i + 1, j], 1) +
           pad(u[i, j - 1], 1) + pad(u[i, j + 1], 1) -
           4 * u[i, j]
dv[i, j] = pad(v[i - 1, j], 0) + pad(v[i + 1, j], 0) +
           pad(v[i, j - 1], 0) + pad(v[i, j + 1], 0) -
           4 * v[i, j]
r[i, j] = u[i, j] * v[i, j] ** 2
u[i, j] += 0.2 * du[i, j] - r[i, j] + 0.036 * (1 - u[i, j])
v[i, j] += 0.1 * dv[i, j] + r[i, j] - 0.096 * v[i, j]
`;

const MANDELBROT = `# One step of z = z * z + c at every point: play it
re: f32[120, 180]
im: f32[120, 180]
steps: i32[120, 180]
inside[i, j] = re[i, j] ** 2 + im[i, j] ** 2 <= 4
a[i, j] = re[i, j] ** 2 - im[i, j] ** 2 + f32(j) / 60 - 2.2
b[i, j] = 2 * re[i, j] * im[i, j] + f32(i) / 60 - 1
re[i, j] = inside[i, j] ? a[i, j] : re[i, j]
im[i, j] = inside[i, j] ? b[i, j] : im[i, j]
steps[i, j] += i32(inside[i, j])
`;

const HISTOGRAM = `# A tensor as an index: bins[bin[i]] is counted up
x: f32[4000]
bin[i] = i32(floor(x[i] * 6)) + 24
bins: i32[48]
bins[bin[i]] +=! 1
`;

const PI = `# Random points by number and seed; each run gives @seed
x[i] = uniform(u32(@seed), u32(2 * i)) where i in 0:65536
y[i] = uniform(u32(@seed), u32(2 * i + 1)) where i in 0:65536
inside[i] = x[i] ** 2 + y[i] ** 2 < 1
estimate = 4 * f32(sum[i](i32(inside[i]))) / 65536
`;

/** The menu, in order. */
export const EXAMPLES: readonly Example[] = [
  { name: "Softmax", text: SOFTMAX, show: "y" },
  { name: "Matrix product", text: MATRIX_PRODUCT, show: "y" },
  { name: "Attention", text: ATTENTION, show: "weights" },
  { name: "Edges of an image", text: CONVOLUTION, fill: { x: "rings" }, show: "edges" },
  { name: "Game of life", text: LIFE, fill: { life: "bits" }, show: "life" },
  { name: "Reaction and diffusion", text: PATTERNS, fill: { u: "ones", v: "spots" }, show: "v" },
  { name: "Mandelbrot", text: MANDELBROT, fill: { re: "zeros", im: "zeros", steps: "zeros" }, show: "steps" },
  { name: "Histogram", text: HISTOGRAM, show: "bins" },
  { name: "Monte Carlo pi", text: PI, show: "estimate" },
];
