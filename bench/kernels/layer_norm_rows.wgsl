// y = layer norm of the rows of x [ROWS, COLUMNS], times gain, plus bias: an invocation a row, three times over it.
// The harness declares ROWS and COLUMNS (a multiple of 4).

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read> gain: array<vec4f>;
@group(0) @binding(2) var<storage, read> bias: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4f>;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= ROWS {
        return;
    }
    let start = id.x * (COLUMNS / 4);
    var sum = vec4f();
    for (var at = 0u; at < COLUMNS / 4; at++) {
        sum += x[start + at];
    }
    let mean = ((sum.x + sum.y) + (sum.z + sum.w)) / f32(COLUMNS);
    var squares = vec4f();
    for (var at = 0u; at < COLUMNS / 4; at++) {
        let centred = x[start + at] - mean;
        squares += centred * centred;
    }
    let factor = inverseSqrt(((squares.x + squares.y) + (squares.z + squares.w)) / f32(COLUMNS) + 1e-5);
    for (var at = 0u; at < COLUMNS / 4; at++) {
        y[start + at] = (x[start + at] - mean) * factor * gain[at] + bias[at];
    }
}
