// The digits network, first of four kernels: h[128, 128] = relu(x[128, 64] w1[64, 128] + b1), four rows by four units an
// invocation.

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read> w1: array<vec4f>;
@group(0) @binding(2) var<storage, read> b1: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> h: array<vec4f>;

@compute @workgroup_size(32, 2)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let row = id.y * 4u;
    var s0 = b1[id.x];
    var s1 = s0;
    var s2 = s0;
    var s3 = s0;
    for (var k = 0u; k < 16u; k++) {
        let y0 = w1[k * 128u + id.x];
        let y1 = w1[k * 128u + 32u + id.x];
        let y2 = w1[k * 128u + 64u + id.x];
        let y3 = w1[k * 128u + 96u + id.x];
        let x0 = x[row * 16u + k];
        let x1 = x[row * 16u + 16u + k];
        let x2 = x[row * 16u + 32u + k];
        let x3 = x[row * 16u + 48u + k];
        s0 += x0.x * y0 + x0.y * y1 + x0.z * y2 + x0.w * y3;
        s1 += x1.x * y0 + x1.y * y1 + x1.z * y2 + x1.w * y3;
        s2 += x2.x * y0 + x2.y * y1 + x2.z * y2 + x2.w * y3;
        s3 += x3.x * y0 + x3.y * y1 + x3.z * y2 + x3.w * y3;
    }
    let to = row * 32u + id.x;
    h[to] = max(s0, vec4f());
    h[to + 32u] = max(s1, vec4f());
    h[to + 64u] = max(s2, vec4f());
    h[to + 96u] = max(s3, vec4f());
}
