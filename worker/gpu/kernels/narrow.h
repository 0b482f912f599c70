// The types that a processor does not compute with, widened to float and rounded
// back, to the bit as collectives/reduce does it (narrow.go there).
#ifndef BUSBW_NARROW_H
#define BUSBW_NARROW_H
#include "kernels.h"

static inline float as_float(u32 bits) { union { u32 u; float f; } x = {bits}; return x.f; }
static inline u32 as_bits(float f) { union { float f; u32 u; } x = {f}; return x.u; }
static inline double as_double(u64 bits) { union { u64 u; double f; } x = {bits}; return x.f; }
static inline u64 as_bits64(double f) { union { double f; u64 u; } x = {f}; return x.u; }

static inline float from_half(u32 h) { union { u16 u; _Float16 f; } x = {(u16)h}; return (float)x.f; }
static inline u32 to_half(float f) { union { _Float16 f; u16 u; } x = {(_Float16)f}; return x.u; }

static inline float from_bfloat16(u32 h) { return as_float(h << 16); }
static inline u32 to_bfloat16(float f) {
  u32 u = as_bits(f);
  if ((u & 0x7fffffff) > 0x7f800000) return u >> 16 | 0x40; // NaN, made quiet
  return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

// Rounds the bits of a float that is not negative to a format whose exponent has
// the bias and whose mantissa has so many bits.
static inline u32 round_bits(u32 bits, i32 bias, i32 mantissa) {
  i32 exponent = (i32)(bits >> 23) - 127 + bias;
  i32 drop = 23 - mantissa;
  if (exponent <= 0) {
    drop += 1 - exponent;
    if (drop > 24) return 0; // below half the smallest value
    bits = (bits & 0x7fffff) | 0x800000;
  } else {
    bits = (bits & 0x7fffff) | (u32)exponent << 23;
  }
  return (bits + (1u << (drop - 1)) - 1 + (bits >> drop & 1)) >> drop;
}

static inline float from_f8e5m2(u32 x) { return from_half(x << 8); }
static inline u32 to_f8e5m2(float f) {
  u32 bits = as_bits(f), sign = bits >> 24 & 0x80;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return sign | 0x7e; // NaN
  u32 r = round_bits(bits, 15, 2);
  return sign | (r < 0x7c ? r : 0x7c);
}

static inline float from_f8e4m3(u32 x) {
  u32 sign = (x & 0x80) << 24, rest = x & 0x7f;
  if (rest == 0x7f) return as_float(sign | 0x7fc00000);
  if (rest < 8) return as_float(sign | as_bits((float)rest * 0x1p-9f)); // zero or subnormal
  return as_float(sign | ((rest << 20) + (120u << 23)));
}
static inline u32 to_f8e4m3(float f) {
  u32 bits = as_bits(f), sign = bits >> 24 & 0x80;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return sign | 0x7f; // NaN
  u32 r = round_bits(bits, 7, 3);
  return sign | (r < 0x7e ? r : 0x7e); // there is no infinity
}
#endif
