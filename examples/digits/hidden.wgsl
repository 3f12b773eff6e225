// The hidden layer: h = relu(x w + b). One invocation per element of h [rows, 128].

@compute @workgroup_size(64)
fn hidden(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i >= len_h {
        return;
    }
    let row = i / dim_h_1;
    let unit = i % dim_h_1;
    var sum = load_b(unit);
    for (var k = 0u; k < dim_w_0; k++) {
        sum += load_x(row * dim_w_0 + k) * load_w(k * dim_w_1 + unit);
    }
    store_h(i, max(sum, 0.0));
}
