// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <stdexcept>

#include "workloads/requests/trace_format.h"

namespace orrery {
namespace {

/// Days from 1970-01-01 to a day of the Gregorian calendar (Fliegel and van Flandern, CACM 1968).
std::int64_t days(std::int64_t year, std::int64_t month, std::int64_t day) {
  const std::int64_t early = month <= 2 ? 1 : 0;
  const std::int64_t y = year + 4800 - early, m = month + 12 * early - 3;
  return day + (153 * m + 2) / 5 + 365 * y + y / 4 - y / 100 + y / 400 - 32045 - 2440588;
}

/// "2023-11-16 18:15:46.6805900", UTC, to seconds. What follows the seconds, such as "+00:00", is
/// left out: all rows have the same.
double azure_seconds(std::string_view cell) {
  constexpr std::array<std::size_t, 5> kPlaces = {0, 5, 8, 11, 14};
  constexpr std::size_t kSeconds = 17;
  if (cell.size() < kSeconds + 2) throw std::invalid_argument("too short");
  std::array<std::int64_t, 5> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const char* begin = cell.data() + kPlaces[i];
    const std::size_t length = i == 0 ? 4 : 2;
    const auto [end, code] = std::from_chars(begin, begin + length, parts[i]);
    if (code != std::errc() || end != begin + length) throw std::invalid_argument("no date");
  }
  double seconds = 0;
  const char* begin = cell.data() + kSeconds;
  if (std::from_chars(begin, cell.data() + cell.size(), seconds).ec != std::errc())
    throw std::invalid_argument("no seconds");
  const std::int64_t minutes = (days(parts[0], parts[1], parts[2]) * 24 + parts[3]) * 60 + parts[4];
  return static_cast<double>(minutes) * 60 + seconds;
}

const TraceFormats::Register registered_azure(
    "azure",
    "Azure LLM inference traces of 2023 and 2024, and of 2025 with images, which are left out",
    {[](std::string_view head) { return head.starts_with("TIMESTAMP,"); },
     [](const TraceText& trace) {
       return read_trace_columns(trace,
                                 {"TIMESTAMP", "ContextTokens", "GeneratedTokens", azure_seconds});
     }});

}  // namespace
}  // namespace orrery
