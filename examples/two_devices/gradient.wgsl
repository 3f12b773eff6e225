// The gradient of one layer: that of w is x^T d, that of b the column sums of d.
// One invocation per element of gw [inputs, outputs], then of gb [outputs].

@compute @workgroup_size(64)
fn gradient(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i < len_gw {
        let input = i / dim_gw_1;
        let unit = i % dim_gw_1;
        var sum = 0.0;
        for (var row = 0u; row < dim_x_0; row++) {
            sum += load_x(row * dim_gw_0 + input) * load_d(row * dim_gw_1 + unit);
        }
        store_gw(i, sum);
    } else if i < len_gw + len_gb {
        let unit = i - len_gw;
        var sum = 0.0;
        for (var row = 0u; row < dim_x_0; row++) {
            sum += load_d(row * len_gb + unit);
        }
        store_gb(unit, sum);
    }
}
