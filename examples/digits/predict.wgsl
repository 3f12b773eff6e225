// The answers: the class of the largest output, and its softmax probability. One invocation per row of h [rows, 128].

@compute @workgroup_size(64)
fn predict(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    if row >= dim_h_0 {
        return;
    }
    var logits: array<f32, dim_w_1>;
    var best = 0u;
    for (var k = 0u; k < dim_w_1; k++) {
        var sum = load_b(k);
        for (var j = 0u; j < dim_w_0; j++) {
            sum += load_h(row * dim_w_0 + j) * load_w(j * dim_w_1 + k);
        }
        logits[k] = sum;
        if sum > logits[best] {
            best = k;
        }
    }
    var total = 0.0;
    for (var k = 0u; k < dim_w_1; k++) {
        total += exp(logits[k] - logits[best]);
    }
    store_predictions(row, best);
    store_confidence(row, 1.0 / total);
}
