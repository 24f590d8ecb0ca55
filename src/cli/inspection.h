// What is in a checkpoint, gathered for `assay inspect`. Nothing is loaded but the metadata, unless values
// are checked. Thread safety: plain values. Failure: inspect() only for values that cannot be read;
// everything else that is wrong with a readable checkpoint becomes a warning.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "modelfile/checkpoint.h"

namespace assay {

// All tensors of one stored format.
struct FormatShare {
  std::string stored;    // "Q4_1"
  std::string executed;  // "int4, groups of 32, lossless" for matrices; "f32"
  int64_t n_tensors = 0;
  int64_t n_values = 0;
  uint64_t bytes = 0;
  double bits_per_weight() const {
    return n_values == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(n_values);
  }
};

struct TokenizerFacts {
  std::string kind;  // "byte-level BPE"
  std::string pre_tokenizer;
  size_t n_tokens = 0, n_merges = 0, n_added = 0;
  bool add_bos = false;
  std::vector<std::pair<std::string, int32_t>> special;  // "bos" -> id
  std::vector<int32_t> ends;                             // end of generation
  std::map<int32_t, std::string> spelling;               // of the ids above
};

struct Inspection {
  std::string path, container, architecture, name;
  uint64_t file_bytes = 0;
  int64_t n_tensors = 0, n_parameters = 0;
  std::vector<FormatShare> formats;                                  // most bytes first
  std::vector<std::pair<std::string, std::string>> hyperparameters;  // "context length" -> "8192"
  std::optional<TokenizerFacts> tokenizer;
  std::string chat_template;
  std::vector<std::string> warnings;
  bool values_checked = false;
  std::vector<std::string> broken_tensors;  // "blk.0.ffn_up.weight: 3 NaN, 0 infinite, first at 17"
};

// `check_values` decodes every tensor and looks for NaN and infinity.
Result<Inspection> inspect(const Checkpoint& checkpoint, bool check_values);

std::string describe(const Inspection& inspection);  // for people
boost::json::object to_json(const Inspection& inspection);

}  // namespace assay
