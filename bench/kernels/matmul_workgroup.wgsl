// c[M, N] = a[M, K] b[K, N]: 64 rows by 64 columns a workgroup, whose parts of a and b pass through workgroup memory, 16
// steps of the sum at a time; eight rows by four columns in the registers of an invocation. The harness declares M, N, K:
// multiples of 64, 64 and 16.

@group(0) @binding(0) var<storage, read> a: array<vec4f>;
@group(0) @binding(1) var<storage, read> b: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> c: array<vec4f>;

// By step of the sum, then row: eight rows of one step lie together.
var<workgroup> part_a: array<f32, 1024>;
var<workgroup> part_b: array<vec4f, 256>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) index: u32) {
    let column = index % 16u;
    let row = index / 16u * 8u;
    var s0 = vec4f();
    var s1 = vec4f();
    var s2 = vec4f();
    var s3 = vec4f();
    var s4 = vec4f();
    var s5 = vec4f();
    var s6 = vec4f();
    var s7 = vec4f();
    for (var k = 0u; k < K; k += 16u) {
        for (var at = index; at < 256u; at += 128u) {
            let x = a[((group.y * 64u + at / 4u) * K + k) / 4u + at % 4u];
            let to = at % 4u * 256u + at / 4u;
            part_a[to] = x.x;
            part_a[to + 64u] = x.y;
            part_a[to + 128u] = x.z;
            part_a[to + 192u] = x.w;
            part_b[at] = b[(k + at / 16u) * (N / 4) + group.x * 16u + at % 16u];
        }
        workgroupBarrier();
        for (var step = 0u; step < 16u; step++) {
            let y = part_b[step * 16u + column];
            let from_a = step * 64u + row;
            s0 += part_a[from_a] * y;
            s1 += part_a[from_a + 1u] * y;
            s2 += part_a[from_a + 2u] * y;
            s3 += part_a[from_a + 3u] * y;
            s4 += part_a[from_a + 4u] * y;
            s5 += part_a[from_a + 5u] * y;
            s6 += part_a[from_a + 6u] * y;
            s7 += part_a[from_a + 7u] * y;
        }
        workgroupBarrier();
    }
    var to = (group.y * 64u + row) * (N / 4) + group.x * 16u + column;
    c[to] = s0;
    to += N / 4;
    c[to] = s1;
    to += N / 4;
    c[to] = s2;
    to += N / 4;
    c[to] = s3;
    to += N / 4;
    c[to] = s4;
    to += N / 4;
    c[to] = s5;
    to += N / 4;
    c[to] = s6;
    to += N / 4;
    c[to] = s7;
}
