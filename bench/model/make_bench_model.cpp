// Writes model files for speed measurements, so that every engine can be given the same one.
//   make_bench_model --from SOURCE.gguf --out FILE.gguf --type BF16|Q8_0|Q4_0 [--shape llama-1b] [--seed 1]
// Without --shape the weights of SOURCE are decoded and stored anew in the type. With --shape llama-1b the
// file has the shape of Llama-3.2-1B (16 layers, 2048 wide, 32 heads over 8 KV heads of 64, 8192 in the
// feed-forward network, 128,256 tokens, tied embeddings, rope base 500,000), random weights, and the tokenizer
// of SOURCE filled up with unused tokens: speed does not depend on the values.
// Norms stay F32; in a Q4_0 file the embeddings, which are the output matrix too, are Q8_0, because no engine
// ships them at four bits. Rows are encoded on all threads; at most 64 MiB of values are in memory.
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "bench/arguments.h"
#include "modelfile/gguf_writer.h"
#include "numeric/convert.h"
#include "numeric/float16.h"

namespace {

using namespace assay;

constexpr int kBlock = 32;  // values per block of Q8_0 and Q4_0
constexpr int64_t kChunkValues = int64_t{16} << 20;

struct Options {
  std::string from, out;
  BlockType type = BlockType::kBF16;
  bool llama_1b = false;
  uint64_t seed = 1;
};

std::byte* put_half(float value, std::byte* to) {
  const uint16_t bits = f32_to_f16_bits(value);
  std::memcpy(to, &bits, sizeof bits);
  return to + sizeof bits;
}

// As ggml's reference quantisers do: Q8_0 by the largest magnitude, Q4_0 by the value of largest magnitude,
// which lands on -8.
void encode_q8_0(const float* values, std::byte* to) {
  float largest = 0;
  for (int i = 0; i < kBlock; ++i) largest = std::max(largest, std::abs(values[i]));
  const float scale = largest / 127, inverse = scale > 0 ? 1 / scale : 0;
  to = put_half(scale, to);
  for (int i = 0; i < kBlock; ++i)
    to[i] = static_cast<std::byte>(static_cast<int8_t>(std::lround(values[i] * inverse)));
}

void encode_q4_0(const float* values, std::byte* to) {
  float extreme = 0;
  for (int i = 0; i < kBlock; ++i)
    if (std::abs(values[i]) > std::abs(extreme)) extreme = values[i];
  const float scale = extreme / -8, inverse = scale != 0 ? 1 / scale : 0;
  to = put_half(scale, to);
  const auto code = [&](int i) {
    return static_cast<unsigned>(std::min(15, static_cast<int>(values[i] * inverse + 8.5F)));
  };
  for (int i = 0; i < kBlock / 2; ++i) to[i] = static_cast<std::byte>(code(i) | code(i + kBlock / 2) << 4);
}

void encode_row(BlockType type, std::span<const float> row, std::byte* to) {
  const auto bytes = static_cast<size_t>(*stored_bytes(type, row.size()));
  if (type == BlockType::kF32 || type == BlockType::kBF16) {
    encode_floats(type == BlockType::kF32 ? Format::kF32 : Format::kBF16, row, {to, bytes});
    return;
  }
  const auto step = static_cast<size_t>(layout(type).bytes);
  for (size_t block = 0; block * kBlock < row.size(); ++block)
    (type == BlockType::kQ8_0 ? encode_q8_0 : encode_q4_0)(row.data() + block * kBlock, to + block * step);
}

// Nearly normal with the deviation that keeps activations of order one: sums of four uniform 16-bit numbers.
void random_row(uint64_t seed, std::span<float> row) {
  Random random(seed);
  const float scale = std::sqrt(3.0F / static_cast<float>(row.size())) / 65536;
  for (float& value : row) {
    const uint64_t bits = random.next();
    int32_t sum = -2 * 65535;
    for (int i = 0; i < 4; ++i) sum += static_cast<int32_t>(bits >> (16 * i) & 0xFFFF);
    value = static_cast<float>(sum) * scale;
  }
}

std::vector<Tensor> llama_1b_tensors(BlockType type, BlockType embedding_type) {
  constexpr int64_t kWidth = 2048, kKv = 512, kInner = 8192, kVocab = 128256;
  std::vector<Tensor> tensors;
  tensors.push_back({"token_embd.weight", embedding_type, {kVocab, kWidth}, {}});
  for (int layer = 0; layer < 16; ++layer) {
    const auto add = [&](const char* name, BlockType stored, std::vector<int64_t> shape) {
      tensors.push_back({fmt::format("blk.{}.{}.weight", layer, name), stored, std::move(shape), {}});
    };
    add("attn_norm", BlockType::kF32, {kWidth});
    add("attn_q", type, {kWidth, kWidth});
    add("attn_k", type, {kKv, kWidth});
    add("attn_v", type, {kKv, kWidth});
    add("attn_output", type, {kWidth, kWidth});
    add("ffn_norm", BlockType::kF32, {kWidth});
    add("ffn_gate", type, {kInner, kWidth});
    add("ffn_up", type, {kInner, kWidth});
    add("ffn_down", type, {kWidth, kInner});
  }
  tensors.push_back({"output_norm.weight", BlockType::kF32, {kWidth}, {}});
  return tensors;
}

using Metadata = std::vector<std::pair<std::string, MetadataValue>>;

void set(Metadata& metadata, const std::string& key, MetadataValue value) {
  for (auto& [name, old] : metadata) {
    if (name != key) continue;
    old = std::move(value);
    return;
  }
  metadata.emplace_back(key, std::move(value));
}

template <class T>
void pad_array(Metadata& metadata, const std::string& key, size_t n, T&& make) {
  for (auto& [name, old] : metadata) {
    if (name != key) continue;
    auto array = std::make_shared<MetadataArray>(*std::get<std::shared_ptr<const MetadataArray>>(old));
    using Element = std::decay_t<decltype(make(size_t{}))>;
    auto* values = std::get_if<std::vector<Element>>(&array->values);
    CHECK(values != nullptr);
    while (values->size() < n) values->push_back(make(values->size()));
    old = std::shared_ptr<const MetadataArray>(array);
  }
}

void describe_llama_1b(Metadata& metadata) {
  constexpr uint64_t kVocab = 128256;
  constexpr int64_t kUnusedToken = 5;
  const std::pair<const char*, MetadataValue> values[] = {
      {"general.name", std::string("random weights, shape of Llama 3.2 1B")},
      {"general.size_label", std::string("1B")},
      {"llama.block_count", uint64_t{16}},
      {"llama.context_length", uint64_t{131072}},
      {"llama.embedding_length", uint64_t{2048}},
      {"llama.feed_forward_length", uint64_t{8192}},
      {"llama.attention.head_count", uint64_t{32}},
      {"llama.attention.head_count_kv", uint64_t{8}},
      {"llama.rope.freq_base", 500000.0},
      {"llama.vocab_size", kVocab},
      {"llama.rope.dimension_count", uint64_t{64}},
  };
  for (const auto& [key, value] : values) set(metadata, key, value);
  pad_array(metadata, "tokenizer.ggml.tokens", kVocab,
            [](size_t id) { return fmt::format("<|unused_{}|>", id); });
  pad_array(metadata, "tokenizer.ggml.token_type", kVocab, [](size_t) { return kUnusedToken; });
}

uint64_t file_type_number(BlockType type) {  // llama.cpp's enum llama_ftype
  return type == BlockType::kBF16 ? 32 : type == BlockType::kQ8_0 ? 7 : 2;
}

class Maker {
 public:
  explicit Maker(const Options& options) : options_(options) {}

  Result<void> make() {
    ASSIGN_OR_RETURN(const Checkpoint source, Checkpoint::open(options_.from));
    GgufDocument document{.metadata = {source.metadata().begin(), source.metadata().end()}};
    set(document.metadata, "general.file_type", file_type_number(options_.type));
    const BlockType embedding_type =
        options_.type == BlockType::kQ4_0 ? BlockType::kQ8_0 : options_.type;
    if (options_.llama_1b) {
      describe_llama_1b(document.metadata);
      document.tensors = llama_1b_tensors(options_.type, embedding_type);
    } else {
      for (const Tensor& tensor : source.tensors()) {
        Tensor& copy = document.tensors.emplace_back(tensor);
        copy.data = {};
        copy.type = tensor.shape.size() < 2                ? BlockType::kF32
                    : tensor.name == "token_embd.weight" ? embedding_type
                                                           : options_.type;
      }
    }
    ASSIGN_OR_RETURN(GgufWriter writer, GgufWriter::create(options_.out, document));
    for (const Tensor& tensor : document.tensors)
      RETURN_IF_ERROR(write(tensor, options_.llama_1b ? nullptr : source.find(tensor.name), writer));
    return writer.finish();
  }

 private:
  // Rows of `from`, or random ones where there is none.
  Result<void> write(const Tensor& tensor, const Tensor* from, GgufWriter& writer) {
    const int64_t cols = tensor.shape.back(), rows = tensor.n_values() / cols;
    const auto n = static_cast<size_t>(cols);
    ASSIGN_OR_RETURN(const uint64_t row_bytes, stored_bytes(tensor.type, n));
    ++n_tensors_;
    for (int64_t first = 0; first < rows; first += std::max<int64_t>(kChunkValues / cols, 1)) {
      const int64_t chunk = std::min(rows - first, std::max<int64_t>(kChunkValues / cols, 1));
      encoded_.resize(static_cast<size_t>(chunk) * row_bytes);
      pool_.parallel_for(chunk, [&](int64_t i) {
        thread_local std::vector<float> row;
        row.assign(n, 1);
        if (from != nullptr) {
          const size_t stored = from->data.size() / static_cast<size_t>(rows);
          decode(from->type, from->data.subspan(static_cast<size_t>(first + i) * stored, stored), row);
        } else if (tensor.shape.size() > 1) {
          random_row(options_.seed + (n_tensors_ << 32) + static_cast<uint64_t>(first + i), row);
        }
        encode_row(tensor.type, row, encoded_.data() + static_cast<size_t>(i) * row_bytes);
      });
      RETURN_IF_ERROR(writer.append(encoded_));
    }
    return {};
  }

  const Options& options_;
  ThreadPool pool_;
  std::vector<std::byte> encoded_;
  uint64_t n_tensors_ = 0;
};

int usage(std::string_view what) {
  fmt::print(stderr,
             "make_bench_model: {}\nuse: make_bench_model --from SOURCE.gguf --out FILE.gguf --type "
             "BF16|Q8_0|Q4_0 [--shape llama-1b] [--seed 1]\n",
             what);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv);
  Options options{.from = arguments.text("--from", ""),
                  .out = arguments.text("--out", ""),
                  .llama_1b = arguments.has("--shape"),
                  .seed = static_cast<uint64_t>(arguments.integer("--seed", 1))};
  if (options.from.empty() || options.out.empty()) return usage("--from and --out are needed");
  if (options.llama_1b && arguments.text("--shape", "") != "llama-1b") return usage("unknown --shape");
  const std::string type = arguments.text("--type", "BF16");
  if (type != "BF16" && type != "Q8_0" && type != "Q4_0") return usage("unknown --type");
  options.type = type == "BF16"   ? BlockType::kBF16
                 : type == "Q8_0" ? BlockType::kQ8_0
                                  : BlockType::kQ4_0;
  if (const auto made = Maker(options).make(); !made) {
    fmt::print(stderr, "{}\n", made.error().message());
    return 1;
  }
  return 0;
}
