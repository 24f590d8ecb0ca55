"""Prints a GGUF file as gguf-py (the reference reader of llama.cpp) sees it; for gguf_writer_test.cpp."""
import sys

import gguf

reader = gguf.GGUFReader(sys.argv[1])
for field in reader.fields.values():
    if field.name.startswith("GGUF."):
        continue
    print(field.name, *[kind.name for kind in field.types], repr(field.contents()))
for tensor in reader.tensors:
    print(tensor.name, tensor.tensor_type.name, [int(n) for n in tensor.shape], [float(x) for x in tensor.data.reshape(-1)])
