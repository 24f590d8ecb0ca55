"""Wrote gguf_py.gguf (gguf 0.19, numpy 2): a small file of the reference writer, for gguf_reader_test.cpp.

python3 write_with_gguf_py.py gguf_py.gguf
"""
import sys

import gguf
import numpy as np

writer = gguf.GGUFWriter(sys.argv[1], "llama")
writer.add_name("tiny")
writer.add_block_count(2)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_rope_freq_base(10000.0)
writer.add_uint8("x.u8", 255)
writer.add_int8("x.i8", -128)
writer.add_uint16("x.u16", 65535)
writer.add_int16("x.i16", -32768)
writer.add_int32("x.i32", -(2**31))
writer.add_uint64("x.u64", 2**64 - 1)
writer.add_int64("x.i64", -(2**63))
writer.add_float64("x.f64", 0.1)
writer.add_bool("x.bool", True)
writer.add_array("x.texts", ["one", "zwei", "\u4e09"])
writer.add_array("x.integers", [1, -2, 3])
writer.add_array("x.numbers", [0.5, -0.25])
writer.add_array("x.flags", [True, False])
rows = np.arange(64, dtype=np.float32).reshape(2, 32)
writer.add_tensor("f32.weight", rows)
writer.add_tensor("f16.weight", rows.astype(np.float16))
writer.add_tensor("q8.weight", gguf.quants.quantize(rows, gguf.GGMLQuantizationType.Q8_0),
                  raw_dtype=gguf.GGMLQuantizationType.Q8_0)
writer.add_tensor("cube.weight", np.arange(24, dtype=np.int32).reshape(2, 3, 4))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
