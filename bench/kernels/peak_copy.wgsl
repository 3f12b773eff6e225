// The bandwidth of the adapter: COUNT vec4s read and written, whole lines by neighbours.
// The harness declares COUNT and STRIDE (invocations in all).

@group(0) @binding(0) var<storage, read> source: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> copy: array<vec4f>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
    for (var i = id.x; i < COUNT; i += STRIDE) {
        copy[i] = source[i];
    }
}
