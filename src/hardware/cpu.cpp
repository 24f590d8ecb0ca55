#include "hardware/cpu.h"

#include <array>
#include <utility>

namespace assay {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(Isa::kCount)> kIsaNames = {"portable", "avx2",
                                                                                      "avx512"};

struct NamedFeature {
  std::string_view name;
  bool CpuFeatures::* member;
};

constexpr NamedFeature kFeatureNames[] = {
    {"sse4.2", &CpuFeatures::sse42},
    {"avx", &CpuFeatures::avx},
    {"avx2", &CpuFeatures::avx2},
    {"fma", &CpuFeatures::fma},
    {"f16c", &CpuFeatures::f16c},
    {"bmi2", &CpuFeatures::bmi2},
    {"avx_vnni", &CpuFeatures::avx_vnni},
    {"avx512f", &CpuFeatures::avx512f},
    {"avx512bw", &CpuFeatures::avx512bw},
    {"avx512dq", &CpuFeatures::avx512dq},
    {"avx512vl", &CpuFeatures::avx512vl},
    {"avx512_vnni", &CpuFeatures::avx512_vnni},
    {"avx512_bf16", &CpuFeatures::avx512_bf16},
    {"avx512_fp16", &CpuFeatures::avx512_fp16},
    {"avx512_vbmi", &CpuFeatures::avx512_vbmi},
    {"amx_tile", &CpuFeatures::amx_tile},
    {"amx_int8", &CpuFeatures::amx_int8},
    {"amx_bf16", &CpuFeatures::amx_bf16},
    {"neon", &CpuFeatures::neon},
    {"dotprod", &CpuFeatures::dotprod},
    {"i8mm", &CpuFeatures::i8mm},
    {"sve", &CpuFeatures::sve},
};

}  // namespace

std::vector<std::string_view> feature_names(const CpuFeatures& features) {
  std::vector<std::string_view> names;
  for (const auto& [name, member] : kFeatureNames) {
    if (features.*member) names.push_back(name);
  }
  return names;
}

std::string_view name(Isa isa) {
  return kIsaNames[static_cast<size_t>(isa)];
}

Result<Isa> parse_isa(std::string_view text) {
  for (size_t i = 0; i < kIsaNames.size(); ++i) {
    if (kIsaNames[i] == text) return static_cast<Isa>(i);
  }
  return fail(ErrorCode::kInvalidArgument, "instruction set",
              "expected portable, avx2 or avx512, found \"{}\"", text);
}

bool supports(const CpuFeatures& f, Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return true;
    case Isa::kAvx2:
      return f.avx2 && f.fma && f.f16c;
    case Isa::kAvx512:
      return supports(f, Isa::kAvx2) && f.avx512f && f.avx512bw && f.avx512dq && f.avx512vl &&
             f.avx512_vnni && f.avx512_bf16;
    case Isa::kCount:
      break;
  }
  return false;
}

Isa best_isa(const CpuFeatures& features) {
  if (supports(features, Isa::kAvx512)) return Isa::kAvx512;
  return supports(features, Isa::kAvx2) ? Isa::kAvx2 : Isa::kPortable;
}

}  // namespace assay
