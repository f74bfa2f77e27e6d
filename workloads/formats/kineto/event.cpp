// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/kineto/event.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace orrery::kineto {
namespace {

constexpr std::int64_t kMostTime = std::int64_t{1} << 62U;

}  // namespace

std::int64_t nanoseconds(std::string_view text) {
  std::int64_t whole = 0;
  const bool negative = text.starts_with('-');
  const char* const end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data() + (negative ? 1 : 0), end, whole);
  if (error != std::errc() || whole < 0 || whole >= kMostTime / 1000) return kUnknown;
  std::int64_t part = 0;
  if (at != end && *at == '.') {
    std::int64_t weight = 1000;
    for (++at; at != end && *at >= '0' && *at <= '9'; ++at) {
      if (weight == 1) {
        part += *at >= '5' ? 1 : 0;  // rounded; what follows does not matter
        weight = 0;
      } else if (weight > 1) {
        weight /= 10;
        part += weight * (*at - '0');
      }
    }
  }
  if (at == end) return (negative ? -1 : 1) * (whole * 1000 + part);
  const double value = std::strtod(std::string(text).c_str(), nullptr) * 1000;  // with an exponent
  if (!(std::abs(value) < static_cast<double>(kMostTime))) return kUnknown;
  return std::llround(value);
}

void Event::clear() {
  // The texts keep their room for the next event.
  phase = '\0';
  category = Category::kOther;
  name.clear();
  start = id = correlation = device = stream = bytes = waited_stream = waited_record = kUnknown;
  duration = process = thread = 0;
  wrong_time = false;
  operands.count = operands.types_count = 0;
  concrete.clear();
  if (has_collective) collective = {};
  has_collective = false;
}

}  // namespace orrery::kineto
