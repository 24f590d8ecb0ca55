// The table of this instruction set.

template <Format kFormat>
constexpr void set_float(KernelTable& table) {
  for (MatmulKernel& kernel : table.matmul[static_cast<int>(kFormat)]) kernel = matmul_float<kFormat>;
}

constexpr KernelTable make_table() {
  KernelTable t;
  t.isa = kIsa;
  set_float<Format::kF32>(t);
  set_float<Format::kF16>(t);
  set_float<Format::kBF16>(t);
  set_float<Format::kFp8E4M3>(t);
  set_float<Format::kFp8E5M2>(t);
  set_float<Format::kInt8>(t);
  set_float<Format::kInt4>(t);
  t.matmul[static_cast<int>(Format::kInt8)][activation_index(Format::kInt8)] = matmul_integer<Format::kInt8>;
  t.matmul[static_cast<int>(Format::kInt4)][activation_index(Format::kInt8)] = matmul_integer<Format::kInt4>;
  for (MatmulKernel& kernel : t.matmul_sparse) kernel = matmul_sparse_float;
  t.matmul_sparse[activation_index(Format::kInt8)] = matmul_sparse_integer;
  t.attention = attention;
  t.attention_split = attention_split;
  t.attention_merge = attention_merge;
  t.store_kv = store_kv;
  t.rms_scale = rms_scale;
  t.scale_by = scale_by;
  t.gate = gate;
  t.add = add_to;
  t.rope = rope;
  t.softmax = softmax;
  t.argmax = argmax;
  t.quantise = quantise;
  t.to_bf16 = to_bf16;
  return t;
}
