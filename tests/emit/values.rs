//! Values at the edges, and how far a result is from what it should be.

/// Floats where something begins, ends or changes.
pub fn floats() -> Vec<f32> {
    let positive = [
        0.0,
        1.0,
        0.5,
        1.5,
        2.5,
        3.0,
        0.1,
        1e-3,
        std::f32::consts::PI,
        100.25,
        88.7,
        127.5,
        128.0,
        255.5,
        256.0,
        65504.0,
        65519.0,
        65520.0,
        8_388_607.5,
        16_777_216.0,
        2_147_483_520.0,
        2_147_483_648.0,
        4_294_967_040.0,
        4_294_967_296.0,
        1e10,
        1e30,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-30,
        1.0 - f32::EPSILON / 2.0,
        1.0 + f32::EPSILON,
        f32::INFINITY,
    ];
    let mut all: Vec<f32> = positive.iter().flat_map(|value| [*value, -*value]).collect();
    all.push(f32::NAN);
    all
}

/// Integers where something begins, ends or changes.
pub fn ints() -> Vec<i32> {
    vec![
        0,
        1,
        -1,
        2,
        -2,
        3,
        7,
        -7,
        31,
        32,
        33,
        -33,
        127,
        128,
        -128,
        -129,
        255,
        256,
        65537,
        16_777_217,
        -16_777_219,
        2_147_483_647,
        -2_147_483_648,
        -2_147_483_647,
        1_234_567_891,
    ]
}

/// Every pair.
pub fn pairs<T: Copy>(values: &[T]) -> (Vec<T>, Vec<T>) {
    values.iter().flat_map(|a| values.iter().map(|b| (*a, *b))).unzip()
}

/// Numbers spread over a range, the same in each run.
pub fn spread(least: f32, most: f32, count: usize) -> Vec<f32> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u32 << 24) as f32
    };
    (0..count).map(|_| least + (most - least) * next()).collect()
}

pub fn is_subnormal(value: f64) -> bool {
    value != 0.0 && value.abs() < f64::from(f32::MIN_POSITIVE)
}

/// The distance in units of the last place of an f32 that is near what is wanted.
pub fn ulps(got: f32, want: f64) -> f64 {
    let nearest = want as f32;
    if (got.is_nan() && want.is_nan()) || got == nearest {
        return 0.0;
    }
    // Subnormals may be flushed, also before they are rounded up to the least normal number.
    if want.abs() <= f64::from(f32::MIN_POSITIVE) && f64::from(got).abs() <= f64::from(f32::MIN_POSITIVE) {
        return 0.0;
    }
    if got.is_nan() || want.is_nan() || got.is_infinite() {
        return f64::INFINITY;
    }
    let exponent = want.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor().min(127.0);
    (f64::from(got) - want).abs() / (exponent - 23.0).exp2()
}
