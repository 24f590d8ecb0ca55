#include "records/provenance.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <array>
#include <ctime>

#include "base/build_info.h"

namespace assay {

Provenance make_provenance(uint64_t seed, std::string command) {
  const BuildInfo build = build_info();
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return {.assay_version = std::string(build.version),
          .commit = std::string(build.commit),
          .compiler = std::string(build.compiler),
          .build_type = std::string(build.build_type),
          .host = host.data(),
          .started_at = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
          .command = std::move(command),
          .seed = seed};
}

}  // namespace assay
