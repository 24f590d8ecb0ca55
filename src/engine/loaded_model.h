// From a checkpoint on disk to something that can generate: model, tokenizer and chat template, checked
// against each other. What run, serve, quality and tune start from. Failure: whatever Checkpoint, Tokenizer,
// ChatTemplate and Model report, with the path in front; kCorrupt when the vocabulary is larger than the
// embedding. A broken or missing chat template is not an error here: has_template() says.
#pragma once

#include <boost/json/array.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/model.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace assay {

struct ChatMessage {
  std::string role;
  std::string content;
  boost::json::array tool_calls;  // of an assistant: [{id, type, function: {name, arguments}}]
  std::string tool_call_id;       // of a tool's answer
  std::string name;               // of a tool's answer: the function
};

class LoadedModel {
 public:
  static Result<LoadedModel> load(const std::filesystem::path& path, const Precision& precision,
                                  std::shared_ptr<Backend> backend, LoadOptions options = {});
  // The tokenizer and template alone: what a plan or an inspection needs. model() is then null.
  static Result<LoadedModel> load_tokenizer(const std::filesystem::path& path);

  const std::shared_ptr<Model>& model() const { return model_; }
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }
  const std::filesystem::path& path() const { return path_; }

  bool has_template() const { return template_ != nullptr; }
  const std::string& template_error() const { return template_error_; }
  const std::shared_ptr<const ChatTemplate>& chat_template() const { return template_; }
  const std::string& template_source() const { return template_source_; }
  // Another template than the checkpoint's. Failure: as ChatTemplate::parse; the model keeps what it had.
  Result<void> set_template(std::string source);

  // The prompt of a conversation, ready for encode_prompt(). `tools`: what the model may call, as OpenAI's
  // requests list it; templates that do not know tools ignore it. kUnsupported when there is no usable
  // template.
  Result<std::string> render(const std::vector<ChatMessage>& messages,
                             const boost::json::array& tools = {}) const;
  // Rendered text to ids: special tokens recognised, exactly one BOS.
  std::vector<int32_t> encode_prompt(const std::string& rendered) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<Model> model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const ChatTemplate> template_;
  std::string template_error_;
  std::string template_source_;
};

// The JSON context that chat templates expect, without messages and tools: bos_token, eos_token, date.
boost::json::object template_context(const Tokenizer& tokenizer);

// "weights int4:32 (145), int8:32 (30), activations int8, KV bf16": what really runs.
std::string describe_effective_precision(const Model& model);

}  // namespace assay
