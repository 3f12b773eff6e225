// The gradient at the hidden layer: g = (d w^T) where the unit was active. One invocation per element of g [128, 128].

@compute @workgroup_size(64)
fn hidden_grad(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i >= len_g {
        return;
    }
    let row = i / dim_g_1;
    let unit = i % dim_g_1;
    var sum = 0.0;
    for (var k = 0u; k < dim_w_1; k++) {
        sum += load_d(row * dim_w_1 + k) * load_w(unit * dim_w_1 + k);
    }
    store_g(i, select(0.0, sum, load_h(i) > 0.0));
}
