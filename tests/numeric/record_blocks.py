#!/usr/bin/env python3
"""Writes data/blocks.txt: random blocks of every type and the values that independent numpy code decodes them to.

    PYTHONPATH=llama.cpp/gguf-py python3 tests/numeric/record_blocks.py     # numpy 2.4.6, ml_dtypes 0.6.0

GGML types are decoded by gguf.quants.dequantize (llama.cpp's numpy reference), the others by numpy and ml_dtypes.
One line per record: type, block bytes in hex, values as little-endian f32 bits in hex. Seeded. Half of the blocks are
random bytes throughout, so that their f16 scales may be subnormal, infinite or NaN; in the other half the scales are
ordinary numbers. An MXFP4 scale byte of 255 is left out: the OCP specification makes it NaN, the reference ignores that.
"""
import pathlib

import ml_dtypes
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

F16_FIELDS = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
}
PLAIN = {
    "F32": "<f4", "F16": "<f2", "BF16": ml_dtypes.bfloat16, "F64": "<f8", "I8": "i1", "I16": "<i2", "I32": "<i4",
    "I64": "<i8", "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
}

rng = np.random.default_rng(4711)
lines = []


def record(kind, raw, values):
    lines.append(f"{kind} {raw.tobytes().hex()} {values.astype('<f4').tobytes().hex()}")


with np.errstate(all="ignore"):
    for kind, fields in F16_FIELDS.items():
        n_values, n_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
        n_blocks = 4 if n_values == 256 else 16
        blocks = rng.integers(0, 256, (n_blocks, n_bytes), dtype=np.uint8)
        for block in blocks[: n_blocks // 2]:
            for at in fields:
                block[at : at + 2] = np.array([rng.normal() * 0.01], "<f2").view(np.uint8)
        if kind == "MXFP4":
            blocks[:, 0] = np.minimum(blocks[:, 0], 254)
            blocks[:3, 0] = [0, 1, 127]
        values = dequantize(blocks.reshape(1, -1), GGMLQuantizationType[kind])
        record(kind, blocks, values)
    for kind, dtype in PLAIN.items():
        raw = rng.integers(0, 256, 64 * np.dtype(dtype).itemsize, dtype=np.uint8)
        record(kind, raw, raw.view(dtype).astype(np.float32))
    doubles = (rng.normal(size=32) * np.exp2(rng.uniform(-150, 130, 32))).astype("<f8")
    record("F64", doubles, doubles.astype(np.float32))

path = pathlib.Path(__file__).parent / "data" / "blocks.txt"
path.write_text("\n".join(lines) + "\n")
