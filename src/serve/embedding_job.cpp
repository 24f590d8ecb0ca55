#include "serve/embedding_job.h"

#include <bit>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <iterator>
#include <utility>

#include "serve/base64.h"

namespace assay {
namespace {

namespace json = boost::json;

// Little-endian f32, as OpenAI's clients read it.
std::string base64_of(const std::vector<float>& vector) {
  std::string bytes;
  bytes.reserve(vector.size() * sizeof(float));
  for (const float value : vector) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 0xFFU);
  }
  return encode_base64(bytes);
}

json::value embedding_value(const std::vector<float>& vector, bool base64) {
  if (base64) return json::value(json::string(base64_of(vector)));
  json::array numbers;
  numbers.reserve(vector.size());
  for (const float value : vector) numbers.emplace_back(static_cast<double>(value));
  return numbers;
}

int64_t count_tokens(const std::vector<std::vector<int32_t>>& prompts) {
  int64_t count = 0;
  for (const auto& prompt : prompts) count += std::ssize(prompt);
  return count;
}

}  // namespace

class EmbeddingJob::Sink final : public StreamSink {
 public:
  Sink(std::shared_ptr<EmbeddingJob> job, size_t index) : job_(std::move(job)), index_(index) {}
  void on_token(const TokenEvent&) override {}
  void on_finish(const Completion& completion) override { job_->on_finish(index_, completion); }

 private:
  std::shared_ptr<EmbeddingJob> job_;
  size_t index_;
};

void normalise(std::vector<float>& vector) {
  double squares = 0;
  for (const float value : vector) squares += static_cast<double>(value) * value;
  if (!(squares > 0)) return;
  const double scale = 1 / std::sqrt(squares);
  for (float& value : vector) value = static_cast<float>(value * scale);
}

void EmbeddingJob::start(Engine& engine, EmbeddingSpec spec, std::shared_ptr<Responder> responder) {
  const auto job = std::make_shared<EmbeddingJob>(engine, std::move(spec), std::move(responder));
  job->submit_more();
  job->responder_->on_disconnect([job] { job->cancel_all(); });
}

EmbeddingJob::EmbeddingJob(Engine& engine, EmbeddingSpec spec, std::shared_ptr<Responder> responder)
    : engine_(engine),
      spec_(std::move(spec)),
      responder_(std::move(responder)),
      prompt_tokens_(count_tokens(spec_.prompts)),
      vectors_(spec_.prompts.size()),
      ids_(spec_.prompts.size()) {}

// On the I/O thread. No lock is held while the engine is called.
void EmbeddingJob::submit_more() {
  while (true) {
    size_t index = 0;
    GenerationRequest request;
    {
      const std::scoped_lock lock(mutex_);
      if (ended_ || next_ == spec_.prompts.size() || running_ == kTogether) return;
      index = next_++;
      ++running_;
      request.prompt = spec_.prompts[index];
    }
    request.max_tokens = 0;
    request.prompt_output.pooling = spec_.pooling;
    request.share = spec_.share;
    const auto id = engine_.submit(std::move(request), std::make_shared<Sink>(shared_from_this(), index));
    if (!id && id.error().code == ErrorCode::kResourceExhausted && put_back(index)) return;
    if (!id) return fail_with(engine_failure(id.error()));
    bool left = false;
    {
      const std::scoped_lock lock(mutex_);
      ids_[index] = *id;
      left = ended_;
    }
    if (left) engine_.cancel(*id);
  }
}

// The engine's queue is full: the input waits for another of this job to end, if there is one.
bool EmbeddingJob::put_back(size_t index) {
  const std::scoped_lock lock(mutex_);
  if (running_ < 2) return false;
  --running_;
  next_ = index;
  return true;
}

void EmbeddingJob::on_finish(size_t index, const Completion& completion) {
  const bool sound = completion.reason == FinishReason::kLength && !completion.pooled.empty();
  bool all = false;
  {
    const std::scoped_lock lock(mutex_);
    --running_;
    if (ended_) return;
    if (sound) {
      vectors_[index] = completion.pooled;
      all = ++done_ == vectors_.size();
      ended_ = all;
      if (all) spec_.admission.reset();
    }
  }
  auto self = shared_from_this();
  if (!sound) {
    const Error error =
        completion.reason == FinishReason::kCancelled
            ? Error{ErrorCode::kCancelled, "", "cancelled"}
            : completion.error.value_or(Error{ErrorCode::kInternal, "engine", "no states came back"});
    return responder_->post([self, error] { self->fail_with(engine_failure(error)); });
  }
  // Never from the step thread: it must neither wait for the engine nor write long answers.
  responder_->post([self, all] { all ? self->respond() : self->submit_more(); });
}

void EmbeddingJob::fail_with(ApiError error) {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    if (done_ == 0) spec_.admission->withdraw();
    spec_.admission.reset();
  }
  for (const RequestId id : ids_) {
    if (id != 0) engine_.cancel(id);
  }
  responder_->respond(to_response(error));
}

void EmbeddingJob::cancel_all() {
  std::vector<RequestId> ids;
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    spec_.admission.reset();
    ids = ids_;
  }
  for (const RequestId id : ids) {
    if (id != 0) engine_.cancel(id);
  }
}

void EmbeddingJob::respond() {
  json::array data;
  for (size_t i = 0; i < vectors_.size(); ++i) {
    normalise(vectors_[i]);
    data.push_back(json::object{
        {"object", "embedding"}, {"index", i}, {"embedding", embedding_value(vectors_[i], spec_.base64)}});
  }
  HttpResponse response = json_response(
      200, json::serialize(json::object{{"object", "list"},
                                        {"data", std::move(data)},
                                        {"model", spec_.model},
                                        {"usage", json::object{{"prompt_tokens", prompt_tokens_},
                                                               {"total_tokens", prompt_tokens_}}}}));
  for (const Header& field : spec_.headers) response.headers.add(field.name, field.value);
  responder_->respond(std::move(response));
}

}  // namespace assay
