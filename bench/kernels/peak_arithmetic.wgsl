// The arithmetic of the adapter: each invocation multiplies and adds 64 floats LOOPS times, in eight chains that do not
// wait for each other. The harness declares LOOPS.

@group(0) @binding(0) var<storage, read> factors: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> sums: array<vec4f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let x = factors[0];
    let y = factors[1];
    var a = vec4f(f32(id.x));
    var b = a + 1.0;
    var c = a + 2.0;
    var d = a + 3.0;
    var e = a + 4.0;
    var f = a + 5.0;
    var g = a + 6.0;
    var h = a + 7.0;
    for (var turn = 0u; turn < LOOPS; turn++) {
        a = a * x + y;
        b = b * x + y;
        c = c * x + y;
        d = d * x + y;
        e = e * x + y;
        f = f * x + y;
        g = g * x + y;
        h = h * x + y;
        a = a * x + y;
        b = b * x + y;
        c = c * x + y;
        d = d * x + y;
        e = e * x + y;
        f = f * x + y;
        g = g * x + y;
        h = h * x + y;
    }
    sums[id.x] = (a + b) + (c + d) + (e + f) + (g + h);
}
