// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/registry.h"
#include "sim/serving/request.h"

namespace orrery {

/// A recorded request trace as text.
struct TraceText {
  std::string name;  ///< what messages call it
  std::string text;
};

/// A request with the time at which it came, in seconds from any beginning.
struct TracedRequest {
  double seconds = 0;
  Request request;
};

/// A form of request traces. A file adds one with an object `const TraceFormats::Register`.
struct TraceFormat {
  /// Whether a text that begins like this is of the form.
  std::function<bool(std::string_view head)> recognises;
  /// All requests, in the order of the file. @throws config::ConfigError with file and line
  std::function<std::vector<TracedRequest>(const TraceText& trace)> read;
};
using TraceFormats = Registry<TraceFormat>;

/// Requests from the columns of a CSV.
struct TraceColumns {
  std::string time, prompt, output;  ///< names of columns
  /// Seconds of a cell of `time`. @throws std::invalid_argument where it is none
  std::function<double(std::string_view cell)> seconds;
};
/// Rows without tokens of a prompt or of an answer have one.
std::vector<TracedRequest> read_trace_columns(const TraceText& trace, const TraceColumns& columns);

/// Requests from a text with a JSON object a line.
/// @param request may throw std::invalid_argument
std::vector<TracedRequest> read_trace_lines(
    const TraceText& trace, const std::function<TracedRequest(const nlohmann::json&)>& request);

/// A time of a CSV that counts from its own beginning. @throws std::invalid_argument: it is none
double trace_time(std::string_view cell);

/// A time of a line's field. @throws std::invalid_argument: it has none
double traced_time(const nlohmann::json& line, const char* field);
/// Tokens of a line's field. @throws std::invalid_argument: it has none
std::int64_t traced_tokens(const nlohmann::json& line, const char* field);

/// What stands for a piece of a prompt. @throws std::invalid_argument where it is no integer
std::uint64_t piece_identifier(const nlohmann::json& value);

}  // namespace orrery
