// The digits network, third of four kernels: d[128, 128] = g w2^T where the unit was active, four units an invocation;
// and the mean loss.

@group(0) @binding(0) var<storage, read> g: array<f32>;
@group(0) @binding(1) var<storage, read> w2: array<f32>;
@group(0) @binding(2) var<storage, read> h: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> d: array<vec4f>;
@group(0) @binding(4) var<storage, read> losses: array<f32>;
@group(0) @binding(5) var<storage, read_write> loss: array<f32>;

@compute @workgroup_size(32, 2)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let at = id.x * 40u;
    var sum = vec4f();
    for (var k = 0u; k < 10u; k++) {
        sum += g[id.y * 10u + k] * vec4f(w2[at + k], w2[at + 10u + k], w2[at + 20u + k], w2[at + 30u + k]);
    }
    let to = id.y * 32u + id.x;
    d[to] = select(vec4f(), sum, h[to] > vec4f());
    if to == 0u {
        var total = 0.0;
        for (var n = 0u; n < 128u; n++) {
            total += losses[n];
        }
        loss[0] = total / 128.0;
    }
}
