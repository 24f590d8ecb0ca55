// How a kernel finds four integer codes of each of sixteen lanes in 64 bytes.
#pragma once

namespace assay {

enum class Codes {
  kBytes,          // int8 codes, 0 .. 255
  kNibbles,        // int4 codes, a byte each
  kPackedNibbles,  // int4 codes, two a byte, as PackedMatrix holds them
};

constexpr int columns_per_line(Codes codes) {
  return codes == Codes::kPackedNibbles ? 8 : 4;
}

}  // namespace assay
