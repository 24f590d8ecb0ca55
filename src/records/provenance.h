// Where a measurement comes from: enough to rerun it and to know which build and machine made it.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>

namespace assay {

struct Provenance {
  std::string assay_version;
  std::string commit;
  std::string compiler;
  std::string build_type;
  std::string host;        // host name
  std::string started_at;  // UTC, ISO 8601
  std::string command;     // as typed, where there is one
  uint64_t seed = 0;
};
BOOST_DESCRIBE_STRUCT(Provenance, (),
                      (assay_version, commit, compiler, build_type, host, started_at, command, seed))

// Of this process, now.
Provenance make_provenance(uint64_t seed, std::string command = {});

}  // namespace assay
