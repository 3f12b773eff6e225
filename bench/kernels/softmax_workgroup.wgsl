// y = softmax of the rows of x [ROWS, 1024]: a workgroup a row, which stays in its registers.

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4f>;

var<workgroup> parts: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) index: u32) {
    let at = group.x * 256u + index;
    let own = x[at];
    parts[index] = max(max(own.x, own.y), max(own.z, own.w));
    for (var half = 128u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if index < half {
            parts[index] = max(parts[index], parts[index + half]);
        }
    }
    let largest = workgroupUniformLoad(&parts[0]);
    let e = exp(own - largest);
    parts[index] = (e.x + e.y) + (e.z + e.w);
    for (var half = 128u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if index < half {
            parts[index] += parts[index + half];
        }
    }
    let total = workgroupUniformLoad(&parts[0]);
    y[at] = e / total;
}
