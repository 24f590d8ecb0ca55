// The measured limits of this machine: what every share in the other benches is a share of.
//   limits_bench [--threads 0] [--json]
#include "bench/arguments.h"
#include "bench/figures.h"
#include "probe/machine_limits.h"

int main(int argc, char** argv) {
  using namespace assay;
  using namespace assay::bench;
  const Arguments arguments(argc, argv);
  const auto limits = measure_machine_limits({.n_threads = arguments.integer("--threads", 0)});
  if (!limits) {
    fmt::print(stderr, "{}\n", limits.error().message());
    return 1;
  }
  const auto threads = [](int n) { return fmt::format("{} thread{}", n, n == 1 ? "" : "s"); };
  std::vector<Figure> figures;
  for (const ArithmeticLimit& limit : limits->arithmetic) {
    figures.push_back({fmt::format("{} {}, {}", limit.isa, limit.arithmetic, threads(limit.threads)),
                       limit.operations_per_second * 1e-9, "Gop/s", {}, Better::kHigher, 7,
                       "register-only loop, best"});
  }
  for (const ReadLimit& limit : limits->reads) {
    figures.push_back({fmt::format("read {:g} MiB, {} pages, {}", static_cast<double>(limit.bytes) / (1 << 20),
                                   limit.huge_pages ? "huge" : "4 KiB", threads(limit.threads)),
                       limit.bytes_per_second * 1e-9, "GB/s", {}, Better::kHigher, 5, "best"});
  }
  for (const ForkJoinCost& cost : limits->fork_joins) {
    figures.push_back({fmt::format("fork and join, {}", threads(cost.threads)), cost.seconds * 1e6, "us", {},
                       Better::kLower, 2000, "median, less the work of a thread alone"});
  }
  return print(figures, arguments.has("--json"));
}
