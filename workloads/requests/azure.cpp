// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <chrono>
#include <stdexcept>

#include "workloads/requests/trace_format.h"

namespace orrery {
namespace {

/// "2023-11-16 18:15:46.6805900", UTC, to seconds. What follows the seconds, such as "+00:00", is
/// left out: all rows have the same.
double azure_seconds(std::string_view cell) {
  constexpr std::array<std::size_t, 5> kPlaces = {0, 5, 8, 11, 14};
  constexpr std::string_view kForm = "0000-00-00 00:00:00";
  constexpr std::size_t kSeconds = 17;
  if (cell.size() < kForm.size()) throw std::invalid_argument("too short");
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] != '0' && cell[i] != kForm[i] && !(kForm[i] == ' ' && cell[i] == 'T'))
      throw std::invalid_argument("no date");
  std::array<int, 5> parts{};
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
  constexpr int kHours = 24, kMinutes = 60, kMostSeconds = 61;  // one may be a leap second
  if (parts[3] >= kHours || parts[4] >= kMinutes || seconds >= kMostSeconds)
    throw std::invalid_argument("no time of a day");
  using namespace std::chrono;  // NOLINT(google-build-using-namespace)
  const year_month_day date{year(parts[0]), month(static_cast<unsigned>(parts[1])),
                            day(static_cast<unsigned>(parts[2]))};
  if (!date.ok()) throw std::invalid_argument("no day of a calendar");
  const minutes whole = sys_days(date).time_since_epoch() + hours(parts[3]) + minutes(parts[4]);
  return static_cast<double>(whole.count()) * 60 + seconds;
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
