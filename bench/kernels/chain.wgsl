// A chain of eight elementwise steps over COUNT vec4s in one kernel. The harness declares COUNT.

@group(0) @binding(0) var<storage, read> a: array<vec4f>;
@group(0) @binding(1) var<storage, read> b: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= COUNT {
        return;
    }
    let x = a[id.x];
    let z = b[id.x];
    y[id.x] = abs(sqrt(max(x * z + x, vec4f()) * 0.5 + 1.0) - z);
}
