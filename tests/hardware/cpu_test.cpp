// Features against what Linux lists in /proc/cpuinfo, and the choice of an instruction set.
#include "hardware/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace assay {
namespace {

// Words of the first line of /proc/cpuinfo that starts with `key`.
std::vector<std::string> cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::vector<std::string> found;
    for (std::string word; words >> word;) found.push_back(word);
    return found;
  }
  return {};
}

TEST(ReadCpu, features_agree_with_linux) {
  const std::vector<std::string> flags = cpuinfo("flags");
  if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo lists no x86 flags";
  const CpuFeatures f = read_cpu().features;
  const std::pair<const char*, bool> pairs[] = {
      {"sse4_2", f.sse42},
      {"avx", f.avx},
      {"avx2", f.avx2},
      {"fma", f.fma},
      {"f16c", f.f16c},
      {"bmi2", f.bmi2},
      {"avx_vnni", f.avx_vnni},
      {"avx512f", f.avx512f},
      {"avx512bw", f.avx512bw},
      {"avx512dq", f.avx512dq},
      {"avx512vl", f.avx512vl},
      {"avx512_vnni", f.avx512_vnni},
      {"avx512_bf16", f.avx512_bf16},
      {"avx512_fp16", f.avx512_fp16},
      {"avx512vbmi", f.avx512_vbmi},
      {"amx_tile", f.amx_tile},
      {"amx_int8", f.amx_int8},
      {"amx_bf16", f.amx_bf16},
  };
  for (const auto& [flag, present] : pairs) {
    EXPECT_EQ(present, std::find(flags.begin(), flags.end(), flag) != flags.end()) << flag;
  }
}

TEST(ReadCpu, model_agrees_with_linux) {
  const CpuInfo info = read_cpu();
  const auto number = [](const std::string& key) {
    const std::vector<std::string> words = cpuinfo(key);
    return words.empty() ? -1 : std::stoi(words[0]);
  };
  if (number("cpu family") < 0) GTEST_SKIP() << "/proc/cpuinfo has no CPU family";
  EXPECT_EQ(info.vendor, cpuinfo("vendor_id").at(0));
  EXPECT_EQ(info.family, number("cpu family"));
  EXPECT_EQ(info.model_number, number("model\t\t:"));
  EXPECT_EQ(info.stepping, number("stepping"));
  std::string model;
  for (const std::string& word : cpuinfo("model name")) model += (model.empty() ? "" : " ") + word;
  std::string squeezed;
  std::istringstream words(info.model);
  for (std::string word; words >> word;) squeezed += (squeezed.empty() ? "" : " ") + word;
  EXPECT_EQ(squeezed, model);
}

CpuFeatures all_x86() {
  CpuFeatures f;
  f.avx = f.avx2 = f.fma = f.f16c = true;
  f.avx512f = f.avx512bw = f.avx512dq = f.avx512vl = f.avx512_vnni = f.avx512_bf16 = true;
  return f;
}

TEST(BestIsa, one_missing_feature_steps_down) {
  EXPECT_EQ(best_isa({}), Isa::kPortable);
  EXPECT_EQ(best_isa(all_x86()), Isa::kAvx512);
  for (bool CpuFeatures::* member :
       {&CpuFeatures::avx512f, &CpuFeatures::avx512bw, &CpuFeatures::avx512dq, &CpuFeatures::avx512vl,
        &CpuFeatures::avx512_vnni, &CpuFeatures::avx512_bf16}) {
    CpuFeatures f = all_x86();
    f.*member = false;
    EXPECT_EQ(best_isa(f), Isa::kAvx2);
  }
  for (bool CpuFeatures::* member : {&CpuFeatures::avx2, &CpuFeatures::fma, &CpuFeatures::f16c}) {
    CpuFeatures f = all_x86();
    f.*member = false;
    EXPECT_EQ(best_isa(f), Isa::kPortable);
  }
}

TEST(Isa, names_parse_back) {
  for (int i = 0; i < static_cast<int>(Isa::kCount); ++i) {
    EXPECT_EQ(*parse_isa(name(static_cast<Isa>(i))), static_cast<Isa>(i));
  }
  const auto wrong = parse_isa("AVX512");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(wrong.error().what.find("\"AVX512\""), std::string::npos);
}

TEST(FeatureNames, list_what_is_set) {
  CpuFeatures f;
  f.avx2 = f.amx_int8 = true;
  EXPECT_EQ(feature_names(f), (std::vector<std::string_view>{"avx2", "amx_int8"}));
}

TEST(EnableAmx, needs_the_feature_and_answers_the_same_twice) {
  const bool granted = enable_amx();
  EXPECT_EQ(enable_amx(), granted);
  if (granted) {
    EXPECT_TRUE(read_cpu().features.amx_int8);
  }
}

}  // namespace
}  // namespace assay
