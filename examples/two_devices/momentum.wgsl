// All layers learn: m = momentum m + gradient; w = w - rate m, in place. One invocation per element of w.

const RATE = 0u;
const MOMENTUM = 1u;

@compute @workgroup_size(64)
fn momentum(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i < len_w {
        let m = load_settings(MOMENTUM) * load_m(i) + load_gradient(i);
        store_m(i, m);
        store_w(i, load_w(i) - load_settings(RATE) * m);
    }
}
