// c[M, N] = a[M, K] b[K, N], once for each z: eight rows by eight columns in the registers of an invocation, no workgroup
// memory. The harness declares M, N, K: multiples of 8, 8 and 4.

@group(0) @binding(0) var<storage, read> a: array<vec4f>;
@group(0) @binding(1) var<storage, read> b: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> c: array<vec4f>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let column = id.x * 2u;
    let row = id.y * 8u;
    if column >= N / 4 || row >= M {
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
    var l4 = vec4f();
    var r4 = vec4f();
    var l5 = vec4f();
    var r5 = vec4f();
    var l6 = vec4f();
    var r6 = vec4f();
    var l7 = vec4f();
    var r7 = vec4f();
    let from_a = (id.z * M + row) * (K / 4);
    let from_b = id.z * K * (N / 4) + column;
    for (var k = 0u; k < K / 4; k++) {
        let at = from_b + k * N;
        let left0 = b[at];
        let right0 = b[at + 1u];
        let left1 = b[at + N / 4];
        let right1 = b[at + N / 4 + 1u];
        let left2 = b[at + 2 * (N / 4)];
        let right2 = b[at + 2 * (N / 4) + 1u];
        let left3 = b[at + 3 * (N / 4)];
        let right3 = b[at + 3 * (N / 4) + 1u];
        var x = a[from_a + k];
        l0 += x.x * left0 + x.y * left1 + x.z * left2 + x.w * left3;
        r0 += x.x * right0 + x.y * right1 + x.z * right2 + x.w * right3;
        x = a[from_a + K / 4 + k];
        l1 += x.x * left0 + x.y * left1 + x.z * left2 + x.w * left3;
        r1 += x.x * right0 + x.y * right1 + x.z * right2 + x.w * right3;
        x = a[from_a + 2 * (K / 4) + k];
        l2 += x.x * left0 + x.y * left1 + x.z * left2 + x.w * left3;
        r2 += x.x * right0 + x.y * right1 + x.z * right2 + x.w * right3;
        x = a[from_a + 3 * (K / 4) + k];
        l3 += x.x * left0 + x.y * left1 + x.z * left2 + x.w * left3;
        r3 += x.x * right0 + x.y * right1 + x.z * right2 + x.w * right3;
        x = a[from_a + 4 * (K / 4) + k];
        l4 += x.x * left0 + x.y * left1 + x.z * left2 + x.w * left3;
        r4 += x.x * right0 + x.y * right1 + x.z * right2 + x.w * right3;
        x = a[from_a + 5 * (K / 4) + k];
        l5 += x.x * left0 + x.y * left1 + x.z * left2 + x.w * left3;
        r5 += x.x * right0 + x.y * right1 + x.z * right2 + x.w * right3;
        x = a[from_a + 6 * (K / 4) + k];
        l6 += x.x * left0 + x.y * left1 + x.z * left2 + x.w * left3;
        r6 += x.x * right0 + x.y * right1 + x.z * right2 + x.w * right3;
        x = a[from_a + 7 * (K / 4) + k];
        l7 += x.x * left0 + x.y * left1 + x.z * left2 + x.w * left3;
        r7 += x.x * right0 + x.y * right1 + x.z * right2 + x.w * right3;
    }
    var to = (id.z * M + row) * (N / 4) + column;
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
    to += N / 4;
    c[to] = l4;
    c[to + 1u] = r4;
    to += N / 4;
    c[to] = l5;
    c[to + 1u] = r5;
    to += N / 4;
    c[to] = l6;
    c[to + 1u] = r6;
    to += N / 4;
    c[to] = l7;
    c[to + 1u] = r7;
}
