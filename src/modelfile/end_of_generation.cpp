#include "modelfile/end_of_generation.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace assay::modelfile_internal {
namespace {

using TextList = std::span<const std::string_view>;

constexpr std::string_view kEndTexts[] = {"<|eot_id|>",
                                          "<|im_end|>",
                                          "<|end|>",
                                          "<|return|>",
                                          "<|call|>",
                                          "<|flush|>",
                                          "<|calls|>",
                                          "<end_of_turn>",
                                          "<|endoftext|>",
                                          "</s>",
                                          "<|eom_id|>",
                                          "<EOT>",
                                          "_<EOT>",
                                          "[EOT]",
                                          "[EOS]",
                                          "<|end_of_text|>",
                                          "<end_of_utterance>",
                                          "<eos>",
                                          "<turn|>",
                                          "<|tool_response>",
                                          "<｜end▁of▁sentence｜>",
                                          "[e~["};
constexpr std::string_view kFillPaddingTexts[] = {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"};
constexpr std::string_view kFillRepositoryTexts[] = {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>",
                                                     "<reponame>"};
constexpr std::string_view kFillSeparatorTexts[] = {"<|file_sep|>"};
// These do not end a generation; each text list names one control token of the fill-in-the-middle form.
constexpr std::string_view kFillPrefixTexts[] = {"<|fim_prefix|>",  "<fim-prefix>", "<fim_prefix>",
                                                 "<｜fim▁begin｜>", "<PRE>",        "▁<PRE>",
                                                 "<|code_prefix|>", "<|prefix|>"};
constexpr std::string_view kFillSuffixTexts[] = {"<|fim_suffix|>",  "<fim-suffix>", "<fim_suffix>",
                                                 "<｜fim▁hole｜>",  "<SUF>",        "▁<SUF>",
                                                 "<|code_suffix|>", "<|suffix|>"};
constexpr std::string_view kFillMiddleTexts[] = {"<|fim_middle|>",  "<fim-middle>", "<fim_middle>",
                                                 "<｜fim▁end｜>",   "<MID>",        "▁<MID>",
                                                 "<|code_middle|>", "<|middle|>"};
// Rendered as text by their models, though they look like control tokens.
constexpr std::string_view kChannelTexts[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

bool contains(TextList texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

class EndFinder {
 public:
  explicit EndFinder(VocabSpec& spec) : spec_(spec) {}

  // The named id, else the first token with one of the texts.
  void add_one_of(std::optional<int32_t> named, TextList texts) {
    if (!named) named = mark_first(texts);
    if (named) ends_.insert(*named);
  }

  void add_all_of(TextList texts) {
    for (size_t id = 0; id < spec_.tokens.size(); ++id) {
      if (!contains(texts, spec_.tokens[id])) continue;
      ends_.insert(static_cast<int32_t>(id));
      mark(static_cast<int32_t>(id), TokenKind::kControl);
    }
  }

  void add(std::optional<int32_t> id) {
    if (id) ends_.insert(*id);
  }

  std::optional<int32_t> end_with(std::string_view text) const {
    for (const int32_t id : ends_) {
      if (spec_.tokens[static_cast<size_t>(id)] == text) return id;
    }
    return std::nullopt;
  }

  void remove(int32_t id, TokenKind kind) {
    ends_.erase(id);
    mark(id, kind);
  }

  void mark_all(TextList texts, TokenKind kind) {
    for (size_t id = 0; id < spec_.tokens.size(); ++id) {
      if (contains(texts, spec_.tokens[id])) mark(static_cast<int32_t>(id), kind);
    }
  }

  std::optional<int32_t> mark_first(TextList texts) {
    for (size_t id = 0; id < spec_.tokens.size(); ++id) {
      if (!contains(texts, spec_.tokens[id])) continue;
      mark(static_cast<int32_t>(id), TokenKind::kControl);
      return static_cast<int32_t>(id);
    }
    return std::nullopt;
  }

  std::vector<int32_t> ends() const { return {ends_.begin(), ends_.end()}; }

 private:
  void mark(int32_t id, TokenKind kind) {
    if (spec_.kinds.empty()) spec_.kinds.assign(spec_.tokens.size(), TokenKind::kNormal);
    spec_.kinds[static_cast<size_t>(id)] = kind;
  }

  VocabSpec& spec_;
  std::set<int32_t> ends_;
};

}  // namespace

void find_end_of_generation(VocabSpec& spec, const NamedEnds& named) {
  EndFinder finder(spec);
  finder.add_one_of(named.fill_padding, kFillPaddingTexts);
  finder.add_one_of(named.fill_repository, kFillRepositoryTexts);
  finder.add_one_of(named.fill_separator, kFillSeparatorTexts);
  finder.mark_first(kFillPrefixTexts);
  finder.mark_first(kFillSuffixTexts);
  finder.mark_first(kFillMiddleTexts);
  finder.add_all_of(kEndTexts);
  finder.mark_all(kChannelTexts, TokenKind::kUserDefined);
  finder.add(spec.eos);
  finder.add(named.end_of_turn);
  finder.add(named.end_of_message);

  // In the harmony and solar vocabularies "<|end|>" closes one message of several, not the answer.
  const bool harmony = finder.end_with("<|return|>") && finder.end_with("<|call|>");
  const bool solar =
      finder.end_with("<|flush|>") && (finder.end_with("<|calls|>") || finder.end_with("<|call|>"));
  if (const auto end = finder.end_with("<|end|>"); end && (harmony || solar))
    finder.remove(*end, TokenKind::kUserDefined);
  // Where "<|tool_response>" ends an answer, "</s>" is ordinary text.
  if (const auto end = finder.end_with("</s>"); end && finder.end_with("<|tool_response>")) {
    finder.remove(*end, TokenKind::kNormal);
  }
  spec.end_of_generation = finder.ends();
}

}  // namespace assay::modelfile_internal
