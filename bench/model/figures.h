// The rows that a bench prints: a table for people, or with --json one array of
// {"figure", "value", "unit", "bound", "holds", "samples", "how"}.
#pragma once

#include <fmt/core.h>

#include <boost/json.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::bench {

struct Bound {
  double value;
  bool at_least;  // else at most
};

class Figures {
 public:
  void add(std::string figure, double value, std::string unit, int samples, std::string how,
           std::optional<Bound> bound = {}) {
    rows_.push_back({std::move(figure), value, std::move(unit), samples, std::move(how), bound});
  }
  void print(bool as_json) const {
    if (!as_json) {
      for (const Row& row : rows_) {
        fmt::print("{:<58} {:>12.5g} {:<10} {}\n", row.figure, row.value, row.unit,
                   row.bound
                       ? fmt::format("{} {:.5g}: {}", row.bound->at_least ? ">=" : "<=", row.bound->value,
                                     row.holds() ? "holds" : "DOES NOT HOLD")
                       : "");
      }
      return;
    }
    boost::json::array out;
    for (const Row& row : rows_) {
      boost::json::object object;
      object["figure"] = row.figure;
      object["value"] = row.value;
      object["unit"] = row.unit;
      object["bound"] = row.bound ? boost::json::value(row.bound->value) : nullptr;
      object["holds"] = row.bound ? boost::json::value(row.holds()) : nullptr;
      object["samples"] = row.samples;
      object["how"] = row.how;
      out.push_back(std::move(object));
    }
    fmt::print("{}\n", boost::json::serialize(out));
  }
  bool all_hold() const {
    for (const Row& row : rows_) {
      if (!row.holds()) return false;
    }
    return true;
  }

 private:
  struct Row {
    std::string figure;
    double value;
    std::string unit;
    int samples;
    std::string how;
    std::optional<Bound> bound;
    bool holds() const { return !bound || (bound->at_least ? value >= bound->value : value <= bound->value); }
  };
  std::vector<Row> rows_;
};

// --name value, repeatable; --flag without a value holds "".
class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      std::string name = argv[i];
      const bool has_value = i + 1 < argc && !std::string_view(argv[i + 1]).starts_with("--");
      values_[name].push_back(has_value ? argv[++i] : "");
    }
  }
  bool has(const std::string& name) const { return values_.contains(name); }
  std::vector<std::string> all(const std::string& name) const {
    const auto at = values_.find(name);
    return at == values_.end() ? std::vector<std::string>() : at->second;
  }
  std::string text(const std::string& name, std::string fallback) const {
    return has(name) ? all(name).back() : fallback;
  }
  int integer(const std::string& name, int fallback) const {
    return has(name) ? std::atoi(all(name).back().c_str()) : fallback;
  }

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

}  // namespace assay::bench
