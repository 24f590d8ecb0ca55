// The server under load, beside llama-server on the same file with the same threads: throughput and gaps of
// 16 streams, chats beside long prompts, a shared prefix, two tenants, and what HTTP and scheduling cost.
//
//   serve_bench --assay PATH --model FILE [--llama-server PATH] [--threads 2] [--rounds 3] [--only
//   streams,mixed,
//               prefix,tenants] [--seconds 60] [--precision TEXT] [--json]
//
// Both servers run by turns, never together. The client's threads run on the same CPUs as the server, for
// both.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "base/units.h"
#include "bench/arguments.h"
#include "bench/figures.h"
#include "bench/serve/completion_client.h"
#include "bench/serve/server_process.h"

namespace assay::bench {
namespace {

struct Setup {
  std::string assay, llama_server, model, precision;
  int threads = 2;
  int rounds = 3;
  double seconds = 60;
};

Result<ServerProcess> start_assay(const Setup& setup, const std::vector<std::string>& more = {}) {
  const int port = free_port();
  std::vector<std::string> words = {setup.assay, "serve",
                                    "--model",   setup.model,
                                    "--port",    std::to_string(port),
                                    "--threads", std::to_string(setup.threads)};
  if (!setup.precision.empty()) words.insert(words.end(), {"--precision", setup.precision});
  words.insert(words.end(), more.begin(), more.end());
  return ServerProcess::start("assay", std::move(words), port);
}

Result<ServerProcess> start_llama(const Setup& setup) {
  const int port = free_port();
  return ServerProcess::start(
      "llama-server",
      {setup.llama_server, "-m", setup.model, "--host", "127.0.0.1", "--port", std::to_string(port), "-t",
       std::to_string(setup.threads), "-np", "16", "-c", "40960", "--no-webui"},
      port);
}

// --- 16 streams ---

struct StreamsResult {
  double tokens_per_second = 0;
  double p99_gap = 0;
  double overhead = 0;  // of step time; ours only
};

constexpr int kStreams = 16, kPromptTokens = 128, kAnswerTokens = 128;

Result<StreamsResult> run_streams(const ServerProcess& server, uint64_t seed) {
  std::vector<CompletionTimes> all(kStreams);
  const auto step_seconds = [&] { return server.metric("assay_step_seconds_total"); };
  const double io_before = server.thread_seconds("http-io"),
               plan_before = server.metric("assay_plan_seconds_total"), steps_before = step_seconds();
  const double start = now_seconds();
  in_parallel(kStreams, [&](int i) {
    all[static_cast<size_t>(i)] = complete(
        server, {random_prompt(kPromptTokens, seed * 100 + static_cast<uint64_t>(i)), kAnswerTokens, {}});
  });
  const double seconds = now_seconds() - start;
  std::vector<double> gaps;
  for (const CompletionTimes& times : all) {
    if (!times.ok(kAnswerTokens))
      return fail(ErrorCode::kInternal, server.name(), "status {}, {} tokens of {}", times.status,
                  times.tokens, kAnswerTokens);
    times.add_gaps(gaps);
  }
  const double spent =
      server.thread_seconds("http-io") - io_before + server.metric("assay_plan_seconds_total") - plan_before;
  const double steps = step_seconds() - steps_before;
  return StreamsResult{kStreams * kAnswerTokens / seconds, quantile_of(gaps, 0.99),
                       steps > 0 ? spent / steps : 0};
}

template <class T, class Field>
double median_of(const std::vector<T>& results, Field field) {
  std::vector<double> values;
  for (const T& result : results) values.push_back(result.*field);
  return quantile_of(values, 0.5);
}

Result<void> measure_streams(const Setup& setup, std::vector<Figure>& figures) {
  std::vector<StreamsResult> ours, theirs;
  for (int round = 0; round < setup.rounds; ++round) {
    const auto seed = static_cast<uint64_t>(round) + 1;
    {
      ASSIGN_OR_RETURN(const ServerProcess server, start_assay(setup));
      RETURN_IF_ERROR(run_streams(server, 90 + seed));  // warm
      ASSIGN_OR_RETURN(ours.emplace_back(), run_streams(server, seed));
    }
    if (setup.llama_server.empty()) continue;
    ASSIGN_OR_RETURN(const ServerProcess server, start_llama(setup));
    RETURN_IF_ERROR(run_streams(server, 90 + seed));
    ASSIGN_OR_RETURN(theirs.emplace_back(), run_streams(server, seed));
  }
  const std::string how = fmt::format(
      "16 concurrent streams, 128 random tokens in and 128 out; median of {} rounds", setup.rounds);
  const double rate = median_of(ours, &StreamsResult::tokens_per_second),
               gap = median_of(ours, &StreamsResult::p99_gap);
  figures.push_back({"16 streams, output", rate, "tokens/s", {}, Better::kHigher, setup.rounds, how});
  figures.push_back({"16 streams, P99 ITL", gap * 1e3, "ms", {}, Better::kLower, setup.rounds, how});
  figures.push_back({"HTTP and scheduling, share of step time",
                     100 * median_of(ours, &StreamsResult::overhead), "%", 3.0, Better::kLower, setup.rounds,
                     "CPU time of the I/O thread and time of planning, over time of steps"});
  if (theirs.empty()) return {};
  const double their_rate = median_of(theirs, &StreamsResult::tokens_per_second),
               their_gap = median_of(theirs, &StreamsResult::p99_gap);
  figures.push_back(
      {"16 streams, output, llama-server", their_rate, "tokens/s", {}, Better::kHigher, setup.rounds, how});
  figures.push_back(
      {"16 streams, output, ours / theirs", rate / their_rate, "x", 2.0, Better::kHigher, setup.rounds, how});
  figures.push_back(
      {"16 streams, P99 ITL, llama-server", their_gap * 1e3, "ms", {}, Better::kLower, setup.rounds, how});
  figures.push_back(
      {"16 streams, P99 ITL, ours / theirs", gap / their_gap, "x", 1.0, Better::kLower, setup.rounds, how});
  return {};
}

// --- chats beside long prompts ---

struct MixedResult {
  double p99_gap = 0;
  double p99_ttft = 0;
  double long_ttft = 0;  // median of the long prompts
  int n_failed = 0;      // requests without their whole answer
};

Result<MixedResult> run_mixed(const ServerProcess& server, bool long_prompts, double seconds, uint64_t seed) {
  Random random(seed, "arrivals");
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::vector<double> gaps, ttfts, long_ttfts;
  int n_bad = 0;
  const double start = now_seconds();
  double next_chat = 0, next_long = 2.5;
  uint64_t id = 0;
  const auto launch = [&](CompletionSpec spec, bool is_long) {
    threads.emplace_back([&, is_long, own = std::move(spec)] {
      const CompletionTimes times = complete(server, own);
      const std::scoped_lock lock(mutex);
      if (!times.ok(own.max_tokens)) {
        ++n_bad;
      } else if (is_long) {
        long_ttfts.push_back(times.ttft());
      } else {
        times.add_gaps(gaps);
        ttfts.push_back(times.ttft());
      }
    });
  };
  while (true) {
    const double next = long_prompts ? std::min(next_chat, next_long) : next_chat;
    if (next > seconds) break;
    std::this_thread::sleep_for(std::chrono::duration<double>(std::max(0.0, start + next - now_seconds())));
    if (next == next_chat) {
      launch({random_prompt(128, seed * 100000 + ++id), 64, {}}, false);
      next_chat += random.exponential(2.0);
    } else {
      launch({random_prompt(2048, seed * 100000 + 50000 + ++id), 1, {}}, true);
      next_long += 5;
    }
  }
  for (std::thread& thread : threads) thread.join();
  return MixedResult{quantile_of(gaps, 0.99), quantile_of(ttfts, 0.99), quantile_of(long_ttfts, 0.5), n_bad};
}

Result<void> measure_mixed(const Setup& setup, std::vector<Figure>& figures) {
  const auto add = [&](const ServerProcess& server, std::optional<double> bound) -> Result<void> {
    std::vector<double> ratios, with, without, long_ttfts;
    int n_failed = 0;
    RETURN_IF_ERROR(run_streams(server, 77));  // warm; ours learns its speed
    for (int round = 0; round < setup.rounds; ++round) {
      const auto seed = static_cast<uint64_t>(round) + 1;
      ASSIGN_OR_RETURN(const MixedResult alone, run_mixed(server, false, setup.seconds, seed));
      ASSIGN_OR_RETURN(const MixedResult beside, run_mixed(server, true, setup.seconds, seed + 10));
      ratios.push_back(beside.p99_gap / alone.p99_gap);
      with.push_back(beside.p99_gap * 1e3);
      without.push_back(alone.p99_gap * 1e3);
      long_ttfts.push_back(beside.long_ttft * 1e3);
      n_failed += alone.n_failed + beside.n_failed;
    }
    const std::string how = fmt::format(
        "chats 128/64 at 2/s (Poisson) for {:.0f} s, without and with a 2,048-token prompt every 5 s; median "
        "of {} rounds",
        setup.seconds, setup.rounds);
    const auto figure = [&](const std::string& name, const std::vector<double>& values, const char* unit,
                            std::optional<double> limit) {
      figures.push_back({fmt::format("mixed load, {}, {}", name, server.name()), quantile_of(values, 0.5),
                         unit, limit, Better::kLower, setup.rounds, how});
    };
    figure("P99 ITL of chats alone", without, "ms", {});
    figure("P99 ITL of chats beside long prompts", with, "ms", {});
    figure("P99 ITL with / without", ratios, "x", bound);
    figure("median TTFT of the long prompts", long_ttfts, "ms", {});
    figure("requests that failed", {static_cast<double>(n_failed)}, "",
           bound ? std::optional<double>(0) : std::nullopt);
    return {};
  };
  {
    ASSIGN_OR_RETURN(const ServerProcess server, start_assay(setup));
    RETURN_IF_ERROR(add(server, 2.0));
  }
  if (setup.llama_server.empty()) return {};
  ASSIGN_OR_RETURN(const ServerProcess server, start_llama(setup));
  return add(server, std::nullopt);
}

// --- a shared prefix ---

Result<void> measure_prefix(const Setup& setup, std::vector<Figure>& figures) {
  const auto computed = [](const ServerProcess& server) {
    return server.metric("assay_prompt_tokens_total") - server.metric("assay_prefix_cached_tokens_total");
  };
  const auto run = [&](int n) -> Result<double> {
    ASSIGN_OR_RETURN(const ServerProcess server, start_assay(setup));
    const double before = computed(server);
    in_parallel(n, [&](int i) {
      CompletionSpec spec{random_prompt(1024, 5), 4, {}};
      spec.prompt.push_back(1000 + i);
      complete(server, spec);
    });
    return computed(server) - before;
  };
  ASSIGN_OR_RETURN(const double one, run(1));
  ASSIGN_OR_RETURN(const double sixteen, run(16));
  figures.push_back(
      {"shared 1,024-token prefix, prompt tokens computed for 16 requests / for one", sixteen / one, "x", 1.1,
       Better::kLower, 1,
       fmt::format(
           "16 requests at once, one more token each; {:.0f} and {:.0f} tokens, by the server's counters",
           sixteen, one)});
  return {};
}

// --- two tenants ---

class TenantFile {
 public:
  explicit TenantFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / fmt::format("serve_bench_{}.toml", ::getpid())) {
    std::ofstream(path_) << text;
    std::filesystem::permissions(path_,
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  ~TenantFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string tenants_toml(double weight_a, double weight_b) {
  return fmt::format(
      "[[tenant]]\nname = \"a\"\nkeys = [\"sk-bench-tenant-a-0123456789\"]\nweight = {}\n\n"
      "[[tenant]]\nname = \"b\"\nkeys = [\"sk-bench-tenant-b-0123456789\"]\nweight = {}\nadmin = true\n",
      weight_a, weight_b);
}
const std::string kKeyA = "sk-bench-tenant-a-0123456789", kKeyB = "sk-bench-tenant-b-0123456789";

// Closed loop: `n` connections of a tenant until `stop`; tokens received between the first and the last
// sixth.
void keep_busy(const ServerProcess& server, const std::string& key, int n, int prompt, int answer,
               double until, const std::function<void(double at)>& on_token) {
  in_parallel(n, [&](int i) {
    for (uint64_t round = 0; now_seconds() < until; ++round) {
      const CompletionTimes times = complete(
          server,
          {random_prompt(prompt, std::hash<std::string>{}(key) + static_cast<uint64_t>(i) * 1000 + round),
           answer, key});
      for (const double at : times.pieces) on_token(at);
      if (times.status != 200) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
}

Result<void> measure_shares(const Setup& setup, std::vector<Figure>& figures) {
  const TenantFile file(tenants_toml(3, 1));
  ASSIGN_OR_RETURN(const ServerProcess server, start_assay(setup, {"--api-keys", file.path()}));
  const double start = now_seconds(), end = start + setup.seconds;
  std::atomic<int64_t> tokens[2] = {0, 0};
  in_parallel(2, [&](int tenant) {
    keep_busy(server, tenant == 0 ? kKeyA : kKeyB, 24, 128, 64, end, [&, tenant](double at) {
      if (at > start + setup.seconds / 6 && at < end) ++tokens[tenant];
    });
  });
  const double ratio = static_cast<double>(tokens[0]) / static_cast<double>(std::max<int64_t>(tokens[1], 1));
  const std::string how =
      fmt::format("24 connections each, 128/64 tokens, {:.0f} s; pieces received {} and {}", setup.seconds,
                  tokens[0].load(), tokens[1].load());
  figures.push_back({"two tenants of weights 3:1, distance of their tokens from 3:1",
                     100 * std::abs(ratio / 3 - 1), "%", 5.0, Better::kLower, 1, how});
  return {};
}

// P99 TTFT of a tenant that sends a request every now and then.
double quiet_ttft(const ServerProcess& server, double seconds, uint64_t seed, uint64_t prompts, int& n) {
  Random random(seed, "quiet");
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::vector<double> ttfts;
  const double start = now_seconds();
  for (double next = 0.5; next < seconds; next += random.exponential(1.0)) {
    std::this_thread::sleep_for(std::chrono::duration<double>(std::max(0.0, start + next - now_seconds())));
    threads.emplace_back([&, id = ++prompts * 1000] {
      const CompletionTimes times = complete(server, {random_prompt(256, id), 16, kKeyB});
      const std::scoped_lock lock(mutex);
      if (times.ok(16)) ttfts.push_back(times.ttft());
    });
  }
  for (std::thread& thread : threads) thread.join();
  n = static_cast<int>(ttfts.size());
  return quantile_of(ttfts, 0.99);
}

Result<void> measure_flood(const Setup& setup, std::vector<Figure>& figures) {
  const TenantFile file(tenants_toml(1, 1));
  ASSIGN_OR_RETURN(const ServerProcess server, start_assay(setup, {"--api-keys", file.path()}));
  std::vector<double> alone, flooded;
  int n = 0;
  quiet_ttft(server, 5, 999, 9990, n);  // warm
  for (int round = 0; round < setup.rounds; ++round) {
    const auto seed = static_cast<uint64_t>(round) * 7 + 1;
    alone.push_back(quiet_ttft(server, setup.seconds, seed, seed, n));
    std::thread flood(
        [&] { keep_busy(server, kKeyA, 32, 128, 128, now_seconds() + setup.seconds + 1, [](double) {}); });
    std::this_thread::sleep_for(std::chrono::seconds(1));
    flooded.push_back(
        quiet_ttft(server, setup.seconds, seed, seed + 500, n));  // the same arrivals, other prompts
    flood.join();
  }
  const double before = quantile_of(alone, 0.5), after = quantile_of(flooded, 0.5);
  const std::string how = fmt::format(
      "256/16 tokens at 1/s (Poisson), {:.0f} s, {} requests a round, without and with 32 connections of the "
      "other tenant (128/128); median of {} rounds",
      setup.seconds, n, setup.rounds);
  figures.push_back(
      {"quiet tenant, P99 TTFT alone", before * 1e3, "ms", {}, Better::kLower, setup.rounds, how});
  figures.push_back(
      {"quiet tenant, P99 TTFT beside a flood", after * 1e3, "ms", {}, Better::kLower, setup.rounds, how});
  figures.push_back({"quiet tenant, P99 TTFT moved by the flood", 100 * (after / before - 1), "%", 20.0,
                     Better::kLower, setup.rounds, how});
  return {};
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  using namespace assay;
  using namespace assay::bench;
  const Arguments arguments(argc, argv);
  Setup setup{.assay = arguments.text("--assay", ""),
              .llama_server = arguments.text("--llama-server", ""),
              .model = arguments.text("--model", ""),
              .precision = arguments.text("--precision", "w=file a=int8 kv=f16"),
              .threads = arguments.integer("--threads", 2),
              .rounds = arguments.integer("--rounds", 3),
              .seconds = static_cast<double>(arguments.integer("--seconds", 60))};
  if (setup.assay.empty() || setup.model.empty()) {
    std::cerr
        << "usage: serve_bench --assay PATH --model FILE [--llama-server PATH] [--threads N] [--rounds N]\n"
           "       [--seconds N] [--precision TEXT] [--only streams,mixed,prefix,shares,flood] [--json]\n";
    return 2;
  }
  const std::string only = arguments.text("--only", "streams,mixed,prefix,shares,flood");
  std::vector<Figure> figures;
  const std::pair<const char*, Result<void> (*)(const Setup&, std::vector<Figure>&)> parts[] = {
      {"streams", measure_streams},
      {"mixed", measure_mixed},
      {"prefix", measure_prefix},
      {"shares", measure_shares},
      {"flood", measure_flood}};
  for (const auto& [name, measure] : parts) {
    if (only.find(name) == std::string::npos) continue;
    if (const auto done = measure(setup, figures); !done) {
      std::cerr << "serve_bench: " << done.error().message() << "\n";
      return 1;
    }
  }
  return print(figures, wants_json(argc, argv));
}
