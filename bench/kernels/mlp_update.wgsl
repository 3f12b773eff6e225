// The digits network, last of four kernels: all gradients of weights, and their steps of 0.1. The first 8
// workgroups do w1 [64, 128], four by four weights an invocation, and b1; the next 20 do w2 [128, 10]; the last does b2.

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read> d: array<vec4f>;
@group(0) @binding(2) var<storage, read> h: array<f32>;
@group(0) @binding(3) var<storage, read> g: array<f32>;
@group(0) @binding(4) var<storage, read_write> w1: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> b1: array<vec4f>;
@group(0) @binding(6) var<storage, read_write> w2: array<f32>;
@group(0) @binding(7) var<storage, read_write> b2: array<f32>;

fn first(group: u32, index: u32) {
    let unit = group * 4u + index % 4u;
    let input = index / 4u;
    var s0 = vec4f();
    var s1 = vec4f();
    var s2 = vec4f();
    var s3 = vec4f();
    var sum = vec4f();
    for (var n = 0u; n < 128u; n++) {
        let own = d[n * 32u + unit];
        let pixels = x[n * 16u + input];
        s0 += pixels.x * own;
        s1 += pixels.y * own;
        s2 += pixels.z * own;
        s3 += pixels.w * own;
        sum += own;
    }
    let to = input * 128u + unit;
    w1[to] -= 0.1 * s0;
    w1[to + 32u] -= 0.1 * s1;
    w1[to + 64u] -= 0.1 * s2;
    w1[to + 96u] -= 0.1 * s3;
    if input == 0u {
        b1[unit] -= 0.1 * sum;
    }
}

fn second(at: u32) {
    let unit = at / 10u;
    let digit = at % 10u;
    var sum = 0.0;
    for (var n = 0u; n < 128u; n++) {
        sum += h[n * 128u + unit] * g[n * 10u + digit];
    }
    w2[at] -= 0.1 * sum;
}

fn bias(digit: u32) {
    var sum = 0.0;
    for (var n = 0u; n < 128u; n++) {
        sum += g[n * 10u + digit];
    }
    b2[digit] -= 0.1 * sum;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) index: u32) {
    if group.x < 8u {
        first(group.x, index);
    } else if group.x < 28u {
        second((group.x - 8u) * 64u + index);
    } else if index < 10u {
        bias(index);
    }
}
