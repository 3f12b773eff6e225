// Sums of COUNT vec4s, one for each of INVOCATIONS; run again over those for the whole sum. No workgroup memory.
// The harness declares COUNT, a multiple of 4 INVOCATIONS, and INVOCATIONS.

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= INVOCATIONS {
        return;
    }
    var a = vec4f();
    var b = vec4f();
    var c = vec4f();
    var d = vec4f();
    for (var at = id.x; at < COUNT; at += 4 * INVOCATIONS) {
        a += x[at];
        b += x[at + INVOCATIONS];
        c += x[at + 2 * INVOCATIONS];
        d += x[at + 3 * INVOCATIONS];
    }
    let sum = (a + b) + (c + d);
    sums[id.x] = (sum.x + sum.y) + (sum.z + sum.w);
}
