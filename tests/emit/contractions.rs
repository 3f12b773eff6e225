//! Contractions whose workgroups keep in their memory what their invocations share, against the host driver, exactly: what is
//! multiplied are small whole numbers.

use wgslab::{Context, DType, Device, Driver, Forced, ProgramSpec, TensorNode, gpu, host};

/// An element of a dtype: a whole number that the place decides.
fn bytes(dtype: DType, at: u32) -> Vec<u8> {
    let mixed = at.wrapping_mul(2_654_435_761).rotate_left(at % 11) >> 7;
    let small = (mixed % 7) as f32 - 3.0;
    match dtype {
        DType::F32 => small.to_le_bytes().to_vec(),
        // Up to 4.
        DType::F16 => [0u16, 0x3c00, 0x4000, 0x4200, 0x4400, 0xbc00][mixed as usize % 6].to_le_bytes().to_vec(),
        DType::BF16 => ((small.to_bits() >> 16) as u16).to_le_bytes().to_vec(),
        DType::I32 | DType::U32 => mixed.to_le_bytes().to_vec(),
        DType::I8 | DType::U8 => vec![mixed as u8],
        DType::Bool => vec![(mixed & 1) as u8],
    }
}

/// What a program leaves in `y`, and what was made of it.
async fn contents<D: Driver>(device: &Device<D>, spec: ProgramSpec, nodes: &[TensorNode]) -> (Vec<u8>, String) {
    let mut given = Vec::new();
    for node in nodes {
        let len = node.shape().iter().product();
        given.push((node, (0..len).flat_map(|at| bytes(node.dtype(), at)).collect::<Vec<u8>>()));
    }
    let given: Vec<_> = given.iter().map(|(node, bytes)| (*node, bytes.as_slice())).collect();
    let code = device.compile(spec).await.unwrap_or_else(|error| panic!("{error}"));
    let context = Context::root(device).init_from_host_many(&given).unwrap();
    let routine = context.link(&code).await.unwrap();
    routine.run().unwrap();
    let node = code.node("y").unwrap();
    let mut y = routine.context().to_host_many(&[node]).await.unwrap().remove(0);
    // Drivers add to 0 what they may: the zeros are one.
    for float in y.chunks_mut(4).filter(|bytes| node.dtype() == DType::F32 && **bytes == (-0f32).to_le_bytes()) {
        float.fill(0);
    }
    (y, code.explain())
}

/// Compares a program with the host's, and demands a kernel that is staged.
async fn check(device: &Device<gpu::Gpu>, text: &str, nodes: &[(&str, DType, &[u32])]) {
    let nodes: Vec<_> = nodes.iter().map(|(name, dtype, shape)| TensorNode::new(*name, *dtype, *shape)).collect();
    let spec = || nodes.iter().fold(ProgramSpec::new("p", text).outputs(["y"]), |spec, node| spec.node(node));
    let on_host = host::open(host::OpenOptions::default()).unwrap();
    let (want, _) = contents(&on_host, spec(), &nodes).await;
    let (got, explained) = contents(device, spec().schedule(Forced::Staged), &nodes).await;
    assert!(explained.contains(", lanes that share"), "{text}\n{explained}");
    let shapes: Vec<_> = nodes.iter().map(TensorNode::shape).collect();
    let wrong = got.iter().zip(&want).position(|(got, want)| got != want);
    assert!(
        wrong.is_none() && got.len() == want.len(),
        "{text}\nof {shapes:?}: another byte at {wrong:?}\n{explained}"
    );
}

/// Rows, columns and turns: odd ones, those of a block, one more, and one.
const SIZES: [[u32; 3]; 6] = [[37, 41, 29], [16, 24, 3], [33, 48, 4], [1, 33, 7], [40, 1, 1], [2, 100, 2]];

pub async fn products_in_four_transpositions(device: &Device<gpu::Gpu>) {
    for [m, n, k] in SIZES {
        for (a, b) in [("a[i, k]", "b[k, j]"), ("a[i, k]", "b[j, k]"), ("a[k, i]", "b[k, j]"), ("a[k, i]", "b[j, k]")] {
            let text = format!("y[i, j] +=! {a} * {b}");
            let [a, b] = [(a, [m, k]), (b, [k, n])].map(|(part, [rows, columns])| {
                let is_turned = part == "a[k, i]" || part == "b[j, k]";
                if is_turned { [columns, rows] } else { [rows, columns] }
            });
            check(device, &text, &[("a", DType::F32, &a), ("b", DType::F32, &b)]).await;
        }
    }
}

pub async fn what_surrounds_a_product(device: &Device<gpu::Gpu>) {
    let f = DType::F32;
    let batch = "y[h, i, j] +=! a[h, i, k] * b[h, j, k]";
    check(device, batch, &[("a", f, &[3, 19, 11]), ("b", f, &[3, 27, 11])]).await;
    // Between the two that are tiled, and around.
    let batch = "y[i, h, j] +=! a[h, k, i] * b[k, h, j]";
    check(device, batch, &[("a", f, &[5, 8, 17]), ("b", f, &[8, 5, 25])]).await;
    let layer = "c[i, j] +=! a[i, k] * b[k, j]\ny[i, j] = relu(c[i, j] + d[j])";
    check(device, layer, &[("a", f, &[19, 10]), ("b", f, &[10, 31]), ("d", f, &[31])]).await;
    // Onto what is there, and of what the nest itself stores.
    check(device, "y[i, j] += a[i, k] * b[k, j]", &[("y", f, &[21, 26]), ("a", f, &[21, 8]), ("b", f, &[8, 26])]).await;
    let gathered = "y[i, j] +=! a[p[i], k] * b[q[k], j]";
    let nodes = [("a", f, &[9, 14][..]), ("b", f, &[6, 29]), ("p", DType::U8, &[35]), ("q", DType::I32, &[14])];
    check(device, gathered, &nodes).await;
    // Functions of what is kept, of turns, of both operands, of a turn alone, and parts that nothing keeps.
    let mixed = "y[i, j] +=! (relu(a[i, k]) > b[k, j] ? f32(k + j) : s[k] - relu(a[i, k])) * w[i, j, k]";
    let nodes = [("a", f, &[18, 13][..]), ("b", f, &[13, 25]), ("s", f, &[13]), ("w", f, &[18, 25, 13])];
    check(device, mixed, &nodes).await;
    // Several reduced indices, one of them of one value.
    let several = "y[i, j] +=! a[k, l, i, u] * b[u, l, j, k] * f32(l)";
    check(device, several, &[("a", f, &[3, 5, 20, 1]), ("b", f, &[1, 5, 28, 3])]).await;
}

pub async fn convolutions_of_strides_and_pads(device: &Device<gpu::Gpu>) {
    let (x, w) = (("x", DType::F32, &[2, 3, 11, 20][..]), ("w", DType::F32, &[26, 3, 3, 3][..]));
    let padded = "y[n, o, i, j] +=! w[o, c, u, v] * pad(x[n, c, i + u - 1, j + v - 1], 0) where i in 0:11, j in 0:20";
    check(device, padded, &[x, w]).await;
    let strided =
        "y[n, o, i, j] +=! w[o, c, u, v] * pad(x[n, c, 2 * i + u - 1, 2 * j + v - 1], 2) where i in 0:6, j in 0:10";
    check(device, strided, &[x, w]).await;
    // Positions that depend on both tiled indices: only the weights are kept.
    check(device, "y[i, j] +=! w[i, 0, u, v] * x[0, 1, i + u, j + v] where i in 0:9, j in 0:18", &[x, w]).await;
}

pub async fn products_of_all_types(device: &Device<gpu::Gpu>) {
    use DType::*;
    for (text, left, right) in [
        ("y[i, j] +=! a[i, k] * b[k, j]", F16, BF16),
        ("y[i, j] +=! a[i, k] * b[k, j]", I32, I32),
        ("y[i, j] +=! a[i, k] * b[k, j]", U32, U8),
        ("y[i, j] +=! f32(a[i, k]) * b[k, j]", I8, F16),
        ("y[i, j] *=! a[i, k] + b[k, j]", U32, U32),
        ("y[i, j] +=! a[i, k] ? b[k, j] : 1.0", Bool, F32),
        // Extremes, of numbers, integers, and what is not there.
        ("y[i, j] max=! a[i, k] + b[k, j]", F32, F32),
        ("y[i, j] min=! a[i, k] - b[k, j]", I32, I32),
        ("y[i, j] max=! 1 / a[i, k] + b[k, j]", F32, F32),
        ("y[i, j] max=! a[i, k] && !b[k, j] ? i + k : j", Bool, Bool),
    ] {
        check(device, text, &[("a", left, &[23, 10]), ("b", right, &[10, 31])]).await;
    }
}
