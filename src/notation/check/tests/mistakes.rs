//! Mistakes in names, ranges and accesses: the kind, the place, the text.

use super::compare;

#[test]
fn names() {
    compare(&[
        (
            "y[i] = v[y + i] where y in 0:1",
            "duplicate-node 1:10 \"y\" is a node here, so it cannot be an index; give the index another name",
        ),
        (
            "big: f32[4294967295, 0, 4294967295, 4294967295]",
            "limit-exceeded 1:1 \"big\" with shape [4294967295, 0, 4294967295, 4294967295] has more than 2^53 elements; give it smaller extents",
        ),
        (
            "y[i, j] = 1 where i in 0:2147483648, j in 0:2147483648",
            "limit-exceeded 1:1 \"y\" with shape [2147483648, 2147483648] has more than 2^53 elements; give it smaller extents",
        ),
        (
            "y[i] = z[i]",
            "unknown-node 1:8 unknown name \"z\": no node that is declared, given or assigned before, and no index in a position, in where or in a reduction here; declare it",
        ),
        (
            "y[i] = v[i] + z",
            "unknown-node 1:15 unknown name \"z\": no node that is declared, given or assigned before, and no index in a position, in where or in a reduction here; declare it",
        ),
        (
            "y[i] = v[i] * k",
            "unknown-node 1:15 unknown name \"k\": no node that is declared, given or assigned before, and no index in a position, in where or in a reduction here; declare it",
        ),
        (
            "y[i] += v[i]",
            "unknown-node 1:6 \"y\" has no contents to accumulate onto; use = or the form with ! (+=!), or declare it",
        ),
        (
            "y += v[i]",
            "unknown-node 1:3 \"y\" has no contents to accumulate onto; use = or the form with ! (+=!), or declare it",
        ),
        (
            "y[i] = y[i] + v[i]",
            "unknown-node 1:8 unknown name \"y\": no node that is declared, given or assigned before, and no index in a position, in where or in a reduction here; declare it",
        ),
        (
            "y[i] = i[0] + v[i]",
            "unknown-node 1:8 unknown name \"i\": no node that is declared, given or assigned before, and no index in a position, in where or in a reduction here; declare it",
        ),
        (
            "v[i] = v[i] where v in 0:3",
            "duplicate-node 1:19 \"v\" is a node here, so it cannot be an index; give the index another name",
        ),
        (
            "y = sum[v](v[v])",
            "duplicate-node 1:9 \"v\" is a node here, so it cannot be an index; give the index another name",
        ),
        (
            "y[y] = 1 where y in 0:3",
            "duplicate-node 1:3 \"y\" is a node here, so it cannot be an index; give the index another name",
        ),
        ("y = sum[k, k](v[k])", "notation-syntax 1:12 found `k` twice in `sum`; name each index once"),
        ("y[i] = v[i] where i in 0:3, i in 0:4", "duplicate-node 1:29 i is named twice; name each index once"),
        (
            "y[i] = v[i] where j in 0:3",
            "notation-meaning 1:19 j stands nowhere else in the statement; leave its range out",
        ),
        (
            "y: f32[3]\ny: f32[3]",
            "duplicate-node 2:1 \"y\" is defined already; declare a node once, before its first assignment",
        ),
        (
            "y[i] = v[i]\n\ny: f32[8]",
            "duplicate-node 3:1 \"y\" is defined already; declare a node once, before its first assignment",
        ),
        (
            "v: f32[7]",
            "shape-mismatch 1:1 \"v\" is declared f32[7] and given as f32[8]; declare what is given, or leave the declaration out",
        ),
        (
            "v: i32[8]",
            "dtype-mismatch 1:1 \"v\" is declared i32[8] and given as f32[8]; declare what is given, or leave the declaration out",
        ),
        (
            "fixed[i] = v[i]",
            "notation-meaning 1:1 \"fixed\" can only be read, as a constant or from the merge buffer; assign to another node",
        ),
        (
            "y[i] = v[i]; z[j] = y[j]; t[k] = Y[k]",
            "unknown-node 1:34 unknown name \"Y\": no node that is declared, given or assigned before, and no index in a position, in where or in a reduction here; declare it",
        ),
    ]);
}

#[test]
fn ranks() {
    compare(&[
        (
            "y[i] = a[i]",
            "shape-mismatch 1:8 \"a\" has rank 2 (shape [4, 6]), and found are 1 positions; write one per axis",
        ),
        (
            "y[i] = v[i, 0]",
            "shape-mismatch 1:8 \"v\" has rank 1 (shape [8]), and found are 2 positions; write one per axis",
        ),
        (
            "y = v",
            "shape-mismatch 1:5 \"v\" has rank 1 (shape [8]), and found are 0 positions; write a bracket, or give the index another name",
        ),
        (
            "y = s[0]",
            "shape-mismatch 1:5 \"s\" has rank 0 (shape []), and found are 1 positions; leave the bracket out",
        ),
        (
            "y[i] = a[v, i]",
            "shape-mismatch 1:10 \"v\" has rank 1 (shape [8]), and found are 0 positions; write a bracket, or give the index another name",
        ),
        ("y[i] = v[s]", "dtype-mismatch 1:10 a position takes integers, found f32; write i32(..) or u32(..)"),
        (
            "v[i, j] = 1 where i in 0:2, j in 0:2",
            "shape-mismatch 1:1 \"v\" has rank 1 (shape [8]), and found are 2 positions; write one per axis",
        ),
        (
            "v = 1",
            "shape-mismatch 1:1 \"v\" has rank 1 (shape [8]), and found are 0 positions; write a bracket, or give the index another name",
        ),
        (
            "v[i] = 1 + v[i][0]",
            "notation-syntax 1:16 found `[`, expected an operator, `where`, the end of the line, or `;`; all indices stand in one bracket behind a name: `x[i, j]`, not `x[i][j]`",
        ),
    ]);
}

#[test]
fn created_nodes() {
    compare(&[
        (
            "y[0] = 1",
            "notation-meaning 1:3 the first assignment creates \"y\", so its positions must be distinct plain indices; to write a part of it, declare it before",
        ),
        (
            "y[i + 1] = v[i]",
            "notation-meaning 1:3 the first assignment creates \"y\", so its positions must be distinct plain indices; to write a part of it, declare it before",
        ),
        (
            "y[i, i] = v[i]",
            "notation-meaning 1:6 the first assignment creates \"y\", so its positions must be distinct plain indices; to write a part of it, declare it before",
        ),
        (
            "y[i] = v[i] where i in 1:8",
            "shape-mismatch 1:3 the first assignment creates \"y\", so i must run from 0, and runs over 1:8; to write a part of it, declare it before",
        ),
        (
            "y[ids[i]] +=! v[i]",
            "notation-meaning 1:3 the first assignment creates \"y\", so its positions must be distinct plain indices; to write a part of it, declare it before",
        ),
        (
            "y[@t] = 1",
            "notation-meaning 1:3 the first assignment creates \"y\", so its positions must be distinct plain indices; to write a part of it, declare it before",
        ),
        (
            "y[i] = 1",
            "shape-mismatch 1:3 i has no range, since no position outside pad bounds it; state one: where i in 0:n",
        ),
    ]);
}

#[test]
fn ranges() {
    compare(&[
        (
            "y[i] = v[i] + w[i]",
            "shape-mismatch 1:17 i runs over axis 0 of \"v\" [8] and over axis 0 of \"w\" [3]; give them one extent, or state the part: where i in 0:3",
        ),
        (
            "y[i, j] =\n  a[i, j] * b[i, j]",
            "shape-mismatch 2:15 i runs over axis 0 of \"a\" [4, 6] and over axis 0 of \"b\" [6, 5]; give them one extent, or state the part: where i in 0:4",
        ),
        (
            "y[i] +=! v[i + j] * w[j + 2 * i]",
            "shape-mismatch 1:12 i has no range, since it stands beside j, which is not known; state one: where i in 0:n",
        ),
        (
            "y[i] +=! v[i + j]",
            "shape-mismatch 1:12 i has no range, since it stands beside j, which is not known; state one: where i in 0:n",
        ),
        (
            "y[i] = v[i + @t]",
            "shape-mismatch 1:10 i has no range, since it stands beside @t, which is not known; state one: where i in 0:n",
        ),
        (
            "y[i] = v[i - 1]",
            "shape-mismatch 1:10 i has no range, since 0:1 leaves axis 0 of \"v\" [8]; state one: where i in 0:n",
        ),
        (
            "y[i] = v[9 + i]",
            "shape-mismatch 1:10 i has no range, since 0:1 leaves axis 0 of \"v\" [8]; state one: where i in 0:n",
        ),
        (
            "y[i] = v[-i - 1]",
            "shape-mismatch 1:10 i has no range, since 0:1 leaves axis 0 of \"v\" [8]; state one: where i in 0:n",
        ),
        (
            "y[i] = empty[i + 1]",
            "shape-mismatch 1:14 i has no range, since 0:1 leaves axis 0 of \"empty\" [0]; state one: where i in 0:n",
        ),
        (
            "y[i] = pad(v[i - 1], 0)",
            "shape-mismatch 1:3 i has no range, since no position outside pad bounds it; state one: where i in 0:n",
        ),
        (
            "y[i] = v[ids[0] + i]",
            "shape-mismatch 1:3 i has no range, since no position outside pad bounds it; state one: where i in 0:n",
        ),
        (
            "y = sum[k](1)",
            "shape-mismatch 1:9 k has no range, since no position outside pad bounds it; state one: where k in 0:n",
        ),
        (
            "y = 1; y +=! sum[k](k)",
            "shape-mismatch 1:18 k has no range, since no position outside pad bounds it; state one: where k in 0:n",
        ),
        (
            "y[i] = v[i - i]",
            "shape-mismatch 1:3 i has no range, since no position outside pad bounds it; state one: where i in 0:n",
        ),
        (
            "y[n_] = pad(v[n_], 0) + pad(w[n_], 0)",
            "shape-mismatch 1:31 n_ runs over axis 0 of \"v\" [8] and over axis 0 of \"w\" [3]; give them one extent, or state the part: where n_ in 0:3",
        ),
        (
            "y[i] = huge[i]",
            "limit-exceeded 1:3 i runs over 0:4294967295, and indices are of type i32 (-2147483648 to 2147483647); split it in two",
        ),
        (
            "y[i] +=! v[i] * j where j in -3000000000:0",
            "limit-exceeded 1:17 j runs over -3000000000:0, and indices are of type i32 (-2147483648 to 2147483647); split it in two",
        ),
        (
            "y[i] = argmax[k](v[k]) + i where k in 3:3, i in 0:4",
            "shape-mismatch 1:8 k runs over nothing, and one of its values is to be given; give it a range that has one",
        ),
        (
            "y[i] = argmin[k](empty[k]) + i where i in 0:4",
            "shape-mismatch 1:8 k runs over nothing, and one of its values is to be given; give it a range that has one",
        ),
        (
            "y[i] +=! v[i + k] where k in 0:0",
            "shape-mismatch 1:3 i has no range, since no position outside pad bounds it; state one: where i in 0:n",
        ),
    ]);
}

#[test]
fn bounds() {
    compare(&[
        (
            "v[i] = v[i + 1]",
            "shape-mismatch 1:10 the position i + 1 runs over 1 to 8, and must stay in axis 0 of \"v\" [8]; state a smaller range with where, or use pad on the right",
        ),
        (
            "v[i] = i > 0 ? v[i - 1] : 0",
            "shape-mismatch 1:18 the position i - 1 runs over -1 to 6, and must stay in axis 0 of \"v\" [8]; state a smaller range with where, or use pad on the right",
        ),
        (
            "y[i] = v[2 * i + 1] where i in 0:5",
            "shape-mismatch 1:10 the position 2 * i + 1 runs over 1 to 9, and must stay in axis 0 of \"v\" [8]; state a smaller range with where, or use pad on the right",
        ),
        (
            "v[8] = 1",
            "shape-mismatch 1:3 the position 8 runs over 8 to 8, and must stay in axis 0 of \"v\" [8]; state a smaller range with where, or use pad on the right",
        ),
        (
            "v[i] = 1 where i in -1:2",
            "shape-mismatch 1:3 the position i runs over -1 to 1, and must stay in axis 0 of \"v\" [8]; state a smaller range with where, or use pad on the right",
        ),
        (
            "y[i] = a[i, 6]",
            "shape-mismatch 1:13 the position 6 runs over 6 to 6, and must stay in axis 1 of \"a\" [4, 6]; state a smaller range with where, or use pad on the right",
        ),
        (
            "y[i] = w[3 - i] where i in 0:2",
            "shape-mismatch 1:10 the position -i + 3 runs over 2 to 3, and must stay in axis 0 of \"w\" [3]; state a smaller range with where, or use pad on the right",
        ),
        (
            "y[i] = empty[0] + v[i]",
            "shape-mismatch 1:14 the position 0 runs over 0 to 0, and must stay in axis 0 of \"empty\" [0]; state a smaller range with where, or use pad on the right",
        ),
        (
            "y[i] = empty[ids[i]]",
            "shape-mismatch 1:14 axis 0 of \"empty\" [0] has no element to gather; give it one, or use pad",
        ),
        (
            "y = v[9] * sum[k](v[k + 9] * v[9]) where k in 0:0",
            "shape-mismatch 1:7 the position 9 runs over 9 to 9, and must stay in axis 0 of \"v\" [8]; state a smaller range with where, or use pad on the right",
        ),
        (
            "y +=! v[k] + v[9]",
            "shape-mismatch 1:16 the position 9 runs over 9 to 9, and must stay in axis 0 of \"v\" [8]; state a smaller range with where, or use pad on the right",
        ),
        (
            "v[9] +=! w[k] where k in 0:0",
            "shape-mismatch 1:3 the position 9 runs over 9 to 9, and must stay in axis 0 of \"v\" [8]; state a smaller range with where, or use pad on the right",
        ),
        (
            "y[i] = v[i + @t] where i in 0:9",
            "shape-mismatch 1:10 the position i + @t runs over 0 to 8, without its statics, and must stay in axis 0 of \"v\" [8]; state a smaller range with where, or use pad on the right",
        ),
        (
            "y[i] = empty[@t] + v[i]",
            "shape-mismatch 1:14 the position @t runs over 0 to 0, without its statics, and must stay in axis 0 of \"empty\" [0]; state a smaller range with where, or use pad on the right",
        ),
        (
            "y[i] = pad(v[3000000000 * i], 0) where i in 0:2",
            "limit-exceeded 1:14 the position 3000000000 * i runs over 0 to 3000000000, and must stay in i32, the type of positions inside pad; state a smaller range with where",
        ),
        (
            "y[i] = pad(v[4294967295 * (2 * @t) + i], 0)  where i in 0:2",
            "limit-exceeded 1:14 the position does not fit 64 bits; use smaller factors",
        ),
        (
            "y[i] = pad(v[ids[i + 1]], 0) where i in 0:8",
            "shape-mismatch 1:18 the position i + 1 runs over 1 to 8, and must stay in axis 0 of \"ids\" [8]; state a smaller range with where, or use pad on the right",
        ),
        (
            "y[i] = v[4294967295 * 4294967295 * 4294967295 * i]",
            "limit-exceeded 1:10 the position does not fit 64 bits; use smaller factors",
        ),
        (
            "y = sum[k](v[k] * w[k + 1]) + sum[k](v[k])",
            "shape-mismatch 1:21 the position k + 1 runs over 1 to 8, and must stay in axis 0 of \"w\" [3]; state a smaller range with where, or use pad on the right",
        ),
        (
            "y[i] = v[i] where i in 0:9",
            "shape-mismatch 1:10 the position i runs over 0 to 8, and must stay in axis 0 of \"v\" [8]; state a smaller range with where, or use pad on the right",
        ),
        (
            "y[i] =\n    v[i] +\n    w[i + 1]; # é",
            "shape-mismatch 3:7 the position i + 1 runs over 1 to 8, and must stay in axis 0 of \"w\" [3]; state a smaller range with where, or use pad on the right",
        ),
    ]);
}
