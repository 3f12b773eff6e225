fn lab_f(bits: u32) -> f32 { return bitcast<f32>(bits); }

fn lab_isnan(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }

fn lab_isinf(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) == 0x7f800000u; }

fn lab_div_i(a: i32, b: i32) -> i32 {
  return a / select(b, 1i, (b == 0i) | ((b == -1i) & (bitcast<u32>(a) == 0x80000000u)));
}

fn lab_div_u(a: u32, b: u32) -> u32 { return a / select(b, 1u, b == 0u); }

// By the quotient: drivers disagree on the sign that their own remainder has.
fn lab_rem_i(a: i32, b: i32) -> i32 {
  let d = select(b, 1i, (b == 0i) | (b == -1i));
  return a - (a / d) * d;
}

fn lab_rem_u(a: u32, b: u32) -> u32 { return a % select(b, 1u, b == 0u); }

fn lab_pow_u(base: u32, exponent: u32) -> u32 {
  var r = 1u;
  var x = base;
  var n = exponent;
  while (n != 0u) {
    r *= select(1u, x, (n & 1u) != 0u);
    x *= x;
    n >>= 1u;
  }
  return r;
}

fn lab_pow_i(base: i32, exponent: i32) -> i32 {
  let whole = bitcast<i32>(lab_pow_u(bitcast<u32>(base), bitcast<u32>(max(exponent, 0i))));
  let one = select(base, 1i, (exponent & 1i) == 0i);
  return select(whole, select(0i, one, (base == 1i) | (base == -1i)), exponent < 0i);
}

fn lab_pow_ui(base: u32, exponent: i32) -> u32 {
  let whole = lab_pow_u(base, bitcast<u32>(max(exponent, 0i)));
  return select(whole, select(0u, 1u, base == 1u), exponent < 0i);
}

fn lab_f_to_i(v: f32) -> i32 {
  let least = select(i32(v), -2147483647i - 1i, v <= -2.1474836e9f);
  return select(select(least, 2147483647i, v >= 2.1474836e9f), 0i, lab_isnan(v));
}

fn lab_f_to_u(v: f32) -> u32 {
  return select(select(u32(v), 4294967295u, v >= 4.2949673e9f), 0u, lab_isnan(v) | (v <= 0.0f));
}

// In halves that are exact, so that the sum rounds once, to nearest even, where f32() may round as it likes. Not elsewhere:
// Mesa adds what is added to the sum to the lower half first.
fn lab_i_to_f(v: i32) -> f32 {
  return select(f32(v >> 16u) * 65536.0f + f32(v & 0xffffi), f32(v), abs(v) <= 0x1000000i);
}

fn lab_u_to_f(v: u32) -> f32 { return select(f32(v >> 16u) * 65536.0f + f32(v & 0xffffu), f32(v), v <= 0x1000000u); }

// Above 65520 is infinity; below 2^-14 the mantissa counts multiples of 2^-24.
fn lab_f16(v: f32) -> f32 {
  let b = bitcast<u32>(v);
  let a = b & 0x7fffffffu;
  let small = bitcast<u32>(round(lab_f(a) * 16777216.0f) * lab_f(0x33800000u));
  let most = select((a + 0xfffu + ((a >> 13u) & 1u)) & 0xffffe000u, 0x7f800000u, a >= 0x477ff000u);
  let rounded = select(select(most, small, a < 0x38800000u), a, a > 0x7f800000u);
  return lab_f((b & 0x80000000u) | rounded);
}

fn lab_bf16(v: f32) -> f32 {
  let b = bitcast<u32>(v);
  return lab_f(select(b + 0x7fffu + ((b >> 16u) & 1u), b | 0x400000u, lab_isnan(v)) & 0xffff0000u);
}

// The other operand of a NaN.
fn lab_max(a: f32, b: f32) -> f32 { return select(a, b, (b > a) | lab_isnan(a)); }

fn lab_min(a: f32, b: f32) -> f32 { return select(a, b, (b < a) | lab_isnan(a)); }

// The same of a subgroup's values. What drivers make of a NaN is theirs, so they see none.
fn lab_subgroup_max(v: f32) -> f32 {
  return select(subgroupMax(select(v, lab_f(0xff800000u), lab_isnan(v))), v, subgroupAll(lab_isnan(v)));
}

fn lab_subgroup_min(v: f32) -> f32 {
  return select(subgroupMin(select(v, lab_f(0x7f800000u), lab_isnan(v))), v, subgroupAll(lab_isnan(v)));
}

fn lab_sign(v: f32) -> f32 {
  return select(select(select(0.0f, -1.0f, v < 0.0f), 1.0f, v > 0.0f), v, lab_isnan(v));
}

// Exact, by long division of the mantissas, eight bits at a time.
fn lab_fmod(x: f32, y: f32) -> f32 {
  let sign = bitcast<u32>(x) & 0x80000000u;
  let a = bitcast<u32>(x) & 0x7fffffffu;
  let b = bitcast<u32>(y) & 0x7fffffffu;
  let exponent = max(b >> 23u, 1u);
  let d = max(select(b, (b & 0x7fffffu) | 0x800000u, b >= 0x800000u), 1u);
  var r = select(a, (a & 0x7fffffu) | 0x800000u, a >= 0x800000u) % d;
  let is_nan = (a >= 0x7f800000u) | (b > 0x7f800000u) | (b == 0u);
  var n = select(max(a >> 23u, 1u) - exponent, 0u, is_nan | (a < b));
  while (n > 0u) {
    let step = min(n, 8u);
    r = (r << step) % d;
    n -= step;
  }
  let up = min(countLeadingZeros(r | 1u) - 8u, exponent - 1u);
  r <<= up;
  r = select(r, (r & 0x7fffffu) | ((exponent - up) << 23u), r >= 0x800000u);
  return lab_f(select(select(sign | r, bitcast<u32>(x), a < b), 0x7fc00000u, is_nan));
}

// The high word of a product.
fn lab_mul_high(a: u32, b: u32) -> u32 {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let one = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let other = (a & 0xffffu) * (b >> 16u) + (one & 0xffffu);
  return (a >> 16u) * (b >> 16u) + (one >> 16u) + (other >> 16u);
}
