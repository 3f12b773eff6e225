// c[M, N] = a[M, K] b[N, K]^T, once for each z: four rows by eight columns in the registers of an invocation, no workgroup
// memory. The harness declares M, N, K: multiples of 4, 8 and 4.

@group(0) @binding(0) var<storage, read> a: array<vec4f>;
@group(0) @binding(1) var<storage, read> b: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> c: array<vec4f>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let column = id.x * 8u;
    let row = id.y * 4u;
    if column >= N || row >= M {
        return;
    }
    var l0 = vec4f();
    var r0 = vec4f();
    var l1 = vec4f();
    var r1 = vec4f();
    var l2 = vec4f();
    var r2 = vec4f();
    var l3 = vec4f();
    var r3 = vec4f();
    let from_a = (id.z * M + row) * (K / 4);
    let from_b = (id.z * N + column) * (K / 4);
    for (var k = 0u; k < K / 4; k++) {
        let y0 = b[from_b + k];
        let y1 = b[from_b + K / 4 + k];
        let y2 = b[from_b + 2 * (K / 4) + k];
        let y3 = b[from_b + 3 * (K / 4) + k];
        let y4 = b[from_b + 4 * (K / 4) + k];
        let y5 = b[from_b + 5 * (K / 4) + k];
        let y6 = b[from_b + 6 * (K / 4) + k];
        let y7 = b[from_b + 7 * (K / 4) + k];
        var x = a[from_a + k];
        l0 += vec4f(dot(x, y0), dot(x, y1), dot(x, y2), dot(x, y3));
        r0 += vec4f(dot(x, y4), dot(x, y5), dot(x, y6), dot(x, y7));
        x = a[from_a + K / 4 + k];
        l1 += vec4f(dot(x, y0), dot(x, y1), dot(x, y2), dot(x, y3));
        r1 += vec4f(dot(x, y4), dot(x, y5), dot(x, y6), dot(x, y7));
        x = a[from_a + 2 * (K / 4) + k];
        l2 += vec4f(dot(x, y0), dot(x, y1), dot(x, y2), dot(x, y3));
        r2 += vec4f(dot(x, y4), dot(x, y5), dot(x, y6), dot(x, y7));
        x = a[from_a + 3 * (K / 4) + k];
        l3 += vec4f(dot(x, y0), dot(x, y1), dot(x, y2), dot(x, y3));
        r3 += vec4f(dot(x, y4), dot(x, y5), dot(x, y6), dot(x, y7));
    }
    var to = (id.z * M + row) * (N / 4) + id.x * 2u;
    c[to] = l0;
    c[to + 1u] = r0;
    to += N / 4;
    c[to] = l1;
    c[to + 1u] = r1;
    to += N / 4;
    c[to] = l2;
    c[to + 1u] = r2;
    to += N / 4;
    c[to] = l3;
    c[to + 1u] = r3;
}
