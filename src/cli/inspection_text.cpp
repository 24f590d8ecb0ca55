#include <boost/json/array.hpp>

#include "base/units.h"
#include "cli/inspection.h"

namespace assay {
namespace {

namespace json = boost::json;

// Fit for a terminal: control characters of an untrusted file are shown, not executed.
std::string visible(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      shown += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  return shown;
}

std::string count_text(int64_t n) {
  if (n >= 1'000'000'000) return fmt::format("{:.2f} B", static_cast<double>(n) / 1e9);
  if (n >= 1'000'000) return fmt::format("{:.1f} M", static_cast<double>(n) / 1e6);
  return fmt::format("{}", n);
}

std::string row(std::string_view label, std::string_view value) {
  return fmt::format("  {:<20} {}\n", label, visible(value));
}

std::string formats_text(const Inspection& inspection) {
  if (inspection.formats.empty()) return {};
  std::string text = fmt::format("\nweights\n  {:<9} {:>7} {:>14} {:>12} {:>8}   {}\n", "stored", "tensors",
                                 "values", "bytes", "bits", "executed as (--weights file)");
  for (const FormatShare& share : inspection.formats) {
    text += fmt::format("  {:<9} {:>7} {:>14} {:>12} {:>8.2f}   {}\n", share.stored, share.n_tensors,
                        share.n_values, format_bytes(share.bytes), share.bits_per_weight(), share.executed);
  }
  return text;
}

std::string tokenizer_text(const TokenizerFacts& facts) {
  std::string text = "\ntokenizer\n";
  text += row("kind", facts.kind);
  if (!facts.pre_tokenizer.empty()) text += row("pre-tokenizer", facts.pre_tokenizer);
  text +=
      row("tokens", fmt::format("{} ({} added), {} merges", facts.n_tokens, facts.n_added, facts.n_merges));
  for (const auto& [label, id] : facts.special)
    text += row(label, fmt::format("{} {}", id, facts.spelling.at(id)));
  std::string ends;
  for (const int32_t id : facts.ends)
    ends += fmt::format("{}{} {}", ends.empty() ? "" : ", ", id, facts.spelling.at(id));
  text += row("ends a generation", ends.empty() ? "none" : ends);
  text += row("adds bos", facts.add_bos ? "yes" : "no");
  return text;
}

std::string template_text(const std::string& chat_template) {
  constexpr size_t kLines = 4;
  constexpr size_t kWidth = 100;
  std::string text = fmt::format("\nchat template ({} bytes)\n", chat_template.size());
  size_t at = 0;
  for (size_t line = 0; line < kLines && at < chat_template.size(); ++line) {
    const size_t end = std::min(chat_template.find('\n', at), chat_template.size());
    const std::string shown = visible(std::string_view(chat_template).substr(at, std::min(end - at, kWidth)));
    text += fmt::format("  {}{}\n", shown, end - at > kWidth ? "..." : "");
    at = end + 1;
  }
  if (at < chat_template.size()) text += "  ...\n";
  return text;
}

}  // namespace

std::string describe(const Inspection& inspection) {
  std::string text = visible(inspection.path) + "\n";
  text += row("container", fmt::format("{}, {}", inspection.container, format_bytes(inspection.file_bytes)));
  text += row("architecture", inspection.architecture);
  if (!inspection.name.empty()) text += row("name", inspection.name);
  text += row("parameters",
              fmt::format("{} in {} tensors", count_text(inspection.n_parameters), inspection.n_tensors));
  for (const auto& [label, value] : inspection.hyperparameters) text += row(label, value);
  text += formats_text(inspection);
  if (inspection.tokenizer) text += tokenizer_text(*inspection.tokenizer);
  if (!inspection.chat_template.empty()) text += template_text(inspection.chat_template);
  if (inspection.values_checked) {
    text += fmt::format("\nvalues\n  {} tensors decoded, {} with NaN or infinite values\n",
                        inspection.n_tensors, inspection.broken_tensors.size());
    for (const std::string& broken : inspection.broken_tensors)
      text += fmt::format("  {}\n", visible(broken));
  }
  if (!inspection.warnings.empty()) text += "\nwarnings\n";
  for (const std::string& warning : inspection.warnings) text += fmt::format("  {}\n", visible(warning));
  return text;
}

json::object to_json(const Inspection& inspection) {
  json::object document{{"path", inspection.path},
                        {"container", inspection.container},
                        {"architecture", inspection.architecture},
                        {"name", inspection.name},
                        {"file_bytes", inspection.file_bytes},
                        {"tensors", inspection.n_tensors},
                        {"parameters", inspection.n_parameters}};
  json::array formats;
  for (const FormatShare& share : inspection.formats) {
    formats.push_back({{"stored", share.stored},
                       {"executed", share.executed},
                       {"tensors", share.n_tensors},
                       {"values", share.n_values},
                       {"bytes", share.bytes},
                       {"bits_per_weight", share.bits_per_weight()}});
  }
  document["formats"] = std::move(formats);
  json::object hyperparameters;
  for (const auto& [label, value] : inspection.hyperparameters) hyperparameters[label] = value;
  document["hyperparameters"] = std::move(hyperparameters);
  if (inspection.tokenizer) {
    const TokenizerFacts& facts = *inspection.tokenizer;
    json::object special;
    for (const auto& [label, id] : facts.special) special[label] = id;
    document["tokenizer"] = {{"kind", facts.kind},
                             {"pre_tokenizer", facts.pre_tokenizer},
                             {"tokens", facts.n_tokens},
                             {"merges", facts.n_merges},
                             {"added", facts.n_added},
                             {"add_bos", facts.add_bos},
                             {"special", std::move(special)},
                             {"end_of_generation", json::array(facts.ends.begin(), facts.ends.end())}};
  }
  document["chat_template"] = inspection.chat_template;
  document["warnings"] = json::array(inspection.warnings.begin(), inspection.warnings.end());
  if (inspection.values_checked) {
    document["broken_tensors"] =
        json::array(inspection.broken_tensors.begin(), inspection.broken_tensors.end());
  }
  return document;
}

}  // namespace assay
