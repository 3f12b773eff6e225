// The gradient of the joined batch: the mean of those of its two halves, this device's and the one in the merge buffer.
// An addition does not mind the order of its two operands, so both devices get the same bits.
// One invocation per element.

@compute @workgroup_size(64)
fn merge(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i < len_total {
        store_total(i, 0.5 * (load_own(i) + load_theirs(i)));
    }
}
