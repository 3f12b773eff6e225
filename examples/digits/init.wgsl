// The first weights: uniform in ±sqrt(6 / inputs), from a hash of the seed and the position, the same everywhere.
// One invocation per element of w1 [64, 128], then of w2 [128, 10].

// "lowbias32" of Chris Wellons, https://nullprogram.com/blog/2018/07/31/
fn hash(seed: u32) -> u32 {
    var x = seed;
    x = (x ^ (x >> 16u)) * 0x7feb352du;
    x = (x ^ (x >> 15u)) * 0x846ca68bu;
    return x ^ (x >> 16u);
}

// In -1..1; the 24 bits that an f32 holds exactly.
fn uniform_at(i: u32) -> f32 {
    return f32(hash(hash(u32(static_seed())) + i) >> 8u) / 8388608.0 - 1.0;
}

@compute @workgroup_size(64)
fn init(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i < len_w1 {
        store_w1(i, uniform_at(i) * sqrt(6.0 / f32(dim_w1_0)));
    } else if i < len_w1 + len_w2 {
        store_w2(i - len_w1, uniform_at(i) * sqrt(6.0 / f32(dim_w2_0)));
    }
}
