// y = softmax of SCALE times the rows of x [ROWS, COLUMNS]: an invocation a row, three times over it.
// The harness declares ROWS, COLUMNS (a multiple of 4) and SCALE.

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4f>;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= ROWS {
        return;
    }
    let start = id.x * (COLUMNS / 4);
    let end = start + COLUMNS / 4;
    var largest = x[start];
    for (var at = start + 1u; at < end; at++) {
        largest = max(largest, x[at]);
    }
    let top = max(max(largest.x, largest.y), max(largest.z, largest.w));
    var sum = vec4f();
    for (var at = start; at < end; at++) {
        let e = exp((x[at] - top) * SCALE);
        y[at] = e;
        sum += e;
    }
    let factor = 1.0 / ((sum.x + sum.y) + (sum.z + sum.w));
    for (var at = start; at < end; at++) {
        y[at] *= factor;
    }
}
