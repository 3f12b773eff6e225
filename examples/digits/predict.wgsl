// The answer for each row, and its softmax probability: a raw kernel, for a loop that no index notation has.
// One invocation per row goes over the logits once, and rescales the sum whenever a larger one comes.

@compute @workgroup_size(64)
fn predict(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    if row >= dim_test_logits_0 {
        return;
    }
    var best = 0u;
    var top = load_test_logits(row * dim_test_logits_1);
    var total = 1.0;
    for (var k = 1u; k < dim_test_logits_1; k++) {
        let logit = load_test_logits(row * dim_test_logits_1 + k);
        if logit > top {
            total = total * exp(top - logit) + 1.0;
            top = logit;
            best = k;
        } else {
            total += exp(logit - top);
        }
    }
    store_predictions(row, i32(best));
    store_confidence(row, 1.0 / total);
}
