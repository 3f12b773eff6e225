// The output layer and the loss: softmax cross-entropy of h w + b against y, its mean over the batch into
// losses[step] (round and round), and its gradient into g [128, 10].
// One workgroup; one invocation per row of the batch.

var<workgroup> row_loss: array<f32, 128>;

@compute @workgroup_size(128)
fn output(@builtin(local_invocation_index) row: u32) {
    var logits: array<f32, dim_w_1>;
    var largest = -3.0e38;
    for (var k = 0u; k < dim_w_1; k++) {
        var sum = load_b(k);
        for (var j = 0u; j < dim_w_0; j++) {
            sum += load_h(row * dim_w_0 + j) * load_w(j * dim_w_1 + k);
        }
        logits[k] = sum;
        largest = max(largest, sum);
    }

    var total = 0.0;
    for (var k = 0u; k < dim_w_1; k++) {
        total += exp(logits[k] - largest);
    }
    let label = load_y(row);
    for (var k = 0u; k < dim_w_1; k++) {
        let probability = exp(logits[k] - largest) / total;
        store_g(row * dim_w_1 + k, (probability - select(0.0, 1.0, k == label)) / f32(dim_h_0));
    }

    row_loss[row] = largest + log(total) - logits[label];
    workgroupBarrier();
    if row == 0u {
        var sum = 0.0;
        for (var r = 0u; r < dim_h_0; r++) {
            sum += row_loss[r];
        }
        store_losses(u32(static_step()) % len_losses, sum / f32(dim_h_0));
    }
}
