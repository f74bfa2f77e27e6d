// SPDX-License-Identifier: Apache-2.0
// The JSON of a trace as events: RapidJSON's SAX parser, with its numbers as they are written,
// since a double cannot hold the nanoseconds of an epoch.
#include "workloads/formats/kineto/event.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "workloads/formats/base/rapid_reader.h"
#include "workloads/formats/kineto/handler.h"
#include "workloads/formats/kineto/mended_json.h"

namespace orrery::kineto {
namespace {

constexpr std::int64_t kMostTime = std::int64_t{1} << 62U;

void note_mended(const std::string& path, const MendedJson::Counts& counts,
                 std::vector<std::string>& notes) {
  const auto note = [&](std::uint64_t count, const char* what) {
    if (count > 0) notes.push_back(path + ": " + std::to_string(count) + what);
  };
  note(counts.control_characters, " control characters in texts, taken as spaces");
  note(counts.escapes, " escapes that JSON does not have, taken as question marks");
  note(counts.not_numbers, " values that are no numbers (NaN, infinity), left out");
  note(counts.long_texts, " texts longer than 64 KiB, cut");
}

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

Header read_events(ByteSource& source, EventSink& sink, std::vector<std::string>& notes) {
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag |
                              rapidjson::kParseNumbersAsStringsFlag |
                              rapidjson::kParseTrailingCommasFlag;
  MendedJson text(source);
  EventHandler handler(sink);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(text, handler);
  const std::string& path = source.path();
  if (result.IsError() && text.at_end() && handler.between_events_of_an_array()) {
    // Chrome's form allows it, for programs that are ended while they write.
    notes.push_back(path + ": the array of events is not closed");
  } else if (result.IsError()) {
    if (!handler.problem().empty()) refuse_at_byte(path, text.offset(), handler.problem());
    if (text.at_end()) refuse_at_byte(path, text.offset(), "the file ends too early");
    refuse_at_byte(path, text.offset(),
                   std::string("no JSON: ") + rapidjson::GetParseError_En(result.Code()));
  }
  if (!handler.has_events())
    throw config::ConfigError(path + ": has no traceEvents: no trace of the PyTorch profiler");
  note_mended(path, text.counts(), notes);
  return std::move(handler).header();
}

}  // namespace orrery::kineto
