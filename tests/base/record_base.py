#!/usr/bin/env python3
"""Prints the numbers that random_test.cpp and stats_test.cpp compare with.

    python3 tests/base/record_base.py      # numpy 2.4.6, scipy 1.17.1

The generator is written here a second time, from the papers: xoshiro256** (Blackman and Vigna, 2018) seeded by
splitmix64 (Steele, Lea and Flood, 2014) of seed xor FNV-1a of the stream name.
"""
import numpy as np
from scipy import stats

MASK = (1 << 64) - 1


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def splitmix(seed):
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = seed
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
        yield z ^ (z >> 31)


def rotl(x, k):
    return ((x << k) | (x >> (64 - k))) & MASK


def xoshiro(seed, stream):
    mix = splitmix(seed ^ fnv1a(stream))
    s = [next(mix) for _ in range(4)]
    while True:
        result = rotl(s[1] * 5 & MASK, 7) * 9 & MASK
        t = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        yield result


for seed, stream in ((0, ""), (42, "weights"), (MASK, "x")):
    numbers = xoshiro(seed, stream)
    print(f"random {seed} '{stream}':", ", ".join(hex(next(numbers)) for _ in range(4)))

x = np.array([12.5, 3.25, 8.0, 1.75, 9.5, 4.0, 7.125, 2.5, 11.0, 6.75])
y = np.array([25.1, 7.3, 16.4, 3.2, 19.7, 8.4, 13.9, 5.6, 22.3, 13.0])
print("mean, sd:", repr(x.mean()), repr(x.std(ddof=1)))
print("quantiles:", [repr(float(np.quantile(x, q))) for q in (0, 0.05, 0.25, 0.5, 0.9, 0.99, 1)])
for n in (2, 3, 10, 31, 32, 41, 101):
    values = np.resize(x, n)
    low, high = stats.t.interval(0.95, n - 1, loc=values.mean(), scale=stats.sem(values))
    print(f"interval {n}:", repr(float(low)), repr(float(high)))
for k, n in ((0, 10), (3, 10), (10, 10), (995, 1000)):
    ci = stats.binomtest(k, n).proportion_ci(method="wilson")
    print(f"wilson {k}/{n}:", repr(float(ci.low)), repr(float(ci.high)))
fit = stats.linregress(x, y)
print("line:", repr(float(fit.intercept)), repr(float(fit.slope)), repr(float(fit.rvalue**2)))
