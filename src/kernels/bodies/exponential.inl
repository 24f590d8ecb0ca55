// exp and what is made of it.

// e^x within 2 ulp for results that are normal; below 2^-126 the error is one subnormal step, 0 and infinity
// at the ends, NaN stays NaN. Cody-Waite reduction x = k ln 2 + r with |r| <= ln(2) / 2, then Taylor to r^7 /
// 5040, whose remainder is below 2^-27 relative.
KERNEL_INLINE Lanes exponential(const Lanes& x) {
  const Lanes kLog2E = splat(0x1.715476p0F);
  const Lanes kLn2High = splat(0x1.62e4p-1F);  // 15 bits: k * high is exact
  const Lanes kLn2Low = splat(0x1.7f7d1cp-20F);
  // Beyond these the result is infinite or zero whatever x is; NaN passes through both.
  const Lanes bounded = min(splat(90.0F), max(splat(-105.0F), x));
  const Lanes k = round_even(mul(bounded, kLog2E));
  Lanes r = sub(bounded, mul(k, kLn2High));
  r = sub(r, mul(k, kLn2Low));
  Lanes p = splat(1.0F / 5040);
  p = fma(p, r, splat(1.0F / 720));
  p = fma(p, r, splat(1.0F / 120));
  p = fma(p, r, splat(1.0F / 24));
  p = fma(p, r, splat(1.0F / 6));
  p = fma(p, r, splat(0.5F));
  p = fma(mul(p, r), r, r);
  return scale_by_power(add(p, splat(1.0F)), k);
}

// 1 - 2 / (e^2x + 1); absolute error a few 2^-24.
KERNEL_INLINE Lanes hyperbolic_tangent(const Lanes& x) {
  const Lanes one = splat(1.0F);
  return sub(one, div(splat(2.0F), add(exponential(add(x, x)), one)));
}

KERNEL_INLINE Lanes silu(const Lanes& x) {
  const Lanes one = splat(1.0F);
  return div(x, add(one, exponential(sub(splat(0.0F), x))));
}

// The tanh approximation (Hendrycks and Gimpel, 2016), as x * sigmoid(2u): no cancellation for negative x.
KERNEL_INLINE Lanes gelu(const Lanes& x) {
  const Lanes cubic = fma(mul(mul(x, x), splat(0.044715F)), x, x);
  const Lanes minus_2u = mul(cubic, splat(-2 * 0.797884560802865355879892119869F));
  return div(x, add(splat(1.0F), exponential(minus_2u)));
}
