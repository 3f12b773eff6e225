// y * 2^n, in two steps that stay in range.
fn lab_scale(y: f32, n: i32) -> f32 {
  let half = n >> 1u;
  return y * lab_f(u32(half + 127i) << 23u) * lab_f(u32(n - half + 127i) << 23u);
}

// exp(r) for |r| <= ln(2) / 2 (Cephes, expf).
fn lab_exp_near(r: f32) -> f32 {
  let p = ((((1.9875691e-4f * r + 1.3981999e-3f) * r + 8.333452e-3f) * r + 0.041665796f) * r
    + 0.16666666f) * r + 0.5f;
  return p * r * r + r + 1.0f;
}

fn lab_exp(v: f32) -> f32 {
  if (lab_isnan(v)) { return v; }
  if (v > 89.0f) { return lab_f(0x7f800000u); }
  if (v < -104.0f) { return 0.0f; }
  let n = round(v * 1.442695f);
  return lab_scale(lab_exp_near(v - n * 0.6933594f + n * 2.1219444e-4f), i32(n));
}

fn lab_exp2(v: f32) -> f32 {
  if (lab_isnan(v)) { return v; }
  if (v >= 128.0f) { return lab_f(0x7f800000u); }
  if (v < -150.0f) { return 0.0f; }
  let n = round(v);
  return lab_scale(lab_exp_near((v - n) * 0.6931472f), i32(n));
}

// The exponent and what the mantissa, between the roots of 1/2 and 2, has over 1; of a positive finite number.
fn lab_split(v: f32) -> vec2<f32> {
  var w = bitcast<u32>(v);
  var e = -127i;
  if (w < 0x800000u) {
    w = bitcast<u32>(f32(w));
    e = -276i;
  }
  w += 0x004afb0du;
  return vec2<f32>(f32(e + i32(w >> 23u)), lab_f((w & 0x7fffffu) + 0x3f3504f3u) - 1.0f);
}

// The part of log(1 + t) that is added to t (FreeBSD, logf); ln2 * e is added on the way.
fn lab_log_rest(t: f32, e: f32) -> f32 {
  let s = t / (2.0f + t);
  let z = s * s;
  let r = z * (0.6666666f + z * (0.40000972f + z * (0.28498787f + z * 0.24279079f)));
  let h = 0.5f * t * t;
  return s * (h + r) + e * 9.058001e-6f - h;
}

// What a logarithm is outside the positive finite numbers.
fn lab_log_edge(v: f32) -> f32 {
  let b = bitcast<u32>(v);
  if ((b & 0x7fffffffu) == 0u) { return lab_f(0xff800000u); }
  if (b == 0x7f800000u) { return v; }
  return lab_f(0x7fc00000u);
}

fn lab_is_positive(v: f32) -> bool { return bitcast<u32>(v) - 1u < 0x7f7fffffu; }

fn lab_log(v: f32) -> f32 {
  if (!lab_is_positive(v)) { return lab_log_edge(v); }
  let p = lab_split(v);
  return p.x * 0.6931381f + (p.y + lab_log_rest(p.y, p.x));
}

fn lab_log2(v: f32) -> f32 {
  if (!lab_is_positive(v)) { return lab_log_edge(v); }
  let p = lab_split(v);
  return p.x + (p.y + lab_log_rest(p.y, 0.0f)) * 1.442695f;
}

fn lab_log1p_small(u: f32) -> f32 { return u + lab_log_rest(u, 0.0f); }

// log(1 + u) for 0 <= u <= 1.
fn lab_log1p(u: f32) -> f32 {
  if (u < 0.4f) { return lab_log1p_small(u); }
  return lab_log(1.0f + u);
}

// Far from 0, x * 2 / pi modulo 4 in 96 bits (Payne and Hanek): the quadrant, and the rest as an angle.
fn lab_quadrant_far(v: f32) -> vec2<f32> {
  let b = bitcast<u32>(v);
  let m = (b & 0x7fffffu) | 0x800000u;
  let first = ((b >> 23u) & 0xffu) - 120u;
  let at = first >> 5u;
  let s = first & 31u;
  // The bits of 2 / pi.
  var table = array<u32, 8>(0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
    0xfe5163abu);
  var w = vec3<u32>(table[at], table[at + 1u], table[at + 2u]);
  if (s != 0u) {
    w = (w << vec3<u32>(s)) | (vec3<u32>(w.y, w.z, table[at + 3u]) >> vec3<u32>(32u - s));
  }
  let p2 = m * w.z;
  let p1 = m * w.y + lab_mul_high(m, w.z);
  let carry = select(0u, 1u, p1 < m * w.y);
  let p0 = m * w.x + lab_mul_high(m, w.y) + carry;
  var q = p0 >> 30u;
  var high = (p0 << 2u) | (p1 >> 30u);
  var low = (p1 << 2u) | (p2 >> 30u);
  let negative = high >= 0x80000000u;
  if (negative) {
    q += 1u;
    low = ~low;
    high = ~high;
  }
  var r = (f32(high) + f32(low) * 2.3283064e-10f) * 2.3283064e-10f * 1.5707964f;
  r = select(r, -r, negative != (v < 0.0f));
  return vec2<f32>(f32(select(q, 4u - (q & 3u), v < 0.0f) & 3u), r);
}

// The quadrant, 0 to 3, and the angle from its middle, at most pi / 4 away.
fn lab_quadrant(v: f32) -> vec2<f32> {
  if (abs(v) >= 8192.0f) { return lab_quadrant_far(v); }
  let k = round(v * 0.63661975f);
  let r = ((v - k * 1.5703125f) - k * 4.837513e-4f) - k * 7.54979e-8f;
  return vec2<f32>(f32(i32(k) & 3i), r);
}

fn lab_sin_near(r: f32) -> f32 {
  let z = r * r;
  return ((-1.9515296e-4f * z + 8.332161e-3f) * z - 0.16666655f) * z * r + r;
}

fn lab_cos_near(r: f32) -> f32 {
  let z = r * r;
  return ((2.4433157e-5f * z - 1.3887316e-3f) * z + 0.041666646f) * z * z - 0.5f * z + 1.0f;
}

// The sine of an angle that is so many quadrants further.
fn lab_sin_from(v: f32, quadrants: i32) -> f32 {
  if ((bitcast<u32>(v) & 0x7fffffffu) >= 0x7f800000u) { return lab_f(0x7fc00000u); }
  let p = lab_quadrant(v);
  let q = i32(p.x) + quadrants;
  let y = select(lab_sin_near(p.y), lab_cos_near(p.y), (q & 1i) != 0i);
  return select(y, -y, (q & 2i) != 0i);
}

fn lab_sin(v: f32) -> f32 {
  if (abs(v) < 1e-4f) { return v; }
  return lab_sin_from(v, 0i);
}

fn lab_cos(v: f32) -> f32 { return lab_sin_from(v, 1i); }

fn lab_tan(v: f32) -> f32 {
  if ((bitcast<u32>(v) & 0x7fffffffu) >= 0x7f800000u) { return lab_f(0x7fc00000u); }
  if (abs(v) < 1e-4f) { return v; }
  let p = lab_quadrant(v);
  let z = p.y * p.y;
  // Cephes, tanf.
  let t = (((((9.385402e-3f * z + 3.1199222e-3f) * z + 0.024430135f) * z + 0.05341128f) * z
    + 0.133388f) * z + 0.33333156f) * z * p.y + p.y;
  if ((i32(p.x) & 1i) != 0i) { return -1.0f / t; }
  return t;
}

// asin(x) for 0 <= x <= 1/2, with z = x^2 (Cephes, asinf).
fn lab_asin_near(x: f32, z: f32) -> f32 {
  return ((((0.0421632f * z + 0.024181312f) * z + 0.045470025f) * z + 0.074953005f) * z
    + 0.16666752f) * z * x + x;
}

fn lab_asin(v: f32) -> f32 {
  let a = abs(v);
  if (lab_isnan(v) || a > 1.0f) { return lab_f(0x7fc00000u); }
  if (a <= 0.5f) { return lab_asin_near(v, v * v); }
  let z = 0.5f * (1.0f - a);
  let y = 1.5707964f - 2.0f * lab_asin_near(sqrt(z), z);
  return select(y, -y, v < 0.0f);
}

fn lab_acos(v: f32) -> f32 {
  let a = abs(v);
  if (lab_isnan(v) || a > 1.0f) { return lab_f(0x7fc00000u); }
  if (a <= 0.5f) { return 1.5707964f - lab_asin_near(v, v * v); }
  let z = 0.5f * (1.0f - a);
  let y = 2.0f * lab_asin_near(sqrt(z), z);
  return select(y, 3.1415927f - y, v < 0.0f);
}

// Cephes, atanf.
fn lab_atan(v: f32) -> f32 {
  if (lab_isnan(v)) { return v; }
  let a = abs(v);
  var x = a;
  var y = 0.0f;
  if (a > 2.4142137f) {
    y = 1.5707964f;
    x = -1.0f / a;
    if (a > 1e30f) { x = 0.0f; }
  } else if (a > 0.41421357f) {
    y = 0.7853982f;
    x = (a - 1.0f) / (a + 1.0f);
  }
  let z = x * x;
  y += (((0.080537446f * z - 0.13877685f) * z + 0.19977711f) * z - 0.3333295f) * z * x + x;
  return lab_f(bitcast<u32>(y) | (bitcast<u32>(v) & 0x80000000u));
}

fn lab_atan2(y: f32, x: f32) -> f32 {
  if (lab_isnan(x)) { return x; }
  if (lab_isnan(y)) { return y; }
  let a = abs(y);
  let b = abs(x);
  let large = max(a, b);
  var r = 0.0f;
  if (lab_isinf(large)) {
    r = select(select(0.0f, 1.5707964f, a > b), 0.7853982f, a == b);
  } else if (large > 0.0f) {
    // Into the range in which quotients are accurate.
    let k = select(select(1.0f, 16777216.0f, large < 1e-30f), 0.0625f, large > 1e30f);
    r = lab_atan((min(a, b) * k) / (large * k));
    r = select(r, 1.5707964f - r, a > b);
  }
  r = select(r, 3.1415927f - r, bitcast<u32>(x) >= 0x80000000u);
  return lab_f(bitcast<u32>(r) | (bitcast<u32>(y) & 0x80000000u));
}

fn lab_sinh(v: f32) -> f32 {
  let a = abs(v);
  if (!(a >= 1.0f)) {
    let z = v * v;
    return ((2.0372191e-4f * z + 8.330284e-3f) * z + 0.16666716f) * z * v + v;
  }
  // In halves where the exponential alone would overflow.
  let e = lab_exp(select(a, 0.5f * a, a > 8e1f));
  let y = select(0.5f * e - 0.5f / e, 0.5f * e * e, a > 8e1f);
  return select(y, -y, v < 0.0f);
}

fn lab_cosh(v: f32) -> f32 {
  if (lab_isnan(v)) { return v; }
  let a = abs(v);
  let e = lab_exp(select(a, 0.5f * a, a > 8e1f));
  return select(0.5f * e + 0.5f / e, 0.5f * e * e, a > 8e1f);
}

// Cephes, tanhf.
fn lab_tanh(v: f32) -> f32 {
  if (lab_isnan(v)) { return v; }
  let a = abs(v);
  if (a < 0.625f) {
    let z = v * v;
    return ((((-5.7049887e-3f * z + 0.020639088f) * z - 0.053739715f) * z + 0.13331442f) * z
      - 0.3333328f) * z * v + v;
  }
  let y = 1.0f - 2.0f / (lab_exp(2.0f * min(a, 2e1f)) + 1.0f);
  return select(y, -y, v < 0.0f);
}

// erf(x) for |x| < 1 (Cephes, erff).
fn lab_erf_near(x: f32) -> f32 {
  let z = x * x;
  return x * ((((((7.8538615e-5f * z - 8.0101937e-4f) * z + 5.1883277e-3f) * z
    - 0.026853813f) * z + 0.112835854f) * z - 0.37612626f) * z + 1.1283791f);
}

// 1 - erf(x) for x >= 1 (Cephes, erfcf). The square in two parts, whose first is exact.
fn lab_erfc_far(x: f32) -> f32 {
  if (x > 10.5f) { return 0.0f; }
  let h = lab_f(bitcast<u32>(x) & 0xfffff000u);
  let e = lab_exp(-h * h) * lab_exp((h - x) * (h + x));
  let q = 1.0f / x;
  let y = q * q;
  var p = 0.0f;
  if (x < 2.0f) {
    p = (((((((0.0232682f * y - 0.13870394f) * y + 0.36874247f) * y
      - 0.5824733f) * y + 0.62100047f) * y - 0.49445152f) * y
      + 0.340488f) * y - 0.2741127f) * y + 0.56382596f;
  } else {
    p = ((((((-1.047766399936249e+1f * y + 1.297719955372516e+1f) * y - 7.4955187f) * y
      + 2.921019f) * y - 1.0152652f) * y + 0.42184633f) * y
      - 0.28207675f) * y + 0.5641895f;
  }
  return e * q * p;
}

fn lab_erf(v: f32) -> f32 {
  if (lab_isnan(v)) { return v; }
  let a = abs(v);
  if (a < 1.0f) { return lab_erf_near(v); }
  let y = 1.0f - lab_erfc_far(a);
  return select(y, -y, v < 0.0f);
}

fn lab_gelu(v: f32) -> f32 {
  if (lab_isnan(v)) { return v; }
  let t = v * 0.70710677f;
  if (abs(t) < 1.0f) { return 0.5f * v * (1.0f + lab_erf_near(t)); }
  if (v > 0.0f) { return 0.5f * v * (2.0f - lab_erfc_far(t)); }
  if (v < -15.0f) { return -0.0f; }
  return 0.5f * v * lab_erfc_far(-t);
}

fn lab_sigmoid(v: f32) -> f32 {
  let e = lab_exp(-abs(v));
  return select(e, 1.0f, v >= 0.0f) / (1.0f + e);
}

fn lab_gelu_tanh(v: f32) -> f32 {
  if (v < -2e2f) { return -0.0f; }
  return v * lab_sigmoid(1.5957692f * (v + 0.044715f * v * v * v));
}

fn lab_silu(v: f32) -> f32 {
  if (v < -2e2f) { return -0.0f; }
  if (v < -8e1f) {
    // In halves: the exponential is subnormal before the product is.
    let h = lab_exp(0.5f * v);
    return v * h * h;
  }
  return v * lab_sigmoid(v);
}

fn lab_softplus(v: f32) -> f32 {
  if (lab_isnan(v)) { return v; }
  return max(v, 0.0f) + lab_log1p(lab_exp(-abs(v)));
}

// |x|^y for x positive and finite, not 1, and y finite: the logarithm in two parts (FreeBSD, powf).
fn lab_pow_positive(x: f32, y: f32) -> f32 {
  var w = bitcast<u32>(x);
  var n = -127.0f;
  if (w < 0x800000u) {
    w = bitcast<u32>(f32(w));
    n = -276.0f;
  }
  n += f32(w >> 23u);
  w = (w & 0x7fffffu) | 0x3f800000u;
  var c = 1.0f;
  if (w >= 0x3fddb3d7u) {
    n += 1.0f;
    w -= 0x800000u;
  } else if (w > 0x3f9cc471u) {
    c = 1.5f;
  }
  let m = lab_f(w);
  let u = m - c;
  let v = 1.0f / (m + c);
  let s = u * v;
  let sh = lab_f(bitcast<u32>(s) & 0xfffff000u);
  let th = lab_f(bitcast<u32>(m + c) & 0xfffff000u);
  let tl = m - (th - c);
  let sl = v * ((u - sh * th) - sh * tl);
  let s2 = s * s;
  let r = s2 * s2 * (0.6f + s2 * (0.42857143f + s2 * (0.33333334f + s2 * (0.27272812f
    + s2 * (0.23066075f + s2 * 0.20697501f))))) + sl * (sh + s);
  let h2 = sh * sh;
  let ph = lab_f(bitcast<u32>(3.0f + h2 + r) & 0xfffff000u);
  let pl = r - ((ph - 3.0f) - h2);
  let a = sh * ph;
  let b = sl * ph + pl * s;
  let zh = lab_f(bitcast<u32>(a + b) & 0xfffff000u);
  let zl = b - (zh - a);
  let lh = 0.96191406f * zh;
  let ll = -1.17368574e-4f * zh + zl * 0.9617967f + select(0.0f, 1.5632208e-6f, c > 1.0f);
  let d = select(0.0f, 0.58496094f, c > 1.0f);
  let t1 = lab_f(bitcast<u32>(((lh + ll) + d) + n) & 0xfffff000u);
  let t2 = ll - (((t1 - n) - d) - lh);
  let yh = lab_f(bitcast<u32>(y) & 0xfffff000u);
  let low = (y - yh) * t1 + y * t2;
  let high = yh * t1;
  let z = high + low;
  if (lab_isnan(z) || abs(z) > 2e2f) {
    let grows = (x > 1.0f) == (y > 0.0f);
    return select(0.0f, lab_f(0x7f800000u), grows);
  }
  let k = round(z);
  return lab_scale(lab_exp_near(((high - k) + low) * 0.6931472f), i32(k));
}

fn lab_pow(x: f32, y: f32) -> f32 {
  if (y == 0.0f || x == 1.0f) { return 1.0f; }
  if (lab_isnan(x)) { return x; }
  if (lab_isnan(y)) { return y; }
  if (y == 1.0f) { return x; }
  if (y == 2.0f) { return x * x; }
  let a = abs(x);
  let whole = lab_isinf(y) || trunc(y) == y;
  let odd = whole && abs(y) < 16777216.0f && (i32(y) & 1i) != 0i;
  var r = 0.0f;
  if (a == 0.0f || lab_isinf(a) || lab_isinf(y)) {
    let grows = (a > 1.0f) == (y > 0.0f);
    r = select(0.0f, lab_f(0x7f800000u), grows);
    if (a == 1.0f) { r = 1.0f; }
  } else {
    if (x < 0.0f && !whole) { return lab_f(0x7fc00000u); }
    if (a == 1.0f) { r = 1.0f; } else { r = lab_pow_positive(a, y); }
  }
  return select(r, -r, odd && bitcast<u32>(x) >= 0x80000000u);
}

// Salmon et al. 2011: 20 rounds, the first word.
fn lab_threefry2x32(k0: u32, k1: u32, c0: u32, c1: u32) -> u32 {
  var keys = array<u32, 3>(k0, k1, k0 ^ k1 ^ 0x1bd11bdau);
  var even = vec4<u32>(13u, 15u, 26u, 6u);
  var odd = vec4<u32>(17u, 29u, 16u, 24u);
  var a = c0 + k0;
  var b = c1 + k1;
  for (var group = 0u; group < 5u; group++) {
    for (var i = 0u; i < 4u; i++) {
      let r = select(even[i], odd[i], (group & 1u) != 0u);
      a += b;
      b = ((b << r) | (b >> (32u - r))) ^ a;
    }
    a += keys[(group + 1u) % 3u];
    b += keys[(group + 2u) % 3u] + group + 1u;
  }
  return a;
}

fn lab_uniform(seed: u32, counter: u32) -> f32 {
  return f32(lab_threefry2x32(seed, 0u, counter, 0u) >> 8u) * lab_f(0x33800000u);
}

fn lab_normal(seed: u32, counter: u32) -> f32 {
  let v = f32(lab_threefry2x32(seed, 0u, counter, 1u) >> 8u) * lab_f(0x33800000u);
  return sqrt(-2.0f * lab_log(1.0f - lab_uniform(seed, counter))) * lab_cos(6.2831855f * v);
}
