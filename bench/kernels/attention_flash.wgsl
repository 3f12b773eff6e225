// y = softmax(q k^T / 8) v for each head, [HEADS, LENGTH, 64]: an invocation a query, its sums in registers, keys and values
// passing through workgroup memory sixteen at a time. The harness declares LENGTH, a multiple of 64.

@group(0) @binding(0) var<storage, read> q: array<vec4f>;
@group(0) @binding(1) var<storage, read> k: array<vec4f>;
@group(0) @binding(2) var<storage, read> v: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4f>;

var<workgroup> keys: array<vec4f, 256>;
var<workgroup> values: array<vec4f, 256>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) index: u32) {
    let own = (group.y * LENGTH + group.x * 64u + index) * 16u;
    var query: array<vec4f, 16>;
    var sum: array<vec4f, 16>;
    for (var d = 0u; d < 16u; d++) {
        query[d] = q[own + d] * 0.125;
    }
    var largest = -3.0e38;
    var total = 0.0;
    for (var start = 0u; start < LENGTH; start += 16u) {
        for (var at = index; at < 256u; at += 64u) {
            keys[at] = k[(group.y * LENGTH + start) * 16u + at];
            values[at] = v[(group.y * LENGTH + start) * 16u + at];
        }
        workgroupBarrier();
        var scores: array<f32, 16>;
        var top = largest;
        for (var j = 0u; j < 16u; j++) {
            var score = vec4f();
            for (var d = 0u; d < 16u; d++) {
                score += query[d] * keys[j * 16u + d];
            }
            scores[j] = (score.x + score.y) + (score.z + score.w);
            top = max(top, scores[j]);
        }
        let shrink = exp(largest - top);
        largest = top;
        total *= shrink;
        for (var d = 0u; d < 16u; d++) {
            sum[d] *= shrink;
        }
        for (var j = 0u; j < 16u; j++) {
            let e = exp(scores[j] - top);
            total += e;
            for (var d = 0u; d < 16u; d++) {
                sum[d] += e * values[j * 16u + d];
            }
        }
        workgroupBarrier();
    }
    for (var d = 0u; d < 16u; d++) {
        y[own + d] = sum[d] / total;
    }
}
