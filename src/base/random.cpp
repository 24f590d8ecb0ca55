#include "base/random.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace assay {
namespace {

uint64_t splitmix64(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// FNV-1a, 64 bits.
uint64_t hash_name(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

Random::Random(uint64_t seed, std::string_view stream) {
  uint64_t mixed = seed ^ hash_name(stream);
  for (uint64_t& word : state_) word = splitmix64(mixed);
}

uint64_t Random::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

uint64_t Random::below(uint64_t n) {
  CHECK(n > 0);
  const uint64_t threshold = -n % n;  // reject the part that would bias the remainder
  for (;;) {
    if (const uint64_t value = next(); value >= threshold) return value % n;
  }
}

int64_t Random::between(int64_t low, int64_t high) {
  CHECK_OP(low, <=, high);
  const uint64_t distance = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const uint64_t offset = distance == UINT64_MAX ? next() : below(distance + 1);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

double Random::normal() {
  const double u = 1.0 - uniform();  // in (0, 1]
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * uniform());
}

double Random::exponential(double rate) {
  return -std::log(1.0 - uniform()) / rate;
}

}  // namespace assay
