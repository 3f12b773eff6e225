// Sums of COUNT vec4s, one for each of GROUPS workgroups; run again over those for the whole sum.
// The harness declares COUNT and GROUPS.

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

var<workgroup> parts: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) index: u32) {
    var own = vec4f();
    for (var at = group.x * 256u + index; at < COUNT; at += GROUPS * 256u) {
        own += x[at];
    }
    parts[index] = (own.x + own.y) + (own.z + own.w);
    for (var half = 128u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if index < half {
            parts[index] += parts[index + half];
        }
    }
    if index == 0u {
        sums[group.x] = parts[0];
    }
}
