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

// The nearest whole number of powers is what is left in the mantissa of a sum: drivers take long to round, and to convert what
// may be out of range. What is large is infinite, what is NaN stays so.
fn lab_exp(v: f32) -> f32 {
  let n = bitcast<i32>(v * 1.442695f + 12582912.0f) - 0x4b400000i;
  let k = f32(n);
  let y = bitcast<u32>(lab_exp_near(v - k * 0.6933594f + k * 2.1219444e-4f)) + (u32(n) << 23u);
  return select(select(v * 3e38f, lab_f(y), v < 88.72284f), 0.0f, v < -87.33654f);
}

fn lab_exp2(v: f32) -> f32 {
  let n = round(v);
  let y = lab_scale(lab_exp_near((v - n) * 0.6931472f), i32(n));
  return select(select(select(y, 0.0f, v < -150.0f), lab_f(0x7f800000u), v >= 128.0f), v, lab_isnan(v));
}

// The exponent and what the mantissa, between the roots of 1/2 and 2, has over 1; of a positive finite number.
fn lab_split(v: f32) -> vec2<f32> {
  let b = bitcast<u32>(v);
  let w = select(b, bitcast<u32>(f32(b)), b < 0x800000u) + 0x004afb0du;
  let e = select(-127i, -276i, b < 0x800000u);
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

// A logarithm, with what it is outside the positive finite numbers.
fn lab_log_of(v: f32, y: f32) -> f32 {
  let b = bitcast<u32>(v);
  let edge = select(lab_f(0x7fc00000u), v, b == 0x7f800000u);
  return select(select(edge, lab_f(0xff800000u), (b & 0x7fffffffu) == 0u), y, b - 1u < 0x7f7fffffu);
}

fn lab_log(v: f32) -> f32 {
  let p = lab_split(v);
  return lab_log_of(v, p.x * 0.6931381f + (p.y + lab_log_rest(p.y, p.x)));
}

fn lab_log2(v: f32) -> f32 {
  let p = lab_split(v);
  return lab_log_of(v, p.x + (p.y + lab_log_rest(p.y, 0.0f)) * 1.442695f);
}

// log(1 + u) for 0 <= u <= 1.
fn lab_log1p(u: f32) -> f32 {
  return select(lab_log(1.0f + u), u + lab_log_rest(u, 0.0f), u < 0.4f);
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
  let next = vec3<u32>(w.y, w.z, table[at + 3u]) >> vec3<u32>((32u - s) & 31u);
  w = (w << vec3<u32>(s)) | select(vec3<u32>(0u), next, s != 0u);
  let p2 = m * w.z;
  let p1 = m * w.y + lab_mul_high(m, w.z);
  let carry = select(0u, 1u, p1 < m * w.y);
  let p0 = m * w.x + lab_mul_high(m, w.y) + carry;
  var high = (p0 << 2u) | (p1 >> 30u);
  let negative = high >= 0x80000000u;
  let flip = select(0u, 0xffffffffu, negative);
  let q = (p0 >> 30u) - flip;
  let low = ((p1 << 2u) | (p2 >> 30u)) ^ flip;
  high ^= flip;
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

// Whether it is infinite, or NaN.
fn lab_is_wild(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) >= 0x7f800000u; }

// The sine of an angle that is so many quadrants further.
fn lab_sin_from(v: f32, quadrants: i32) -> f32 {
  let p = lab_quadrant(v);
  let q = i32(p.x) + quadrants;
  let y = select(lab_sin_near(p.y), lab_cos_near(p.y), (q & 1i) != 0i);
  return select(select(y, -y, (q & 2i) != 0i), lab_f(0x7fc00000u), lab_is_wild(v));
}

fn lab_sin(v: f32) -> f32 { return select(lab_sin_from(v, 0i), v, abs(v) < 1e-4f); }

fn lab_cos(v: f32) -> f32 { return lab_sin_from(v, 1i); }

fn lab_tan(v: f32) -> f32 {
  let p = lab_quadrant(v);
  let z = p.y * p.y;
  // Cephes, tanf.
  let t = (((((9.385402e-3f * z + 3.1199222e-3f) * z + 0.024430135f) * z + 0.05341128f) * z
    + 0.133388f) * z + 0.33333156f) * z * p.y + p.y;
  let y = select(t, -1.0f / t, (i32(p.x) & 1i) != 0i);
  return select(select(y, v, abs(v) < 1e-4f), lab_f(0x7fc00000u), lab_is_wild(v));
}

// asin(x) for 0 <= x <= 1/2, with z = x^2 (Cephes, asinf).
fn lab_asin_near(x: f32, z: f32) -> f32 {
  return ((((0.0421632f * z + 0.024181312f) * z + 0.045470025f) * z + 0.074953005f) * z
    + 0.16666752f) * z * x + x;
}

fn lab_asin(v: f32) -> f32 {
  let a = abs(v);
  let z = 0.5f * (1.0f - a);
  let y = 1.5707964f - 2.0f * lab_asin_near(sqrt(z), z);
  let near = select(select(y, -y, v < 0.0f), lab_asin_near(v, v * v), a <= 0.5f);
  return select(near, lab_f(0x7fc00000u), lab_isnan(v) | (a > 1.0f));
}

fn lab_acos(v: f32) -> f32 {
  let a = abs(v);
  let z = 0.5f * (1.0f - a);
  let y = 2.0f * lab_asin_near(sqrt(z), z);
  let near = select(select(y, 3.1415927f - y, v < 0.0f), 1.5707964f - lab_asin_near(v, v * v), a <= 0.5f);
  return select(near, lab_f(0x7fc00000u), lab_isnan(v) | (a > 1.0f));
}

// Cephes, atanf.
fn lab_atan(v: f32) -> f32 {
  let a = abs(v);
  let far = a > 2.4142137f;
  let middle = a > 0.41421357f;
  let x = select(select(a, (a - 1.0f) / (a + 1.0f), middle), select(-1.0f / a, 0.0f, a > 1e30f), far);
  let z = x * x;
  let y = select(select(0.0f, 0.7853982f, middle), 1.5707964f, far)
    + ((((0.080537446f * z - 0.13877685f) * z + 0.19977711f) * z - 0.3333295f) * z * x + x);
  return select(lab_f(bitcast<u32>(y) | (bitcast<u32>(v) & 0x80000000u)), v, lab_isnan(v));
}

fn lab_atan2(y: f32, x: f32) -> f32 {
  let a = abs(y);
  let b = abs(x);
  let large = max(a, b);
  // Into the range in which quotients are accurate.
  let k = select(select(1.0f, 16777216.0f, large < 1e-30f), 0.0625f, large > 1e30f);
  var r = lab_atan((min(a, b) * k) / (large * k));
  r = select(0.0f, select(r, 1.5707964f - r, a > b), large > 0.0f);
  r = select(r, select(select(0.0f, 1.5707964f, a > b), 0.7853982f, a == b), lab_isinf(large));
  r = select(r, 3.1415927f - r, bitcast<u32>(x) >= 0x80000000u);
  r = lab_f(bitcast<u32>(r) | (bitcast<u32>(y) & 0x80000000u));
  return select(select(r, y, lab_isnan(y)), x, lab_isnan(x));
}

fn lab_sinh(v: f32) -> f32 {
  let a = abs(v);
  let z = v * v;
  let near = ((2.0372191e-4f * z + 8.330284e-3f) * z + 0.16666716f) * z * v + v;
  // In halves where the exponential alone would overflow.
  let e = lab_exp(select(a, 0.5f * a, a > 8e1f));
  let y = select(0.5f * e - 0.5f / e, 0.5f * e * e, a > 8e1f);
  return select(near, select(y, -y, v < 0.0f), a >= 1.0f);
}

fn lab_cosh(v: f32) -> f32 {
  let a = abs(v);
  let e = lab_exp(select(a, 0.5f * a, a > 8e1f));
  return select(select(0.5f * e + 0.5f / e, 0.5f * e * e, a > 8e1f), v, lab_isnan(v));
}

// Cephes, tanhf.
fn lab_tanh(v: f32) -> f32 {
  let a = abs(v);
  let z = v * v;
  let near = ((((-5.7049887e-3f * z + 0.020639088f) * z - 0.053739715f) * z + 0.13331442f) * z
    - 0.3333328f) * z * v + v;
  let y = 1.0f - 2.0f / (lab_exp(2.0f * min(a, 2e1f)) + 1.0f);
  return select(select(select(y, -y, v < 0.0f), near, a < 0.625f), v, lab_isnan(v));
}

// erf(x) for |x| < 1 (Cephes, erff).
fn lab_erf_near(x: f32) -> f32 {
  let z = x * x;
  return x * ((((((7.8538615e-5f * z - 8.0101937e-4f) * z + 5.1883277e-3f) * z
    - 0.026853813f) * z + 0.112835854f) * z - 0.37612626f) * z + 1.1283791f);
}

// 1 - erf(x) for x >= 1 (Cephes, erfcf). The square in two parts, whose first is exact.
fn lab_erfc_far(x: f32) -> f32 {
  let h = lab_f(bitcast<u32>(x) & 0xfffff000u);
  let e = lab_exp(-h * h) * lab_exp((h - x) * (h + x));
  let q = 1.0f / x;
  let y = q * q;
  let near = (((((((0.0232682f * y - 0.13870394f) * y + 0.36874247f) * y
    - 0.5824733f) * y + 0.62100047f) * y - 0.49445152f) * y
    + 0.340488f) * y - 0.2741127f) * y + 0.56382596f;
  let far = ((((((-1.047766399936249e+1f * y + 1.297719955372516e+1f) * y - 7.4955187f) * y
    + 2.921019f) * y - 1.0152652f) * y + 0.42184633f) * y
    - 0.28207675f) * y + 0.5641895f;
  return select(e * q * select(far, near, x < 2.0f), 0.0f, x > 10.5f);
}

fn lab_erf(v: f32) -> f32 {
  let a = abs(v);
  let y = 1.0f - lab_erfc_far(a);
  return select(select(select(y, -y, v < 0.0f), lab_erf_near(v), a < 1.0f), v, lab_isnan(v));
}

fn lab_gelu(v: f32) -> f32 {
  let t = v * 0.70710677f;
  let far = lab_erfc_far(abs(t));
  let y = select(select(far, 2.0f - far, v > 0.0f), 1.0f + lab_erf_near(t), abs(t) < 1.0f);
  return select(select(0.5f * v * y, -0.0f, v < -15.0f), v, lab_isnan(v));
}

fn lab_sigmoid(v: f32) -> f32 {
  let e = lab_exp(-abs(v));
  return select(e, 1.0f, v >= 0.0f) / (1.0f + e);
}

fn lab_gelu_tanh(v: f32) -> f32 {
  return select(v * lab_sigmoid(1.5957692f * (v + 0.044715f * v * v * v)), -0.0f, v < -2e2f);
}

fn lab_silu(v: f32) -> f32 {
  // In halves far out: the exponential is subnormal before the product is.
  let is_far = v < -8e1f;
  let e = lab_exp(select(-abs(v), 0.5f * v, is_far));
  let y = v * (select(e, 1.0f, v >= 0.0f) / (1.0f + e));
  return select(select(y, v * e * e, is_far), -0.0f, v < -2e2f);
}

fn lab_softplus(v: f32) -> f32 {
  return select(max(v, 0.0f) + lab_log1p(lab_exp(-abs(v))), v, lab_isnan(v));
}

// |x|^y for x positive and finite, not 1, and y finite: the logarithm in two parts (FreeBSD, powf).
fn lab_pow_positive(x: f32, y: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let all = select(bits, bitcast<u32>(f32(bits)), bits < 0x800000u);
  let w = (all & 0x7fffffu) | 0x3f800000u;
  let up = w >= 0x3fddb3d7u;
  let n = select(-127.0f, -276.0f, bits < 0x800000u) + f32(all >> 23u) + select(0.0f, 1.0f, up);
  let c = select(1.0f, 1.5f, (w > 0x3f9cc471u) & !up);
  let m = lab_f(select(w, w - 0x800000u, up));
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
  let k = round(z);
  let near = lab_scale(lab_exp_near(((high - k) + low) * 0.6931472f), i32(k));
  let far = select(0.0f, lab_f(0x7f800000u), (x > 1.0f) == (y > 0.0f));
  return select(near, far, lab_isnan(z) | (abs(z) > 2e2f));
}

fn lab_pow(x: f32, y: f32) -> f32 {
  let a = abs(x);
  let whole = lab_isinf(y) | (trunc(y) == y);
  let odd = whole & (abs(y) < 16777216.0f) & ((i32(y) & 1i) != 0i);
  let is_edge = (a == 0.0f) | lab_isinf(a) | lab_isinf(y);
  let edge = select(0.0f, lab_f(0x7f800000u), (a > 1.0f) == (y > 0.0f));
  var r = select(select(lab_pow_positive(a, y), edge, is_edge), 1.0f, a == 1.0f);
  r = select(r, -r, odd & (bitcast<u32>(x) >= 0x80000000u));
  r = select(r, lab_f(0x7fc00000u), (x < 0.0f) & !whole & !is_edge);
  r = select(select(r, x * x, y == 2.0f), x, y == 1.0f);
  r = select(select(r, y, lab_isnan(y)), x, lab_isnan(x));
  return select(r, 1.0f, (y == 0.0f) | (x == 1.0f));
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
