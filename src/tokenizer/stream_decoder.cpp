#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace assay {
namespace {

using tokenizer_internal::decode_utf8;
using tokenizer_internal::kReplacementText;
using tokenizer_internal::Utf8Char;
using tokenizer_internal::Utf8Status;

// Moves the complete characters of `pending` to the result, invalid bytes as U+FFFD; an incomplete end stays.
std::string take_complete(std::string& pending) {
  std::string text;
  size_t at = 0;
  while (at < pending.size()) {
    const Utf8Char character = decode_utf8(pending, at);
    if (character.status == Utf8Status::kTruncated) break;
    if (character.status == Utf8Status::kValid)
      text.append(pending, at, character.length);
    else
      text += kReplacementText;
    at += character.length;
  }
  pending.erase(0, at);
  return text;
}

}  // namespace

std::string StreamDecoder::push(int32_t id) {
  if (skip_special_ && tokenizer_->is_special(id)) return {};
  std::string_view bytes = tokenizer_->token_bytes(id);
  if (bytes.empty()) return {};
  if (first_ && tokenizer_->strips_first_space() && bytes.starts_with(' ')) bytes.remove_prefix(1);
  first_ = false;
  pending_ += bytes;
  return take_complete(pending_);
}

std::string StreamDecoder::finish() {
  std::string text = take_complete(pending_);
  if (!pending_.empty()) text += kReplacementText;
  pending_.clear();
  first_ = true;
  return text;
}

}  // namespace assay
