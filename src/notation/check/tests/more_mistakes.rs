//! Mistakes in positions, assignments and types: the kind, the place, the text.

use super::compare;

#[test]
fn positions() {
    compare(&[
        (
            "y[i] = v[i / 2] + v[i]",
            "notation-meaning 1:10 a position is a sum of indices, statics and integers with constant factors, or reads a tensor; in place of i / 4 and i % 4, run over both (x[4 * q + r])",
        ),
        (
            "y[i] = v[i * i] + v[i]",
            "notation-meaning 1:10 a position is a sum of indices, statics and integers with constant factors, or reads a tensor; in place of i / 4 and i % 4, run over both (x[4 * q + r])",
        ),
        ("y[i] = v[1.5] + v[i]", "dtype-mismatch 1:10 a position takes integers, found f32; write i32(..) or u32(..)"),
        ("y[i] = v[v[i]]", "dtype-mismatch 1:10 a position takes integers, found f32; write i32(..) or u32(..)"),
        ("y[i] = v[flags[i]]", "dtype-mismatch 1:10 a position takes integers, found bool; write i32(..) or u32(..)"),
        ("y[i] = v[us[i] + ids[i]]", "dtype-mismatch 1:18 + of u32 and i32 is not defined; convert one side: u32(..)"),
        (
            "y[i] = v[i32(i)] + v[i]",
            "notation-meaning 1:10 a position is a sum of indices, statics and integers with constant factors, or reads a tensor; in place of i / 4 and i % 4, run over both (x[4 * q + r])",
        ),
        (
            "y[i] = v[argmax[k](k)] + v[i] where k in 0:3",
            "notation-meaning 1:10 a position is a sum of indices, statics and integers with constant factors, or reads a tensor; in place of i / 4 and i % 4, run over both (x[4 * q + r])",
        ),
        (
            "v[ids[i]] = v[i]",
            "notation-meaning 1:3 = cannot scatter, since two points may write one element; accumulate (+=), or gather on the right",
        ),
        (
            "v[n] = 1",
            "notation-meaning 1:3 = cannot scatter, since two points may write one element; accumulate (+=), or gather on the right",
        ),
        (
            "v[ids[ids[i]]] += v[i]",
            "notation-meaning 1:3 a position on the left takes one tensor access, found 2; assign it to a node first",
        ),
        (
            "v[ids[i] + n] += v[i]",
            "notation-meaning 1:3 a position on the left takes one tensor access, found 2; assign it to a node first",
        ),
        ("v[v[i]] += 1", "dtype-mismatch 1:3 a position takes integers, found f32; write i32(..) or u32(..)"),
        (
            "v[i / 2] += v[i]",
            "notation-meaning 1:3 a position is a sum of indices, statics and integers with constant factors, or reads a tensor; in place of i / 4 and i % 4, run over both (x[4 * q + r])",
        ),
        (
            "y[i] = pad(v[i] + 1, 0)",
            "notation-syntax 1:12 found `v[i] + 1`, expected an access; write `pad(x[i - 1], value)`",
        ),
        ("y[i] = pad(i, 0) + v[i]", "notation-syntax 1:12 found `i`, expected an access; write `pad(x[i - 1], value)`"),
    ]);
}

#[test]
fn assignments() {
    compare(&[
        (
            "y[i] = v[i] * w[j]",
            "notation-meaning 1:17 j stands on the right of = only; put it on the left too, or sum over it (+=!, sum[j](..))",
        ),
        (
            "y = v[i]",
            "notation-meaning 1:7 i stands on the right of = only; put it on the left too, or sum over it (+=!, sum[i](..))",
        ),
        (
            "y[i] = v[i] + j where j in 0:3",
            "notation-meaning 1:15 j stands on the right of = only; put it on the left too, or sum over it (+=!, sum[j](..))",
        ),
        (
            "v[i + j] = 1 where i in 0:4, j in 0:4",
            "notation-meaning 1:1 two values of (i, j) may write one element of \"v\" with =; use indices that stand alone, factors that keep them apart (4 * i + u where u in 0:4), or accumulate (+=)",
        ),
        (
            "v[2 * i + j] = 1 where i in 0:2, j in 0:3",
            "notation-meaning 1:1 two values of (i, j) may write one element of \"v\" with =; use indices that stand alone, factors that keep them apart (4 * i + u where u in 0:4), or accumulate (+=)",
        ),
        (
            "v[0 * i] = 1 where i in 0:2",
            "notation-meaning 1:1 two values of (i) may write one element of \"v\" with =; use indices that stand alone, factors that keep them apart (4 * i + u where u in 0:4), or accumulate (+=)",
        ),
        (
            "a[i - i, j] = 1 where i in 0:2",
            "notation-meaning 1:1 two values of (i) may write one element of \"a\" with =; use indices that stand alone, factors that keep them apart (4 * i + u where u in 0:4), or accumulate (+=)",
        ),
        (
            "v[i + 2 * j + 3 * k] = 1 where i in 0:2, j in 0:2, k in 0:2",
            "notation-meaning 1:1 two values of (i, j, k) may write one element of \"v\" with =; use indices that stand alone, factors that keep them apart (4 * i + u where u in 0:4), or accumulate (+=)",
        ),
        (
            "flags[i] += 1",
            "dtype-mismatch 1:10 \"flags\" is bool, and += takes numbers; make it i32, or use = with && and ||",
        ),
        (
            "flags[i] max= flags[i]",
            "dtype-mismatch 1:10 \"flags\" is bool, and max= takes numbers; make it i32, or use = with && and ||",
        ),
        (
            "y[i] +=! v[i] < 0",
            "dtype-mismatch 1:6 \"y\" is bool, and +=! takes numbers; make it i32, or use = with && and ||",
        ),
        ("ids[i] = v[i]", "dtype-mismatch 1:10 \"ids\" is i32 and the value is f32; write i32(..)"),
        ("ids[i] = us[i]", "dtype-mismatch 1:10 \"ids\" is i32 and the value is u32; write i32(..)"),
        ("us[i] = ids[i]", "dtype-mismatch 1:9 \"us\" is u32 and the value is i32; write u32(..)"),
        ("us[i] += i", "dtype-mismatch 1:10 \"us\" is u32 and the value is i32; write u32(..)"),
        ("bytes[i] = ids[i]", "dtype-mismatch 1:12 \"bytes\" is u8 and the value is i32; write u8(..)"),
        ("signed[i] = us[i]", "dtype-mismatch 1:13 \"signed\" is i8 and the value is u32; write i8(..)"),
        (
            "bytes[i] = 300",
            "dtype-mismatch 1:12 300 does not fit u8 (0 to 255); use a smaller number, a float, or u8(..), which wraps",
        ),
        (
            "bytes[i] = i > 2 ? 1 : 256",
            "dtype-mismatch 1:24 256 does not fit u8 (0 to 255); use a smaller number, a float, or u8(..), which wraps",
        ),
        (
            "signed[i] = -129",
            "dtype-mismatch 1:13 -129 does not fit i8 (-128 to 127); use a smaller number, a float, or i8(..), which wraps",
        ),
        (
            "us[i] = -1",
            "dtype-mismatch 1:9 -1 does not fit u32 (0 to 4294967295); use a smaller number, a float, or u32(..), which wraps",
        ),
        (
            "ids[i] = 2147483648",
            "dtype-mismatch 1:10 2147483648 does not fit i32 (-2147483648 to 2147483647); use a smaller number, a float, or i32(..), which wraps",
        ),
        ("ids[i] = 1.0", "dtype-mismatch 1:10 \"ids\" is i32 and the value is f32; write i32(..)"),
        ("v[i] = flags[i]", "dtype-mismatch 1:8 \"v\" is f32 and the value is bool; write f32(..)"),
        ("flags[i] = 1", "dtype-mismatch 1:12 \"flags\" is bool and the value is i32; write bool(..)"),
        ("flags[i] = v[i]", "dtype-mismatch 1:12 \"flags\" is bool and the value is f32; write bool(..)"),
        (
            "y = 3000000000",
            "dtype-mismatch 1:5 3000000000 does not fit i32 (-2147483648 to 2147483647); use a smaller number, a float, or i32(..), which wraps",
        ),
    ]);
}

#[test]
fn types() {
    compare(&[
        ("y[i] = ids[i] + us[i]", "dtype-mismatch 1:17 + of i32 and u32 is not defined; convert one side: i32(..)"),
        ("y[i] = us[i] * i", "dtype-mismatch 1:16 * of u32 and i32 is not defined; convert one side: u32(..)"),
        ("y[i] = us[i] < ids[i]", "dtype-mismatch 1:16 < of u32 and i32 is not defined; convert one side: u32(..)"),
        (
            "y[i] = flags[i] ? us[i] : ids[i]",
            "dtype-mismatch 1:27 a choice of u32 and i32 is not defined; convert one side: u32(..)",
        ),
        (
            "y[i] = max(us[i], ids[i])",
            "dtype-mismatch 1:19 max of u32 and i32 is not defined; convert one side: u32(..)",
        ),
        (
            "y[i] = v[i] * flags[i]",
            "dtype-mismatch 1:15 * takes numbers, found bool; convert it (f32(..), i32(..)), or use && and ||",
        ),
        (
            "y[i] = flags[i] + 1",
            "dtype-mismatch 1:8 + takes numbers, found bool; convert it (f32(..), i32(..)), or use && and ||",
        ),
        ("y[i] = flags[i] == 1", "dtype-mismatch 1:20 == of bool and i32 is not defined; convert one side: i32(..)"),
        (
            "y[i] = flags[i] < flags[i]",
            "dtype-mismatch 1:8 < takes numbers, found bool; comparisons do not chain: write a < b && b < c",
        ),
        (
            "y[i] = 0 < v[i] < 1",
            "dtype-mismatch 1:8 < takes numbers, found bool; comparisons do not chain: write a < b && b < c",
        ),
        (
            "y[i] = flags[i] ? 1 : true",
            "dtype-mismatch 1:19 a choice of bool and i32 is not defined; convert one side: i32(..)",
        ),
        (
            "y[i] = -flags[i]",
            "dtype-mismatch 1:9 - takes numbers, found bool; convert it (f32(..), i32(..)), or use && and ||",
        ),
        ("y[i] = !ids[i]", "dtype-mismatch 1:9 ! takes bool, found i32; compare (.. != 0)"),
        ("y[i] = !1 && flags[i]", "dtype-mismatch 1:9 ! takes bool, found an integer; compare (.. != 0)"),
        ("y[i] = ~v[i]", "dtype-mismatch 1:9 ~ takes integers, found f32; write i32(..) or u32(..)"),
        ("y[i] = flags[i] & flags[i]", "dtype-mismatch 1:8 & takes integers, found bool; use &&, || or !="),
        ("y[i] = ids[i] | v[i]", "dtype-mismatch 1:17 | takes integers, found f32; write i32(..) or u32(..)"),
        (
            "y[i] = us[i] & -1",
            "dtype-mismatch 1:16 -1 does not fit u32 (0 to 4294967295); use a smaller number, a float, or u32(..), which wraps",
        ),
        (
            "y[i] = ids[i] & 4294967295",
            "dtype-mismatch 1:17 4294967295 does not fit i32 (-2147483648 to 2147483647); use a smaller number, a float, or i32(..), which wraps",
        ),
        ("y[i] = v[i] << 1", "dtype-mismatch 1:8 << takes integers, found f32; write i32(..) or u32(..)"),
        ("y[i] = ids[i] >> 1.5", "dtype-mismatch 1:18 >> takes integers, found f32; write i32(..) or u32(..)"),
        ("y[i] = ids[i] && flags[i]", "dtype-mismatch 1:8 && takes bool, found i32; compare (.. != 0)"),
        ("y[i] = v[i] ? 1 : 0", "dtype-mismatch 1:8 a condition takes bool, found f32; compare (.. != 0)"),
        ("y[i] = select(ids[i], 1, 0)", "dtype-mismatch 1:15 a condition takes bool, found i32; compare (.. != 0)"),
        (
            "y[i] = flags[i] ** 2",
            "dtype-mismatch 1:8 ** takes numbers, found bool; convert it (f32(..), i32(..)), or use && and ||",
        ),
        (
            "y[i] = exp(flags[i])",
            "dtype-mismatch 1:12 exp takes numbers, found bool; convert it (f32(..), i32(..)), or use && and ||",
        ),
        (
            "y[i] = isnan(flags[i])",
            "dtype-mismatch 1:14 isnan takes numbers, found bool; convert it (f32(..), i32(..)), or use && and ||",
        ),
        ("y[i] = uniform(1, i)", "dtype-mismatch 1:19 uniform takes u32, found i32; write u32(..)"),
        ("y[i] = normal(v[i], us[i])", "dtype-mismatch 1:15 normal takes u32, found f32; write u32(..)"),
        (
            "y[i] = threefry2x32(1, 2, us[i], ids[i])",
            "dtype-mismatch 1:34 threefry2x32 takes u32, found i32; write u32(..)",
        ),
        (
            "y[i] = uniform(-1, us[i])",
            "dtype-mismatch 1:16 -1 does not fit u32 (0 to 4294967295); use a smaller number, a float, or u32(..), which wraps",
        ),
        ("y[i] = bitcast_u32(flags[i])", "dtype-mismatch 1:8 bitcast_u32 takes 32 bits, found bool; write u32(..)"),
        (
            "y = sum[k](flags[k])",
            "dtype-mismatch 1:12 sum takes numbers, found bool; convert it (f32(..), i32(..)), or use && and ||",
        ),
        (
            "y = argmax[k](flags[k])",
            "dtype-mismatch 1:15 argmax takes numbers, found bool; convert it (f32(..), i32(..)), or use && and ||",
        ),
        (
            "y[i] = pad(ids[i - 1], 1.5) + v[i]",
            "dtype-mismatch 1:24 \"ids\" is i32 and the value is f32; write i32(..)",
        ),
        ("y[i] = pad(us[i - 1], i) + v[i]", "dtype-mismatch 1:23 \"us\" is u32 and the value is i32; write u32(..)"),
        (
            "y[i] = pad(flags[i - 1], 0) || flags[i]",
            "dtype-mismatch 1:26 \"flags\" is bool and the value is i32; write bool(..)",
        ),
        (
            "y[i] = v[i] * 1e39",
            "dtype-mismatch 1:15 this number is too large for f32 (3.4028235e38 at most); write inf",
        ),
        (
            "y[i] = v[i] * 2 ** 64",
            "dtype-mismatch 1:15 the value of these literals does not fit 64 bits; use smaller ones, or floats (2.0 ** 100)",
        ),
        (
            "y[i] = us[i] + (3 - 4)",
            "dtype-mismatch 1:16 -1 does not fit u32 (0 to 4294967295); use a smaller number, a float, or u32(..), which wraps",
        ),
        (
            "y[i] = ids[i] + 2147483647 + 1 + (2147483647 + 1)",
            "dtype-mismatch 1:34 2147483648 does not fit i32 (-2147483648 to 2147483647); use a smaller number, a float, or i32(..), which wraps",
        ),
        (
            "y[i] = us[i] + (flags[i] ? 1 : -1)",
            "dtype-mismatch 1:32 -1 does not fit u32 (0 to 4294967295); use a smaller number, a float, or u32(..), which wraps",
        ),
    ]);
}
