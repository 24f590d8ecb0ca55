// What the live page shows: a sample a second of the last five minutes, and the state at the moment.
//
// Source of the percentiles: ServeMetrics' windows of the last minute. Ownership: owns its sampling thread;
// borrows the engine and the metrics, which must outlive it. Thread safety: any thread. Cost: a stats() a
// second; to_json() reads the page map (one byte a page).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "serve/serve_metrics.h"

namespace assay {

// What does not change while a server runs.
struct LiveIdentity {
  std::string model;
  std::string precision;
  int64_t context = 0;  // tokens
  int64_t created_unix_seconds = 0;
};

class LiveState {
 public:
  static std::unique_ptr<LiveState> start(LiveIdentity identity, const Engine& engine,
                                          const ServeMetrics& metrics);
  virtual ~LiveState() = default;

  // A JSON object: server, now, tenants, outcomes, kv_map, and the samples whose number is above `since`
  // (-1: all that are kept). `status` is "ok", "starting" or "draining".
  virtual std::string to_json(int64_t since, std::string_view status) const = 0;
};

// The page map in at most `max_cells` characters: f free, c cached, u used, s shared. Where a cell stands for
// several pages, it shows the state of most weight among them: shared, used, cached, free.
struct PageCells {
  int64_t pages_per_cell = 1;
  std::string cells;
};
PageCells to_cells(const std::vector<KvPageState>& pages, int64_t max_cells);

}  // namespace assay
