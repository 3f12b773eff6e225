// y[CHANNELS_OUT, SIZE, SIZE] = x[CHANNELS_IN, SIZE, SIZE] convolved with w[CHANNELS_OUT, CHANNELS_IN, 3, 3], zeros around x:
// four neighbours of a row by eight channels in the registers of an invocation. The harness declares CHANNELS_IN,
// CHANNELS_OUT (a multiple of 8) and SIZE (a multiple of 4).

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;

@compute @workgroup_size(16, 4)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let column = id.x;
    let row = id.y;
    if column >= SIZE / 4 || row >= SIZE {
        return;
    }
    var s0 = vec4f();
    var s1 = vec4f();
    var s2 = vec4f();
    var s3 = vec4f();
    var s4 = vec4f();
    var s5 = vec4f();
    var s6 = vec4f();
    var s7 = vec4f();
    let channel = id.z * 8u;
    for (var c = 0u; c < CHANNELS_IN; c++) {
        for (var u = 0u; u < 3u; u++) {
            let line = i32(row + u) - 1;
            if line < 0 || line >= i32(SIZE) {
                continue;
            }
            let at = (c * SIZE + u32(line)) * (SIZE / 4) + column;
            let middle = x[at];
            let before = select(0.0, x[max(at, 1u) - 1u].w, column > 0u);
            let after = select(0.0, x[at + 1u].x, column + 1u < SIZE / 4);
            let left = vec4f(before, middle.xyz);
            let right = vec4f(middle.yzw, after);
            var from_w = (channel * CHANNELS_IN + c) * 9u + u * 3u;
            s0 += w[from_w] * left + w[from_w + 1u] * middle + w[from_w + 2u] * right;
            from_w += CHANNELS_IN * 9u;
            s1 += w[from_w] * left + w[from_w + 1u] * middle + w[from_w + 2u] * right;
            from_w += CHANNELS_IN * 9u;
            s2 += w[from_w] * left + w[from_w + 1u] * middle + w[from_w + 2u] * right;
            from_w += CHANNELS_IN * 9u;
            s3 += w[from_w] * left + w[from_w + 1u] * middle + w[from_w + 2u] * right;
            from_w += CHANNELS_IN * 9u;
            s4 += w[from_w] * left + w[from_w + 1u] * middle + w[from_w + 2u] * right;
            from_w += CHANNELS_IN * 9u;
            s5 += w[from_w] * left + w[from_w + 1u] * middle + w[from_w + 2u] * right;
            from_w += CHANNELS_IN * 9u;
            s6 += w[from_w] * left + w[from_w + 1u] * middle + w[from_w + 2u] * right;
            from_w += CHANNELS_IN * 9u;
            s7 += w[from_w] * left + w[from_w + 1u] * middle + w[from_w + 2u] * right;
        }
    }
    var to = (channel * SIZE + row) * (SIZE / 4) + column;
    y[to] = s0;
    to += SIZE * (SIZE / 4);
    y[to] = s1;
    to += SIZE * (SIZE / 4);
    y[to] = s2;
    to += SIZE * (SIZE / 4);
    y[to] = s3;
    to += SIZE * (SIZE / 4);
    y[to] = s4;
    to += SIZE * (SIZE / 4);
    y[to] = s5;
    to += SIZE * (SIZE / 4);
    y[to] = s6;
    to += SIZE * (SIZE / 4);
    y[to] = s7;
}
