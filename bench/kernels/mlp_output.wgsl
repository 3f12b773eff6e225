// The digits network, second of four kernels: the logits h w2 + b2, the loss of each row, and the gradient g[128, 10] of the
// mean loss. Eight rows a workgroup, ten of sixteen invocations a row.

@group(0) @binding(0) var<storage, read> h: array<vec4f>;
@group(0) @binding(1) var<storage, read> w2: array<f32>;
@group(0) @binding(2) var<storage, read> b2: array<f32>;
@group(0) @binding(3) var<storage, read> y: array<f32>;
@group(0) @binding(4) var<storage, read_write> g: array<f32>;
@group(0) @binding(5) var<storage, read_write> losses: array<f32>;

var<workgroup> logits: array<array<f32, 16>, 8>;

@compute @workgroup_size(16, 8)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u) {
    let row = id.y;
    let digit = local.x;
    if digit < 10u {
        var sum = b2[digit];
        for (var j = 0u; j < 32u; j++) {
            let x = h[row * 32u + j];
            let at = j * 40u + digit;
            sum += x.x * w2[at] + x.y * w2[at + 10u] + x.z * w2[at + 20u] + x.w * w2[at + 30u];
        }
        logits[local.y][digit] = sum;
    }
    workgroupBarrier();
    if digit >= 10u {
        return;
    }
    var largest = logits[local.y][0];
    for (var k = 1u; k < 10u; k++) {
        largest = max(largest, logits[local.y][k]);
    }
    var total = 0.0;
    for (var k = 0u; k < 10u; k++) {
        total += exp(logits[local.y][k] - largest);
    }
    let own = logits[local.y][digit] - largest;
    g[row * 10u + digit] = (exp(own) / total - y[row * 10u + digit]) / 128.0;
    if digit == 0u {
        var loss = 0.0;
        for (var k = 0u; k < 10u; k++) {
            loss -= y[row * 10u + k] * (logits[local.y][k] - largest - log(total));
        }
        losses[row] = loss;
    }
}
