// One layer learns: the gradient of w is x^T d, that of b the column sums of d; then momentum, in place:
// m = momentum m + gradient; w = w - rate m.
// One invocation per element of w [inputs, outputs], then of b [outputs].

const RATE = 0u;
const MOMENTUM = 1u;

@compute @workgroup_size(64)
fn update(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i < len_w {
        let input = i / dim_w_1;
        let unit = i % dim_w_1;
        var gradient = 0.0;
        for (var row = 0u; row < dim_x_0; row++) {
            gradient += load_x(row * dim_w_0 + input) * load_d(row * dim_w_1 + unit);
        }
        let m = load_settings(MOMENTUM) * load_mw(i) + gradient;
        store_mw(i, m);
        store_w(i, load_w(i) - load_settings(RATE) * m);
    } else if i < len_w + len_b {
        let unit = i - len_w;
        var gradient = 0.0;
        for (var row = 0u; row < dim_x_0; row++) {
            gradient += load_d(row * len_b + unit);
        }
        let m = load_settings(MOMENTUM) * load_mb(unit) + gradient;
        store_mb(unit, m);
        store_b(unit, load_b(unit) - load_settings(RATE) * m);
    }
}
