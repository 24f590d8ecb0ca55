// Reads a contract from TOML, prints it as the JSON document that plans carry, and shows what a mistake looks
// like.
#include <cstdio>

#include "records/contract.h"
#include "records/json_codec.h"

int main() {
  const auto contract =
      assay::parse_contract("[quality]\nmax_mean_kl = 0.05\n[latency]\nttft = \"500 ms\"\n", "inline");
  if (!contract) return 1;
  std::fputs(assay::record_to_json(*contract).c_str(), stdout);
  const auto mistake = assay::parse_contract("[quality]\nmax_kl = 0.05\n", "inline");
  std::printf("a mistake reads: %s\n", mistake.error().message().c_str());
  return mistake ? 1 : 0;
}
