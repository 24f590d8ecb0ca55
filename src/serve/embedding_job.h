// One request for embeddings in flight: its inputs as sequences without an answer, a few at a time, so that a
// long list neither fills the engine's queue nor holds the others back. The vectors are the final hidden
// states, pooled and scaled to length 1. Threads: as Generation. The engine must outlive every job that it
// has not finished.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "http/server.h"
#include "serve/api_error.h"
#include "tenants/tenant.h"

namespace assay {

struct EmbeddingSpec {
  std::string model;
  std::vector<std::vector<int32_t>> prompts;
  Pooling pooling = Pooling::kMean;
  bool base64 = false;
  RequestClass share;
  std::shared_ptr<Tenant::Admission> admission;
  Headers headers;
};

class EmbeddingJob : public std::enable_shared_from_this<EmbeddingJob> {
 public:
  static void start(Engine& engine, EmbeddingSpec spec, std::shared_ptr<Responder> responder);
  EmbeddingJob(Engine& engine, EmbeddingSpec spec, std::shared_ptr<Responder> responder);

 private:
  class Sink;
  static constexpr size_t kTogether = 32;  // inputs in the engine at one time

  void submit_more();
  bool put_back(size_t index);
  void on_finish(size_t index, const Completion& completion);
  void fail_with(ApiError error);
  void respond();
  void cancel_all();

  Engine& engine_;
  EmbeddingSpec spec_;
  const std::shared_ptr<Responder> responder_;
  const int64_t prompt_tokens_;

  std::mutex mutex_;
  std::vector<std::vector<float>> vectors_;  // [prompts][n_embedding]
  std::vector<RequestId> ids_;
  size_t next_ = 0;
  size_t running_ = 0;
  size_t done_ = 0;
  bool ended_ = false;  // answered, refused or left
};

// Scaled to length 1; a vector of zeros stays.
void normalise(std::vector<float>& vector);

}  // namespace assay
