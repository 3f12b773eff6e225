//! The value of a float's digits, by whoever has a parser already: the browser's is exact, too, and the tables of Rust's
//! are 10 KB that do not compress.

/// The value that is nearest to the digits: at least one, then perhaps a point, more digits and an exponent.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn float(digits: &str) -> f64 {
    digits.parse().unwrap_or(f64::NAN)
}

/// The value that is nearest to the digits: at least one, then perhaps a point, more digits and an exponent.
#[cfg(target_arch = "wasm32")]
pub(crate) fn float(digits: &str) -> f64 {
    js_sys::Number::parse_float(digits)
}
