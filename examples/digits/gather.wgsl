// Batch number `step`: the rows of `pixels` that stand next in `order`, scaled to 0..1, and their labels.
// The order is used round and round, so every example is seen although the batches do not divide it.
// One invocation per element of x [rows, 64].

@compute @workgroup_size(64)
fn gather(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i >= len_x {
        return;
    }
    let row = i / dim_x_1;
    let column = i % dim_x_1;
    let example = load_order((u32(static_step()) * dim_x_0 + row) % len_order);
    store_x(i, f32(load_pixels(example * dim_x_1 + column)) / 16.0);
    if column == 0u {
        store_y(row, load_labels(example));
    }
}
