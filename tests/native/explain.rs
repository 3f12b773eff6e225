//! What became of the tensors of a program, and how many kernels it is.

use wgslab::host::{self, Host};
use wgslab::{Code, DType, ProgramSpec, TensorNode};

fn compiled(text: &str, given: &[(&str, &[u32])], outputs: &[&str]) -> Code<Host> {
    let device = host::open(host::OpenOptions::default()).unwrap();
    let mut spec = ProgramSpec::new("p", text).outputs(outputs.iter().copied());
    for (name, shape) in given {
        spec = spec.node(&TensorNode::new(*name, DType::F32, *shape));
    }
    pollster::block_on(device.compile(spec)).unwrap_or_else(|error| panic!("{error}"))
}

fn kernels(text: &str, given: &[(&str, &[u32])], outputs: &[&str]) -> usize {
    let code = compiled(text, given, outputs);
    let count = code.specs().count();
    assert_eq!(code.explain().matches("\nkernel ").count(), count, "{}", code.explain());
    count
}

const SOFTMAX: &str = "m[i] max=! x[i, j]\ne[i, j] = exp(x[i, j] - m[i])\ns[i] +=! e[i, j]\ny[i, j] = e[i, j] / s[i]";

#[test]
fn an_explanation_names_every_tensor_and_every_kernel() {
    let want = "\"p\": 2 kernels
m: f32[9] local: a reduction
x: f32[9, 13] on device
e: f32[9, 13] virtual: computed where it is read
s: f32[9] local: a reduction
y: f32[9, 13] on device
kernel \"p/m:1+s:3\": 2 x 1 x 1 workgroups; 9 points, an invocation each; reads x (468 bytes), writes m, s (72 bytes), 1287 operations; \
schedule point of 8 lanes by fours: least of 11 estimates, 22496; then point of 256 lanes by fours, 25308
kernel \"p/y:4\": 5 x 1 x 1 workgroups; 117 points, an invocation for [1, 4]; reads m, x, s (540 bytes), writes y (468 bytes), 1521 operations; \
schedule tile 1x4 of 8 lanes by fours: least of 10 estimates, 8852; then tile 1x2 of 8 lanes by fours, 8980";
    assert_eq!(compiled(SOFTMAX, &[("x", &[9, 13])], &["y"]).explain(), want);
}

#[test]
fn softmax_in_four_statements_is_two_kernels() {
    for shape in [[9, 13], [4096, 1024], [64, 30_000]] {
        assert_eq!(kernels(SOFTMAX, &[("x", &shape)], &["y"]), 2, "{shape:?}");
    }
}

#[test]
fn softmax_and_layer_norm_in_one_statement_go_over_a_row_once_for_all_its_points() {
    let softmax = "y[i, j] = exp(x[i, j] - max[k](x[i, k])) / sum[k](exp(x[i, k] - max[l](x[i, l])))";
    let mean = "sum[k](x[i, k]) / 900";
    let norm = format!("y[i, j] = (x[i, j] - {mean}) / sqrt(sum[l]((x[i, l] - {mean}) ** 2) / 900 + 1e-5)");
    for text in [softmax, &norm] {
        assert_eq!(kernels(text, &[("x", &[4096, 900])], &["y"]), 2, "{text}");
    }
}

#[test]
fn a_layer_is_one_kernel() {
    let text = "y[n, o] +=! x[n, i] * w[o, i]\ny[n, o] = max(y[n, o] + b[o], 0)";
    let given: [(&str, &[u32]); 3] = [("x", &[128, 64]), ("w", &[32, 64]), ("b", &[32])];
    assert_eq!(kernels(text, &given, &["y"]), 1);
    let text = "h[n, o] +=! x[n, i] * w[o, i]\nz[n, o] = h[n, o] + b[o]\ny[n, o] = z[n, o] * sigmoid(z[n, o])";
    assert_eq!(kernels(text, &given, &["y"]), 1);
    let long: [(&str, &[u32]); 3] = [("x", &[1, 4096]), ("w", &[32, 4096]), ("b", &[32])];
    assert_eq!(kernels(text, &long, &["y"]), 1, "by workgroups");
}

#[test]
fn a_chain_of_elementwise_statements_is_one_kernel() {
    let mut text = "t0[i] = x[i] + 1".to_owned();
    for step in 1..8 {
        text.push_str(&format!("\nt{step}[i] = sin(t{}[i]) * 1.5", step - 1));
    }
    assert_eq!(kernels(&text, &[("x", &[1 << 20])], &["t7"]), 1);
    assert_eq!(kernels(&text, &[("x", &[1 << 20])], &["t3", "t7"]), 1, "with one in the middle that is kept");
}

#[test]
fn attention_is_five_kernels() {
    let case: serde_json::Value = serde_json::from_str(include_str!("../cases/program_attention.json")).unwrap();
    let text = case["program"].as_str().unwrap();
    let small: [(&str, &[u32]); 3] = [("q", &[3, 11, 8]), ("k", &[3, 11, 8]), ("v", &[3, 11, 8])];
    assert!(kernels(text, &small, &["y"]) <= 5);
    let text = text.replace("[3, 11, 8]", "[8, 512, 64]").replace("t in 0:11, p in 0:4", "t in 0:512, p in 0:32");
    let large: [(&str, &[u32]); 3] = [("q", &[8, 512, 64]), ("k", &[8, 512, 64]), ("v", &[8, 512, 64])];
    let code = compiled(&text, &large, &["y"]);
    assert!(code.specs().count() <= 5, "{}", code.explain());
}

#[test]
fn a_plain_program_has_a_kernel_for_each_statement() {
    let device = host::open(host::OpenOptions::default()).unwrap();
    let spec = ProgramSpec::new("p", SOFTMAX).node(&TensorNode::new("x", DType::F32, [9, 13])).plain();
    assert_eq!(pollster::block_on(device.compile(spec)).unwrap().specs().count(), 4);
}

#[test]
fn tiles_fit_short_indices_and_few_invocations_are_many_workgroups() {
    let given: [(&str, &[u32]); 2] = [("x", &[128, 128]), ("w", &[128, 10])];
    let explained = compiled("y[n, k] +=! x[n, j] * w[j, k]", &given, &["y"]).explain();
    assert!(explained.contains("4 x 1 x 1 workgroups"), "{explained}");
    assert!(explained.contains("schedule tile 8x5 of 8 lanes by fours"), "{explained}");
}

#[test]
fn a_reduction_reads_what_is_dear_and_stored_anyway() {
    let text = "g[n, k] = exp(x[n, k] - m[n]) / s[n] - y[n, k]\nb[k] +=! g[n, k]\nw[j, k] +=! h[n, j] * g[n, k]";
    let rows: &[u32] = &[128, 10];
    let given = [("x", rows), ("y", rows), ("m", &[128]), ("s", &[128]), ("h", &[128, 128])];
    let explained = compiled(text, &given, &["b", "w"]).explain();
    assert!(explained.contains("reads g ("), "{explained}");
}
