// Reads data/blocks.txt (made by record_blocks.py): blocks of every type and what independent code decodes
// them to.
#pragma once

#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "numeric/block_type.h"

namespace assay::test {

struct RecordedBlocks {
  BlockType type;
  std::vector<std::byte> bytes;
  std::vector<float> values;
};

inline std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

inline std::vector<RecordedBlocks> read_recorded_blocks() {
  std::ifstream file(ASSAY_SOURCE_DIR "/tests/numeric/data/blocks.txt");
  std::vector<RecordedBlocks> records;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string type, bytes, values;
    words >> type >> bytes >> values;
    for (int i = 0; i < static_cast<int>(BlockType::kCount); ++i) {
      if (name(static_cast<BlockType>(i)) != type) continue;
      const std::vector<std::byte> floats = from_hex(values);
      records.push_back({static_cast<BlockType>(i), from_hex(bytes), std::vector<float>(floats.size() / 4)});
      std::memcpy(records.back().values.data(), floats.data(), floats.size());
    }
  }
  return records;
}

}  // namespace assay::test
