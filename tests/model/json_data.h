// Recorded numbers from tests/model/data.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_runner.h"

namespace assay::test {

inline boost::json::value read_data(std::string_view name) {
  const auto path = std::filesystem::path(ASSAY_SOURCE_DIR) / "tests/model/data" / name;
  return boost::json::parse(must(read_file(path)));
}

inline std::vector<int32_t> ids_of(const boost::json::value& array) {
  return boost::json::value_to<std::vector<int32_t>>(array);
}

}  // namespace assay::test
