//! The programs that must work: each is accepted, and gives its results the extents that they should have.

use super::super::check;
use crate::notation::parse;
use crate::notation::program::Program;

fn accepts(text: &str, results: &[(&str, &[u32])]) -> Program {
    let outputs: Vec<String> = results.iter().map(|(name, _)| (*name).to_owned()).collect();
    let ast = parse(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let program = check(text, &ast, &[], &outputs).unwrap_or_else(|error| panic!("{text}\n{error}"));
    for (name, shape) in results {
        let node = program.nodes.iter().find(|node| node.name == *name).unwrap();
        assert!(node.is_output);
        assert_eq!(node.shape, *shape, "{name} of\n{program}");
    }
    program
}

#[test]
fn matrix_products() {
    for (a, b) in [("4, 6", "6, 5"), ("6, 4", "6, 5"), ("4, 6", "5, 6"), ("6, 4", "5, 6")] {
        let left = if a == "4, 6" { "i, k" } else { "k, i" };
        let right = if b == "6, 5" { "k, j" } else { "j, k" };
        let text = format!("a: f32[{a}]; b: f32[{b}]\nc[i, j] +=! a[{left}] * b[{right}]");
        accepts(&text, &[("c", &[4, 5])]);
    }
    accepts("a: f32[2, 4, 6]; b: f32[2, 6, 5]\nc[n, i, j] = sum[k](a[n, i, k] * b[n, k, j])", &[("c", &[2, 4, 5])]);
    accepts("a: f32[4]; b: f32[5]; c[i, j] = a[i] * b[j]", &[("c", &[4, 5])]);
}

#[test]
fn shapes() {
    accepts(
        "a: f32[4, 4]; t +=! a[i, i]; d[i] = a[i, i]; at[j, i] = a[i, j]",
        &[("t", &[]), ("d", &[4]), ("at", &[4, 4])],
    );
    accepts(
        "x: f32[10]; e[i] = x[2 * i]; o[i] = x[2 * i + 1]; r[i] = x[9 - i]; m[i] = x[i + 3]",
        &[("e", &[5]), ("o", &[5]), ("r", &[10]), ("m", &[7])],
    );
    accepts("a: f32[3]; b: f32[4]; c: f32[7]; c[i] = a[i] where i in 0:3; c[i + 3] = b[i]", &[("c", &[7])]);
    accepts("a: f32[3]; c: f32[7]; c[i] = a[i] where i in 0:3; c[i] = a[i - 3] where i in 3:6", &[("c", &[7])]);
    accepts("x: f32[24]; y[q, r] = x[4 * q + r] where q in 0:6, r in 0:4", &[("y", &[6, 4])]);
    accepts("x: f32[6, 4]; y: f32[24]; y[4 * q + r] = x[q, r]", &[("y", &[24])]);
}

#[test]
fn networks() {
    accepts(
        "x: f32[5, 7]
         m[n] max=! x[n, j]
         e[n, j] = exp(x[n, j] - m[n])
         z[n] +=! e[n, j]
         y[n, j] = e[n, j] / z[n]
         l[n, j] = x[n, j] - m[n] - log(z[n])",
        &[("y", &[5, 7]), ("l", &[5, 7])],
    );
    accepts(
        "x: f32[5, 7]; label: i32[5]; p: f32[5, 7]
         loss +=! -log(p[n, label[n]]) / 5
         g[n, j] = p[n, j] - (j == label[n] ? 1 : 0)",
        &[("loss", &[]), ("g", &[5, 7])],
    );
    accepts(
        "x: f16[5, 7]; gain: f32[7]; bias: f32[7]
         mean[n] = sum[j](x[n, j]) / 7
         var[n] = sum[j]((x[n, j] - mean[n]) ** 2) / 7
         y[n, j] = (x[n, j] - mean[n]) * rsqrt(var[n] + 1e-5) * gain[j] + bias[j]
         r[n, j] = x[n, j] * rsqrt(sum[k](x[n, k] ** 2) / 7 + 1e-6)",
        &[("y", &[5, 7]), ("r", &[5, 7])],
    );
    accepts(
        "x: f32[16, 8]; w: f32[4, 8]; b: f32[4]; dy: f32[16, 4]
         h[n, o] +=! x[n, i] * w[o, i]
         y[n, o] = gelu(h[n, o] + b[o])
         dw[o, i] +=! dy[n, o] * x[n, i]
         dx[n, i] +=! dy[n, o] * w[o, i]
         db[o] +=! dy[n, o]
         w[o, i] += -0.1 * dw[o, i]",
        &[("y", &[16, 4]), ("dw", &[4, 8]), ("dx", &[16, 8]), ("db", &[4]), ("w", &[4, 8])],
    );
    accepts(
        "q: f32[2, 3, 9, 8]; k: f32[2, 3, 9, 8]; v: f32[2, 3, 9, 8]
         s[b, h, i, j] = j <= i ? sum[d](q[b, h, i, d] * k[b, h, j, d]) / sqrt(8) : -inf
         m[b, h, i] max=! s[b, h, i, j]
         e[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i])
         y[b, h, i, d] = sum[j](e[b, h, i, j] * v[b, h, j, d]) / sum[j](e[b, h, i, j])
         rot: f32[2, 3, 9, 8]
         rot[b, h, i, 2 * p] = q[b, h, i, 2 * p] * cos(i * 10000 ** (-p / 4.0)) where p in 0:4
         rot[b, h, i, 2 * p + 1] = q[b, h, i, 2 * p + 1] * sin(i * 10000 ** (-p / 4.0)) where p in 0:4",
        &[("y", &[2, 3, 9, 8]), ("rot", &[2, 3, 9, 8])],
    );
    accepts(
        "p: f32[10]; g: f32[10]; m: f32[10]; v: f32[10]; t: i32
         t = t + 1
         m[i] = 0.9 * m[i] + 0.1 * g[i]
         v[i] = 0.999 * v[i] + 0.001 * g[i] ** 2
         p[i] += -1e-3 * (m[i] / (1 - 0.9 ** t)) / (sqrt(v[i] / (1 - 0.999 ** t)) + 1e-8)",
        &[("p", &[10])],
    );
}

#[test]
fn convolutions() {
    accepts("x: f32[20]; w: f32[5]; y[n] +=! x[n + u] * w[u]", &[("y", &[16])]);
    accepts("x: f32[20]; w: f32[5]; y[n] +=! x[2 * n + 3 * u] * w[u]", &[("y", &[4])]);
    accepts("x: f32[20]; w: f32[5]; y[n] +=! pad(x[n + u - 2], 0) * w[u] where n in 0:20", &[("y", &[20])]);
    accepts(
        "x: f32[2, 6, 9, 9]; w: f32[4, 6, 3, 3]
         y[b, o, i, j] +=! pad(x[b, c, 2 * i + u - 1, 2 * j + v - 1], 0) * w[o, c, u, v] where i in 0:5, j in 0:5
         dw: f32[4, 6, 3, 3]
         dw[o, c, u, v] +=! pad(x[b, c, 2 * i + u - 1, 2 * j + v - 1], 0) * y[b, o, i, j]
         z[b, o, i, j] +=! x[b, c, i + 2 * u, j + 2 * v] * w[o, c, u, v]
         dz[b, c, i, j] +=! pad(z[b, o, i - 2 * u, j - 2 * v], 0) * w[o, c, u, v] where i in 0:9, j in 0:9
         depth[b, c, i, j] +=! x[b, c, i + u, j + v] * w[0, c, u, v]
         group: f32[2, 4, 7, 7]
         group[b, 2 * g + o, i, j] +=! x[b, 3 * g + c, i + u, j + v] * w[2 * g + o, c, u, v] where g in 0:2, o in 0:2, c in 0:3
         pool[b, c, i, j] max=! x[b, c, 3 * i + u, 3 * j + v] where u in 0:3, v in 0:3
         mean[b, c, i, j] = sum[u, v](x[b, c, 3 * i + u, 3 * j + v]) / 9 where u in 0:3, v in 0:3",
        &[
            ("y", &[2, 4, 5, 5]),
            ("z", &[2, 4, 5, 5]),
            ("dz", &[2, 6, 9, 9]),
            ("depth", &[2, 6, 7, 7]),
            ("pool", &[2, 6, 3, 3]),
            ("mean", &[2, 6, 3, 3]),
        ],
    );
}

#[test]
fn gathers_and_scatters() {
    accepts(
        "table: f32[50, 8]; ids: i32[6]
         y[t, d] = table[ids[t], d]
         g: f32[50, 8]
         g[ids[t], d] +=! y[t, d]
         hist: i32[10]
         hist[ids[t]] +=! 1
         hot[t, c] = f32(ids[t] == c) where c in 0:10",
        &[("y", &[6, 8]), ("g", &[50, 8]), ("hot", &[6, 10])],
    );
    accepts(
        "p: f32[30, 10]; label: i32[30]
         right +=! argmax[c](p[n, c]) == label[n] ? 1 : 0",
        &[("right", &[])],
    );
    accepts(
        "x: f32[40, 2]; c: f32[3, 2]; count: f32[3]; total: f32[3, 2]
         near[n] = argmin[k](sum[d]((x[n, d] - c[k, d]) ** 2))
         count[near[n]] +=! 1
         total[near[n], d] +=! x[n, d]
         c[k, d] = count[k] > 0 ? total[k, d] / count[k] : c[k, d]",
        &[("near", &[40]), ("c", &[3, 2])],
    );
    accepts(
        "x: f32[20]; y: f32[20]
         rank[i] = sum[j](x[j] < x[i] || x[j] == x[i] && j < i ? 1 : 0)
         y[rank[i]] +=! x[i]",
        &[("rank", &[20]), ("y", &[20])],
    );
    accepts("cache: f32[8, 4]; x: f32[2, 4]\ncache[@slot, i] +=! x[j, i]\ny[i] = cache[@slot, i]", &[("y", &[4])]);
}

#[test]
fn simulations() {
    accepts(
        "life: u8[16, 16]
         around[i, j] = sum[u, v](pad(life[i + u - 1, j + v - 1], 0)) - life[i, j] where u in 0:3, v in 0:3
         life[i, j] = around[i, j] == 3 || around[i, j] == 2 && life[i, j] == 1 ? 1 : 0",
        &[("life", &[16, 16])],
    );
    accepts("u: f32[50]; u[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1]) where i in 1:49", &[("u", &[50])]);
    accepts(
        "prime: bool[100]\nprime[n] = n > 1 && sum[d](n % d == 0 ? 1 : 0) == 2 where d in 1:100",
        &[("prime", &[100])],
    );
    accepts(
        "inside +=! uniform(1, u32(k)) ** 2 + uniform(2, u32(k)) ** 2 < 1 ? 1 : 0 where k in 0:10000
         estimate = 4.0 * inside / 10000",
        &[("estimate", &[])],
    );
    accepts(
        "x: f32[9, 3]
         f[i, c] = sum[j]((x[j, c] - x[i, c]) / (sum[d]((x[j, d] - x[i, d]) ** 2) + 1e-3) ** 1.5)",
        &[("f", &[9, 3])],
    );
    accepts(
        "words: u32[16, 4]; scale: f32[16]; x: f32[32]
         y[o] +=! x[8 * q + r] * (f32(words[o, q] >> (4 * r) & 15) - 8) * scale[o] where r in 0:8",
        &[("y", &[16])],
    );
    let tensors: Vec<String> = (0..40).map(|number| format!("x{number}: f32[9]")).collect();
    let terms: Vec<String> = (0..40).map(|number| format!("x{number}[i]")).collect();
    accepts(&format!("{}\ny[i] = {}", tensors.join("\n"), terms.join(" + ")), &[("y", &[9])]);
}
