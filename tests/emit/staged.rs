//! Contractions through workgroup memory, against the host driver: all values are exact, whatever the order of sums.

use wgslab::{Context, Device, Driver, Forced, ProgramSpec, gpu, host};

/// Operands, products of several transpositions, and whether they go through memory. Extents are no multiples of a block, but
/// for a few.
const A: &str = "a[i, k] = f32((i * 7 + k * 3) % 11 - 5) where i in 0:37, k in 0:29\n";
const B: &str = "b[k, j] = f32((k * 5 + j) % 13 - 6) where k in 0:29, j in 0:41\n";

/// A program, which sets `y`, its other outputs, and the kernels of it that stage something.
type Case = (&'static str, &'static [&'static str], usize);

const PRODUCTS: [Case; 9] = [
    ("y[i, j] +=! a[i, k] * b[k, j]", &["a", "b"], 1),
    ("y[j, i] +=! b[k, j] * a[i, k]", &["a", "b"], 1),
    // Onto what is there; two reductions in a kernel do without.
    ("y[i, j] = f32(i - j) where i in 0:37, j in 0:41\ny[i, j] += a[i, k] * b[k, j]", &["a", "b"], 1),
    ("y[i, j] +=! a[i, k] * b[k, j]\ny[i, j] += 2 * b[k, j] * a[i, k]", &["a", "b"], 0),
    ("y[i, j] max=! a[i, k] + b[k, j]", &["a", "b"], 1),
    (
        "m[i, j] = -7.0 where i in 0:37, j in 0:41\nm[i, j] max= min(a[i, k], 3) * b[k, j]\ny[i, j] = m[i, j]",
        &["a", "b", "m"],
        1,
    ),
    // What several lanes want, what one wants, and the index itself.
    (
        "d[i, j, k] = f32((i + 2 * j + 3 * k) % 5) where i in 0:37, j in 0:41, k in 0:29\ny[i, j] +=! relu(a[i, k]) * b[k, j] * d[i, j, k] + f32(k)",
        &["a", "b", "d"],
        1,
    ),
    (
        "bias[j] = f32(j % 7) where j in 0:41\nh[i, j] +=! a[i, k] * b[k, j]\ny[i, j] = relu(h[i, j] + bias[j] - 20)",
        &["a", "b", "bias"],
        1,
    ),
    ("w[k] = f32(k % 3) where k in 0:29\ny[i, j] +=! a[i, k] * w[k] + b[k, j] * w[k]", &["a", "b", "w"], 1),
];

const OTHERS: [Case; 13] = [
    (
        "a[k, i] = f32((i * 7 + k * 3) % 11) where i in 0:48, k in 0:32\nb[j, k] = f32((k * 5 + j) % 13) where k in 0:32, j in 0:70\ny[i, j] +=! a[k, i] * b[j, k]",
        &["a", "b"],
        1,
    ),
    (
        "a[i, k] = (i * 70001 + k * 30011) * 1201 where i in 0:17, k in 0:64\nb[j, k] = (k * 50021 + j) * 1301 where k in 0:64, j in 0:9\ny[i, j] +=! a[i, k] * b[j, k]",
        &["a", "b"],
        1,
    ),
    (
        "a[i, k] = u32(i * 70001 + k * 30011) where i in 0:17, k in 0:64\nb[j, k] = u32(k * 50021 + j) where k in 0:64, j in 0:9\ny[i, j] min=! a[i, k] ^ b[j, k]",
        &["a", "b"],
        1,
    ),
    // A batch, of sizes that blocks divide and that they do not.
    (
        "a[n, i, k] = f32((n + i * 7 + k * 3) % 11) where n in 0:3, i in 0:32, k in 0:24\nb[n, k, j] = f32((k * 5 + j + n) % 13) where n in 0:3, k in 0:24, j in 0:48\ny[n, i, j] +=! a[n, i, k] * b[n, k, j]",
        &["a", "b"],
        1,
    ),
    (
        "a[i, n, k] = f32((n + i * 7 + k * 3) % 11) where n in 0:5, i in 0:19, k in 0:13\nb[n, j, k] = f32((k * 5 + j + n) % 13) where n in 0:5, k in 0:13, j in 0:27\ny[i, n, j] +=! a[i, n, k] * b[n, j, k]",
        &["a", "b"],
        1,
    ),
    // A convolution with a margin and steps of two, and the weights' gradient.
    (
        "x[n, c, h, w] = f32((n + c * 3 + h * 5 + w) % 7) where n in 0:2, c in 0:3, h in 0:13, w in 0:15\nk[o, c, p, q] = f32((o + c + p * 2 + q) % 5 - 2) where o in 0:6, c in 0:3, p in 0:3, q in 0:3\ny[n, o, h, w] +=! pad(x[n, c, h * 2 + p - 1, w * 2 + q - 1], 0) * k[o, c, p, q] where h in 0:7, w in 0:8",
        &["x", "k"],
        1,
    ),
    (
        "x[n, c, h, w] = f32((n + c * 3 + h * 5 + w) % 7) where n in 0:2, c in 0:3, h in 0:9, w in 0:10\ng[n, o, h, w] = f32((n + o + h * 2 + w) % 5 - 2) where n in 0:2, o in 0:4, h in 0:7, w in 0:8\ny[o, c, p, q] +=! x[n, c, h + p, w + q] * g[n, o, h, w] where p in 0:3, q in 0:3",
        &["x", "g"],
        1,
    ),
    // Gathered rows and columns, some of them outside, and dtypes of one and of two bytes.
    (
        "r[i] = (i * 5) % 19 - 3 where i in 0:21\ns[j] = u32(j * 3) where j in 0:18\nx[i, k] = f32((i * 7 + k * 3) % 11) where i in 0:14, k in 0:20\nz[k, j] = f32((k + j) % 5) where k in 0:20, j in 0:33\ny[i, j] +=! x[r[i], k] * z[k, s[j]]",
        &["r", "s", "x", "z"],
        1,
    ),
    (
        "x: f16[21, 34]\nx[i, k] = f16(i - k) where i in 0:21, k in 0:34\nz: u8[34, 18]\nz[k, j] = u8(k * 3 + j) where k in 0:34, j in 0:18\ny[i, j] +=! f32(x[i, k]) * f32(z[k, j])",
        &["x", "z"],
        1,
    ),
    (
        "m: bool[21, 34]\nm[i, k] = (i * k) % 3 == 1 where i in 0:21, k in 0:34\nz[k, j] = k * 3 + j where k in 0:34, j in 0:18\ny[i, j] +=! m[i, k] ? z[k, j] : -1",
        &["m", "z"],
        1,
    ),
    // Several reduced indices; one value of an index.
    (
        "x[i, k, l] = f32((i * 7 + k * 3 + l) % 11) where i in 0:9, k in 0:5, l in 0:7\nz[l, j, k] = f32((k * 5 + j + l) % 13) where l in 0:7, j in 0:26, k in 0:5\ny[i, j] +=! x[i, k, l] * z[l, j, k]",
        &["x", "z"],
        1,
    ),
    (
        "x[i, k] = f32(i + k + 2) where i in 0:1, k in 0:1\nz[k, j] = f32(k * 5 + j) where k in 0:1, j in 0:65\ny[i, j] +=! x[i, k] * z[k, j]",
        &["x", "z"],
        1,
    ),
    // Nothing to sum.
    (
        "x: f32[5, 0]\nz: f32[0, 6]\ny[i, j] = 3.0 where i in 0:5, j in 0:6\ny[i, j] += x[i, k] * z[k, j]",
        &["x", "z"],
        0,
    ),
];

async fn bytes<D: Driver>(device: &Device<D>, spec: ProgramSpec) -> (String, Vec<u8>) {
    let code = device.compile(spec).await.unwrap_or_else(|error| panic!("{error}: {:?}", error.diagnostics()));
    let routine = Context::root(device).link(&code).await.unwrap();
    routine.run().unwrap();
    let bytes = routine.context().to_host_many(&[code.node("y").unwrap()]).await.unwrap();
    (code.explain(), bytes.into_iter().next().unwrap())
}

async fn check(device: &Device<gpu::Gpu>, text: &str, outputs: &[&str], staged: usize) {
    let spec = || ProgramSpec::new("p", text).outputs(outputs.iter().copied().chain(["y"]));
    let on_host = host::open(host::OpenOptions::default()).unwrap();
    let (_, want) = bytes(&on_host, spec()).await;
    let (explained, got) = bytes(device, spec().schedule(Forced::Staged)).await;
    assert_eq!(explained.matches(", lanes that share").count(), staged, "{text}\n{explained}");
    let differs = want.chunks(4).zip(got.chunks(4)).position(|(want, got)| want != got);
    assert_eq!(differs, None, "element {differs:?} of {}: {text}\n{explained}", want.len() / 4);
    assert!(want.iter().any(|byte| *byte != 0), "all is 0: {text}");
}

pub async fn products_through_workgroup_memory(device: &Device<gpu::Gpu>) {
    for (text, outputs, staged) in PRODUCTS {
        check(device, &[A, B, text].concat(), outputs, staged).await;
    }
}

pub async fn contractions_of_all_kinds_through_workgroup_memory(device: &Device<gpu::Gpu>) {
    for (text, outputs, staged) in OTHERS {
        check(device, text, outputs, staged).await;
    }
}
