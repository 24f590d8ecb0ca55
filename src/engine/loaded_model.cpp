#include "engine/loaded_model.h"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <utility>

#include "modelfile/checkpoint.h"

namespace assay {
namespace {

std::string token_text(const Tokenizer& tokenizer, std::optional<int32_t> id) {
  return id ? std::string(tokenizer.token_bytes(*id)) : std::string();
}

}  // namespace

Result<LoadedModel> LoadedModel::load_tokenizer(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
  ASSIGN_OR_RETURN(VocabSpec spec, checkpoint.vocab());
  const std::string template_source = spec.chat_template;
  auto tokenizer = Tokenizer::create(std::move(spec));
  if (!tokenizer) return std::unexpected(tokenizer.error().within(path.string()));

  LoadedModel loaded;
  loaded.path_ = path;
  loaded.tokenizer_ = std::make_shared<const Tokenizer>(std::move(*tokenizer));
  if (template_source.empty()) {
    loaded.template_error_ = "the checkpoint has no chat template";
  } else if (const auto set = loaded.set_template(template_source); !set) {
    loaded.template_error_ = set.error().message();
  }
  return loaded;
}

Result<void> LoadedModel::set_template(std::string source) {
  ASSIGN_OR_RETURN(ChatTemplate parsed, ChatTemplate::parse(source));
  template_ = std::make_shared<const ChatTemplate>(std::move(parsed));
  template_source_ = std::move(source);
  template_error_.clear();
  return {};
}

Result<LoadedModel> LoadedModel::load(const std::filesystem::path& path, const Precision& precision,
                                      std::shared_ptr<Backend> backend, LoadOptions options) {
  ASSIGN_OR_RETURN(LoadedModel loaded, load_tokenizer(path));
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                   Model::load(checkpoint, precision, std::move(backend), std::move(options)));
  if (loaded.tokenizer_->vocab_size() > model->config().n_vocab) {
    return fail(ErrorCode::kCorrupt, path.string(),
                "the vocabulary has {} tokens, the embedding only {} rows", loaded.tokenizer_->vocab_size(),
                model->config().n_vocab);
  }
  loaded.model_ = std::move(model);
  return loaded;
}

boost::json::object template_context(const Tokenizer& tokenizer) {
  boost::json::object context;
  context["bos_token"] = token_text(tokenizer, tokenizer.bos());
  context["eos_token"] = token_text(tokenizer, tokenizer.eos());
  context["add_generation_prompt"] = true;
  return context;
}

Result<std::string> LoadedModel::render(const std::vector<ChatMessage>& messages,
                                        const boost::json::array& tools) const {
  if (!template_) return fail(ErrorCode::kUnsupported, path_.string(), "{}", template_error_);
  boost::json::object context = template_context(*tokenizer_);
  boost::json::array list;
  for (const ChatMessage& message : messages) {
    boost::json::object entry{{"role", message.role}, {"content", message.content}};
    if (!message.tool_calls.empty()) entry["tool_calls"] = message.tool_calls;
    if (!message.tool_call_id.empty()) entry["tool_call_id"] = message.tool_call_id;
    if (!message.name.empty()) entry["name"] = message.name;
    list.push_back(std::move(entry));
  }
  context["messages"] = std::move(list);
  if (!tools.empty()) context["tools"] = tools;
  return template_->render(context);
}

std::vector<int32_t> LoadedModel::encode_prompt(const std::string& rendered) const {
  return tokenizer_->encode(rendered, {.add_bos = true, .parse_special = true});
}

std::string describe_effective_precision(const Model& model) {
  std::map<std::string, int> counts;
  for (const EffectiveFormat& format : model.effective_formats()) ++counts[to_string(format.executed)];
  std::string text = "weights";
  bool first = true;
  for (const auto& [executed, count] : counts) {
    text += fmt::format("{} {} ({})", first ? "" : ",", executed, count);
    first = false;
  }
  const Precision& precision = model.precision();
  const auto pair = [](Format a, Format b) {
    return a == b ? std::string(name(a)) : fmt::format("{}/{}", name(a), name(b));
  };
  return fmt::format("{}, activations {}, KV {}", text,
                     pair(precision.prefill_activations, precision.decode_activations),
                     pair(precision.kv_key, precision.kv_value));
}

}  // namespace assay
