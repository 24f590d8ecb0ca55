#include "kernels/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "base/file.h"
#include "kernels/activations.h"
#include "kernels/packed_matrix.h"
#include "kernels/work_split.h"

namespace assay {
namespace {

constexpr int64_t kRowCandidates[] = {132, 66, 264};
constexpr int64_t kTileCandidates[] = {12, 6, 24};
constexpr double kClearly = 1.1;  // times faster
constexpr int kRuns = 4;

// A product of many rows, of a small model's shape.
struct Product {
  static constexpr int64_t kRows = 264, kInputs = 576, kOutputs = 768;
  PackedMatrix weights;
  ActivationBuffer buffer;
  ActivationView input;
  std::vector<float> output = std::vector<float>(static_cast<size_t>(kRows * kOutputs));
};

// Values do not matter to speed as long as they are normal numbers.
Result<Product> make_product(const KernelTable& table, Format format) {
  Product p;
  std::vector<float> values(static_cast<size_t>(Product::kOutputs * Product::kInputs));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 255) / 128 - 1;
  if (format == Format::kInt8) {
    ASSIGN_OR_RETURN(const IntegerGroups groups, quantise_groups(values, Product::kOutputs, Product::kInputs,
                                                                 format, 32, GroupScheme::kSymmetric));
    ASSIGN_OR_RETURN(p.weights, pack_integers(groups));
  } else {
    ASSIGN_OR_RETURN(p.weights, pack_floats(values, Product::kOutputs, Product::kInputs, format));
  }
  ASSIGN_OR_RETURN(p.buffer, ActivationBuffer::create(Product::kRows, Product::kInputs));
  const ActivationBuffer::Mutable m = p.buffer.shape_as(format, Product::kRows, Product::kInputs);
  for (int64_t r = 0; r < Product::kRows; ++r) {
    const float* row = values.data() + r * Product::kInputs;
    if (format == Format::kInt8) {
      table.quantise(row, m.stride, static_cast<int8_t*>(m.values) + r * m.stride,
                     m.scales + r * m.stride / kActivationGroup, m.sums + r * m.stride / 16);
    } else {
      table.to_bf16(row, m.stride, static_cast<uint16_t*>(m.values) + r * m.stride);
    }
  }
  p.input = p.buffer.view();
  return p;
}

// Seconds of the fastest run.
double time_product(Product& p, MatmulKernel kernel, const Tuning& tuning) {
  const MatmulTask task{&p.weights, p.input, p.output.data(), Product::kOutputs, false, nullptr};
  const MatmulGrid grid = cut_matmul(task, p.weights.n_tiles(), 1, tuning);
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < grid.n_blocks(); ++i) kernel(task, grid.block(i));
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

std::string identity(const CpuInfo& cpu, Isa isa) {
  return fmt::format("cpu {} {} {} {} {}\nisa {}\n", cpu.vendor, cpu.family, cpu.model_number, cpu.stepping,
                     cpu.model, name(isa));
}

std::filesystem::path tuning_path(const CpuInfo& cpu, Isa isa) {
  return assay_home() / "tuning" /
         fmt::format("{}-{}-{}-{}.txt", name(isa), cpu.family, cpu.model_number, cpu.stepping);
}

template <size_t kN>
bool is_one_of(const int64_t (&candidates)[kN], int64_t value) {
  return std::ranges::find(candidates, value) != std::end(candidates);
}

Tuning kept_or_measured(const KernelTable& table) {
  const CpuInfo cpu = read_cpu();
  const std::filesystem::path path = tuning_path(cpu, table.isa);
  constexpr uint64_t kMostBytes = 4096;
  if (Result<std::string> text = read_file(path, kMostBytes)) {
    const Result<Tuning> kept = parse_tuning(*text, cpu, table.isa);
    if (kept && (!kept->bf16_pairs || table.matmul_bf16_pairs != nullptr)) return *kept;
  }
  const Tuning measured = measure_tuning(table);
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  // Where it cannot be kept, the next process measures again.
  static_cast<void>(write_file_atomically(path, tuning_text(measured, cpu, table.isa)));
  return measured;
}

}  // namespace

Tuning measure_tuning(const KernelTable& table) {
  Tuning best;
  const auto int8 = static_cast<size_t>(Format::kInt8), bf16 = static_cast<size_t>(Format::kBF16);
  if (Result<Product> p = make_product(table, Format::kInt8)) {
    const MatmulKernel kernel = table.matmul[int8][activation_index(Format::kInt8)];
    double least = time_product(*p, kernel, best) / kClearly;
    for (const int64_t rows : kRowCandidates) {
      for (const int64_t tiles : kTileCandidates) {
        const Tuning tuning{.rows_per_block = rows, .tiles_per_block = tiles};
        const double seconds = time_product(*p, kernel, tuning);
        if (seconds >= least) continue;
        least = seconds;
        best = tuning;
      }
    }
  }
  if (table.matmul_bf16_pairs == nullptr) return best;
  if (Result<Product> p = make_product(table, Format::kBF16)) {
    const double products = time_product(*p, table.matmul[bf16][activation_index(Format::kBF16)], best);
    best.bf16_pairs = time_product(*p, table.matmul_bf16_pairs, best) * kClearly < products;
  }
  return best;
}

std::string tuning_text(const Tuning& tuning, const CpuInfo& cpu, Isa isa) {
  return fmt::format("assay_tuning 1\n{}rows_per_block {}\ntiles_per_block {}\nbf16_pairs {:d}\n",
                     identity(cpu, isa), tuning.rows_per_block, tuning.tiles_per_block, tuning.bf16_pairs);
}

Result<Tuning> parse_tuning(std::string_view text, const CpuInfo& cpu, Isa isa) {
  const std::string head = "assay_tuning 1\n" + identity(cpu, isa);
  if (!text.starts_with(head)) {
    return fail(ErrorCode::kInvalidArgument, "tuning",
                "expected a choice for this CPU and table, found another");
  }
  long long rows = 0, tiles = 0;
  int pairs = 0, read = 0;
  const std::string rest(text.substr(head.size()));
  if (std::sscanf(rest.c_str(), "rows_per_block %lld tiles_per_block %lld bf16_pairs %d%n", &rows, &tiles,
                  &pairs, &read) != 3 ||
      rest.substr(static_cast<size_t>(read)) != "\n") {
    return fail(ErrorCode::kCorrupt, "tuning", "expected rows_per_block, tiles_per_block and bf16_pairs");
  }
  if (!is_one_of(kRowCandidates, rows) || !is_one_of(kTileCandidates, tiles) || (pairs != 0 && pairs != 1)) {
    return fail(ErrorCode::kInvalidArgument, "tuning",
                "expected a choice among the candidates, found {} {} {}", rows, tiles, pairs);
  }
  return Tuning{.rows_per_block = rows, .tiles_per_block = tiles, .bf16_pairs = pairs == 1};
}

Tuning tuning_for(const KernelTable& table) {
  static std::mutex mutex;
  static std::map<Isa, Tuning> in_use;
  const char* wanted = std::getenv("ASSAY_AUTOTUNE");
  if (wanted != nullptr && std::string_view(wanted) == "0") return {};
  const std::lock_guard lock(mutex);
  const auto [it, is_new] = in_use.try_emplace(table.isa);
  if (is_new) it->second = kept_or_measured(table);
  return it->second;
}

}  // namespace assay
