// y[t] = table[ids[t]], rows of WIDTH vec4s. The harness declares ROWS and WIDTH.

@group(0) @binding(0) var<storage, read> table: array<vec4f>;
@group(0) @binding(1) var<storage, read> ids: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= ROWS * WIDTH {
        return;
    }
    y[id.x] = table[u32(ids[id.x / WIDTH]) * WIDTH + id.x % WIDTH];
}
