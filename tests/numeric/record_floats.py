#!/usr/bin/env python3
"""Writes data/floats.txt: f32 bit patterns and what numpy and ml_dtypes round them to.

    pip install numpy==2.4.6 ml_dtypes==0.6.0 && python3 tests/numeric/record_floats.py

Columns, in hexadecimal: f32 bits, float16, bfloat16, float8_e4m3fn, float8_e5m2. Seeded; no NaN inputs, as libraries
differ in the payload they keep.
"""
import pathlib

import ml_dtypes
import numpy as np

rng = np.random.default_rng(20260731)
bits = rng.integers(0, 1 << 32, 1000, dtype=np.uint32)  # anything at all
# Values near the fp8 and f16 ranges: log-uniform over 2^-28 .. 2^18, half of them cut to few bits so that ties occur.
near = (np.exp2(rng.uniform(-28, 18, 2000)) * rng.choice([-1, 1], 2000)).astype(np.float32)
near_bits = near.view(np.uint32).copy()
near_bits[:500] &= 0xFFF00000
near_bits[500:1000] &= 0xFFF80000
near_bits[1000:1500] &= 0xFFFFF000
values = np.concatenate([bits, near_bits]).view(np.float32)
values[np.isnan(values)] = np.float32(1.0625)

with np.errstate(over="ignore", invalid="ignore"):
    columns = [
        values.view(np.uint32),
        values.astype(np.float16).view(np.uint16),
        values.astype(ml_dtypes.bfloat16).view(np.uint16),
        values.astype(ml_dtypes.float8_e4m3fn).view(np.uint8),
        values.astype(ml_dtypes.float8_e5m2).view(np.uint8),
    ]
path = pathlib.Path(__file__).parent / "data" / "floats.txt"
with path.open("w") as out:
    for row in zip(*columns):
        out.write(" ".join(f"{int(value):x}" for value in row) + "\n")
