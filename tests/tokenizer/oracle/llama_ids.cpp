// Prints llama.cpp's ids for strings: the reference of record_ids.py for GGUF vocabularies. Not part of the
// tests' build; LLAMA is a built llama.cpp:
//   g++ -O2 -std=c++17 -I$LLAMA/include -I$LLAMA/ggml/include llama_ids.cpp -o llama_ids -L$LLAMA/build/bin
//       -Wl,-rpath,$LLAMA/build/bin -lllama -lggml -lggml-base
//   ./llama_ids vocabulary.gguf [pre-tokenizer] < strings   (each string in hexadecimal on its line)
// With the second argument the vocabulary's own tokenizer.ggml.pre is overridden.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "llama.h"

int main(int argc, char** argv) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  llama_model_kv_override overrides[2] = {};
  if (argc > 2) {
    overrides[0].tag = LLAMA_KV_OVERRIDE_TYPE_STR;
    std::strcpy(overrides[0].key, "tokenizer.ggml.pre");
    std::strcpy(overrides[0].val_str, argv[2]);
    params.kv_overrides = overrides;
  }
  llama_model* model = llama_model_load_from_file(argv[1], params);
  if (model == nullptr) return 1;
  const llama_vocab* vocab = llama_model_get_vocab(model);
  for (std::string line; std::getline(std::cin, line);) {
    std::string text;
    for (size_t i = 0; i + 1 < line.size(); i += 2) {
      text.push_back(static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16)));
    }
    std::vector<llama_token> ids(text.size() * 4 + 16);
    const int count = llama_tokenize(vocab, text.data(), static_cast<int>(text.size()), ids.data(),
                                     static_cast<int>(ids.size()), false, true);
    for (int i = 0; i < count; ++i) std::printf("%s%d", i == 0 ? "" : " ", ids[i]);
    std::printf("\n");
  }
  return 0;
}
