// --name value, repeatable, as benches take them. Header only.
#pragma once

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::bench {

class Arguments {
 public:
  // --flag without a value holds "".
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
  // "1,4,16"; "," is none.
  std::vector<int> integers(const std::string& name, const std::string& fallback) const {
    std::vector<int> numbers;
    std::istringstream words(text(name, fallback));
    for (std::string word; std::getline(words, word, ',');)
      if (!word.empty()) numbers.push_back(std::atoi(word.c_str()));
    return numbers;
  }

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

}  // namespace assay::bench
