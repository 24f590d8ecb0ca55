#include "serve/generation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <utility>

#include "base/random.h"
#include "http/sse.h"
#include "serve/api_error.h"
#include "serve/grammar_constraint.h"

namespace assay {

// Hands the engine's events of one sequence to its generation.
class Generation::Sink final : public StreamSink {
 public:
  Sink(std::shared_ptr<Generation> generation, size_t index)
      : generation_(std::move(generation)), index_(index) {}
  void on_prompt(std::span<const PromptTokenLogprob> tokens) override {
    generation_->on_prompt(index_, tokens);
  }
  void on_token(const TokenEvent& event) override { generation_->on_token(index_, event); }
  void on_finish(const Completion& completion) override { generation_->on_finish(index_, completion); }

 private:
  std::shared_ptr<Generation> generation_;
  size_t index_;
};

void Generation::start(Engine& engine, ServeMetrics& metrics, GenerationSpec spec,
                       std::shared_ptr<ObservedResponder> responder) {
  std::make_shared<Generation>(engine, metrics, std::move(spec), std::move(responder))->run();
}

Generation::Generation(Engine& engine, ServeMetrics& metrics, GenerationSpec spec,
                       std::shared_ptr<ObservedResponder> responder)
    : engine_(engine),
      metrics_(metrics),
      admission_(std::move(spec.admission)),
      spec_(std::move(spec)),
      responder_(std::move(responder)),
      choices_(spec_.prompts.size() * static_cast<size_t>(spec_.options.n)),
      unfinished_(choices_.size()) {
  begin_with_prompt();
  const std::optional<ToolReading>& tools = spec_.shape.tools;
  if (!tools) return;
  for (Choice& choice : choices_) choice.parser.emplace(tools->format, tools->names, tools->opened);
}

// 0.7F as the 0.7 that the client wrote.
static double as_written(float value) {
  return std::round(static_cast<double>(value) * 1e6) / 1e6;
}

GenerationFacts Generation::facts() const {
  const GenerationOptions& options = spec_.options;
  GenerationFacts facts{.model = options.model,
                        .response_id = spec_.identity.id,
                        .stream = options.stream,
                        .choices = options.n,
                        .temperature = as_written(options.sampling.temperature),
                        .top_p = as_written(options.sampling.top_p)};
  if (options.max_tokens >= 0) facts.max_tokens = options.max_tokens;
  if (options.sampling.seed) facts.seed = static_cast<int64_t>(*options.sampling.seed);
  facts.output_type = spec_.shape.grammar != nullptr && !spec_.shape.tools ? "json" : "text";
  return facts;
}

// What is echoed comes before anything else. The engine tells of every prompt token but the first.
void Generation::begin_with_prompt() {
  if (spec_.echo.empty()) return;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const size_t prompt = i / static_cast<size_t>(spec_.options.n);
    Choice& choice = choices_[i];
    (spec_.options.stream ? choice.echo : choice.text) = spec_.echo[prompt];
    if (!wants_logprobs()) continue;
    const int32_t first = spec_.prompts[prompt].front();
    const std::string_view bytes = engine_.tokenizer().token_bytes(first);
    keep(choice, {.chosen = {std::string(bytes), 0}, .first = true});
    // A token that was put before the text takes no place in it.
    if (engine_.tokenizer().is_special(first) && !spec_.echo[prompt].starts_with(bytes))
      choice.characters = 0;
  }
}

void Generation::keep(Choice& choice, TokenLogprobs named) {
  if (choice.held.empty()) choice.held_offset = choice.characters;
  choice.characters += count_characters(named.chosen.bytes);
  (spec_.options.stream ? choice.held : choice.logprobs).push_back(std::move(named));
}

GenerationRequest Generation::request_of(size_t index) const {
  const auto n = static_cast<size_t>(spec_.options.n);
  const GenerationOptions& options = spec_.options;
  GenerationRequest request;
  request.prompt = spec_.prompts[index / n];
  request.sampling = sampling_of_choice(options.sampling, static_cast<int>(index % n));
  request.max_tokens = static_cast<int>(options.max_tokens);
  request.stop = options.stop;
  request.share = spec_.share;
  request.ignore_end_of_generation = options.ignore_eos;
  const AnswerShape& shape = spec_.shape;
  if (shape.grammar != nullptr)
    request.constraint = make_grammar_constraint(shape.grammar, shape.grammar_trigger);
  if (shape.tools) request.keep_special = opening_is_special(shape.tools->format);
  if (spec_.echo.empty()) return request;
  request.prompt_output.logprobs = wants_logprobs();
  request.prompt_output.top_logprobs = wants_logprobs() ? options.sampling.top_logprobs : 0;
  // The engine computes no prompt for nothing: ask for what costs least.
  if (options.max_tokens == 0 && !wants_logprobs()) request.prompt_output.pooling = Pooling::kLast;
  // Clients that score prompts ask for one token and drop the last entry of the lists: it must be there, also
  // when that token is the model's end.
  if (options.max_tokens == 1 && wants_logprobs()) request.ignore_end_of_generation = true;
  return request;
}

void Generation::run() {
  responder_->watch().describe(facts());
  responder_->watch().mark_submitted();
  // No lock is held while calling the engine: its step thread may be inside on_token() at the same time.
  std::vector<RequestId> ids;
  std::optional<Error> error;
  for (size_t i = 0; i < choices_.size() && !error; ++i) {
    const auto id = engine_.submit(request_of(i), std::make_shared<Sink>(shared_from_this(), i));
    if (id) {
      ids.push_back(*id);
    } else {
      error = id.error();
    }
  }
  {
    const std::scoped_lock lock(mutex_);
    for (size_t i = 0; i < ids.size(); ++i) choices_[i].id = ids[i];
    refused_ = error.has_value();
    if (refused_) {
      admission_->withdraw();
      admission_.reset();
    }
    accepted_ = !refused_;
    if (accepted_ && spec_.options.stream) {
      Headers headers = spec_.headers;
      headers.add("Content-Type", "text/event-stream; charset=utf-8");
      headers.add("Cache-Control", "no-cache");
      headers.add("X-Accel-Buffering", "no");
      responder_->start_stream(200, std::move(headers));
      if (!early_.empty()) responder_->send(std::exchange(early_, {}));
    }
    if (accepted_ && unfinished_ == 0) spec_.options.stream ? end_stream() : respond_whole();
  }
  if (error) {
    for (const RequestId id : ids) engine_.cancel(id);
    responder_->respond(
        to_response(refusal_of(*error, spec_.prompts[ids.size() / static_cast<size_t>(spec_.options.n)])));
    return;
  }
  responder_->on_disconnect([self = shared_from_this()] { self->cancel_all(); });
}

// What the engine refused, with the time to wait where a deadline cannot be met.
ApiError Generation::refusal_of(const Error& error, std::span<const int32_t> prompt) const {
  const bool late = error.code == ErrorCode::kUnavailable && error.where == "deadline";
  if (!late) return engine_failure(error);
  const double expected = engine_.expected_ttft_seconds(std::ssize(prompt), spec_.share);
  const double excess = expected - spec_.share.ttft_bound_seconds.value_or(0);
  return {.status = 503,
          .message = error.what,
          .type = "server_error",
          .code = "deadline_unreachable",
          .retry_after_seconds = static_cast<int>(std::clamp(std::ceil(excess), 1.0, 1e6))};
}

void Generation::cancel_all() {
  if (cancelled_.exchange(true)) return;
  std::vector<RequestId> ids;
  {
    const std::scoped_lock lock(mutex_);
    for (const Choice& choice : choices_) {
      if (!choice.finished) ids.push_back(choice.id);
    }
  }
  for (const RequestId id : ids) engine_.cancel(id);
}

void Generation::on_prompt(size_t index, std::span<const PromptTokenLogprob> tokens) {
  const std::scoped_lock lock(mutex_);
  if (refused_) return;
  for (const PromptTokenLogprob& token : tokens)
    keep(choices_[index], name_logprobs(token, engine_.tokenizer()));
}

void Generation::on_token(size_t index, const TokenEvent& event) {
  const double now = responder_->watch().seconds();
  const std::scoped_lock lock(mutex_);
  if (refused_) return;
  Choice& choice = choices_[index];
  if (choice.tokens++ == 0) {
    metrics_.observe_first_token(now);
    responder_->watch().mark_first_token();
  } else {
    metrics_.observe_token_gap(now - choice.last_token_at);
  }
  choice.last_token_at = now;
  admission_->count_completion(1);
  if (wants_logprobs()) keep(choice, name_logprobs(event, engine_.tokenizer()));
  take_text(index, event.text, false);
}

static std::string make_id(ToolFormat format) {
  static thread_local Random random((uint64_t{std::random_device{}()} << 32U) | std::random_device{}(),
                                    "call ids");
  return make_call_id(format, random);
}

ToolCallPiece Generation::piece_of(ToolEvent event) const {
  if (event.kind == ToolEvent::Kind::kCall)
    return {.index = event.call, .id = make_id(spec_.shape.tools->format), .name = std::move(event.text)};
  return {.index = event.call, .arguments = std::move(event.text)};
}

// Text that became final: to the client, or kept for the whole answer; calls are told apart from content.
void Generation::take_text(size_t index, std::string_view text, bool last) {
  Choice& choice = choices_[index];
  std::string content;
  std::vector<ToolCallPiece> pieces;
  if (!choice.parser) {
    content = std::exchange(choice.echo, {});
    content += text;
  } else {
    std::vector<ToolEvent> events = choice.parser->feed(text);
    if (last) std::ranges::move(choice.parser->finish(), std::back_inserter(events));
    for (ToolEvent& event : events) {
      if (event.kind == ToolEvent::Kind::kContent) {
        content += event.text;
      } else {
        pieces.push_back(piece_of(std::move(event)));
      }
    }
  }
  if (spec_.options.stream) {
    if (!content.empty() || !pieces.empty() || (wants_logprobs() && !last))
      stream_piece(index, content, pieces, {});
    return;
  }
  choice.text += content;
  for (ToolCallPiece& piece : pieces) {
    if (!piece.id.empty()) {
      choice.tool_calls.push_back(std::move(piece));
    } else {
      choice.tool_calls.back().arguments += piece.arguments;
    }
  }
}

std::string_view Generation::finish_reason_of(const Choice& choice) const {
  if (choice.completion.reason == FinishReason::kStop && choice.parser && choice.parser->n_calls() > 0)
    return "tool_calls";
  return finish_reason_name(choice.completion.reason);
}

void Generation::on_finish(size_t index, const Completion& completion) {
  metrics_.count_finish(completion);
  const std::scoped_lock lock(mutex_);
  Choice& choice = choices_[index];
  choice.finished = true;
  choice.completion = completion;
  --unfinished_;
  if (refused_) return;
  count_use(index);
  if (spec_.options.stream) {
    const bool ended_well =
        completion.reason == FinishReason::kStop || completion.reason == FinishReason::kLength;
    take_text(index, completion.trailing_text, true);
    if (ended_well) stream_piece(index, {}, {}, finish_reason_of(choice));
  } else {
    take_text(index, completion.trailing_text, true);
  }
  responder_->watch().count_sequence(completion, finish_reason_of(choice));
  if (unfinished_ > 0 || !accepted_) return;
  spec_.options.stream ? end_stream() : respond_whole();
  responder_->settle();
}

// What the sequence's tokens have not told: its end, and what its prompt took from the cache.
void Generation::count_use(size_t index) {
  const Choice& choice = choices_[index];
  const Usage& usage = choice.completion.usage;
  admission_->count_completion(std::max<int64_t>(0, usage.completion_tokens - choice.tokens));
  if (index % static_cast<size_t>(spec_.options.n) == 0)
    admission_->count_cached_prompt(usage.cached_prompt_tokens);
  if (unfinished_ == 0) admission_.reset();
}

void Generation::stream_piece(size_t index, std::string_view text, std::span<const ToolCallPiece> calls,
                              std::string_view finish_reason) {
  Choice& choice = choices_[index];
  const std::vector<TokenLogprobs> logprobs = std::exchange(choice.held, {});
  emit(to_sse(chunk(spec_.identity, {.index = static_cast<int>(index),
                                     .first = !std::exchange(choice.role_sent, true),
                                     .text = text,
                                     .tool_calls = calls,
                                     .logprobs = logprobs,
                                     .with_logprobs = wants_logprobs(),
                                     .text_offset = choice.held_offset,
                                     .finish_reason = finish_reason})));
}

void Generation::emit(std::string bytes) {
  if (!accepted_) {
    early_ += bytes;
  } else {
    responder_->send(bytes);  // false: on_disconnect cancels
  }
}

UsageTotals Generation::totals() const {
  UsageTotals usage;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Usage& own = choices_[i].completion.usage;
    usage.completion_tokens += own.completion_tokens;
    if (i % static_cast<size_t>(spec_.options.n) != 0) continue;
    usage.prompt_tokens += own.prompt_tokens;
    usage.cached_prompt_tokens += own.cached_prompt_tokens;
  }
  return usage;
}

// The error of the first choice that did not end well.
static std::optional<ApiError> failure_of(const Completion& completion) {
  if (completion.reason == FinishReason::kCancelled) {
    return engine_failure({ErrorCode::kCancelled, "", "cancelled"});
  }
  if (completion.reason == FinishReason::kError) {
    return engine_failure(
        completion.error.value_or(Error{ErrorCode::kInternal, "engine", "generation failed"}));
  }
  return std::nullopt;
}

void Generation::end_stream() {
  std::optional<ApiError> failure;
  for (const Choice& choice : choices_) {
    if (!failure) failure = failure_of(choice.completion);
  }
  if (failure) {
    emit(to_sse(to_json(*failure)));
  } else if (spec_.options.include_usage) {
    emit(to_sse(usage_chunk(spec_.identity, totals())));
  }
  emit(to_sse("[DONE]"));
  responder_->finish();
}

void Generation::respond_whole() {
  // On the I/O thread: a long answer with log-probabilities takes a while to write.
  responder_->post([self = shared_from_this()] {
    std::vector<FinishedChoice> finished;
    for (Choice& choice : self->choices_) {
      if (const auto failure = failure_of(choice.completion)) {
        return self->responder_->respond(to_response(*failure));
      }
      FinishedChoice& out = finished.emplace_back();
      out.text = std::move(choice.text);
      out.finish_reason = self->finish_reason_of(choice);
      out.tool_calls = std::move(choice.tool_calls);
      if (self->wants_logprobs()) out.logprobs = std::move(choice.logprobs);
    }
    HttpResponse response =
        json_response(200, whole_response(self->spec_.identity, finished, self->totals()));
    for (const Header& field : self->spec_.headers) response.headers.add(field.name, field.value);
    self->responder_->respond(std::move(response));
  });
}

}  // namespace assay
