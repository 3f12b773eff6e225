// y = layer norm of the rows of x [ROWS, 1024], times gain, plus bias: a workgroup a row, which stays in its registers.

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read> gain: array<vec4f>;
@group(0) @binding(2) var<storage, read> bias: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4f>;

var<workgroup> parts: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) index: u32) {
    let at = group.x * 256u + index;
    let own = x[at];
    parts[index] = (own.x + own.y) + (own.z + own.w);
    for (var half = 128u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if index < half {
            parts[index] += parts[index + half];
        }
    }
    let centred = own - workgroupUniformLoad(&parts[0]) / 1024.0;
    parts[index] = dot(centred, centred);
    for (var half = 128u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if index < half {
            parts[index] += parts[index + half];
        }
    }
    let variance = workgroupUniformLoad(&parts[0]) / 1024.0;
    y[at] = centred * inverseSqrt(variance + 1e-5) * gain[index] + bias[index];
}
