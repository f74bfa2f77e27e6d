// SPDX-License-Identifier: Apache-2.0
#include "workloads/requests/trace_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <variant>

#include "sim/config/csv.h"
#include "sim/config/json_text.h"

namespace orrery {
namespace {

constexpr std::int64_t kMostTraceTokens = 100000000;

constexpr double kMostSeconds = 1e11;  // 3,000 years

std::optional<std::int64_t> token_count(double value) {
  if (!(value >= 0 && value <= double(kMostTraceTokens)) || value != std::floor(value))
    return std::nullopt;
  return static_cast<std::int64_t>(value);
}

/// A number; none where a cell is no number.
std::optional<double> number(std::string_view cell) {
  double value = 0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (code != std::errc() || end != cell.data() + cell.size()) return std::nullopt;
  return value;
}

std::int64_t tokens(config::CsvReader& csv, std::size_t at) {
  const std::optional<double> value = number(csv.cell(at));
  const std::optional<std::int64_t> count = value ? token_count(*value) : std::nullopt;
  if (count) return std::max<std::int64_t>(1, *count);
  csv.error(at, "expected a number of tokens, got '" + std::string(csv.cell(at)) + "'");
  return 1;
}

/// The number of a field, of which messages say what it should be.
double field_number(const nlohmann::json& line, const char* field, const std::string& expected) {
  if (!line.is_object() || !line.contains(field))
    throw std::invalid_argument("no '" + std::string(field) + "', " + expected);
  if (!line[field].is_number())
    throw std::invalid_argument("'" + std::string(field) + "' is no number");
  return line[field].get<double>();
}

/// The request of a line; otherwise what is wrong with it, at which byte.
struct LineFault {
  std::string message;
  std::size_t byte = 1;
};
std::variant<TracedRequest, LineFault> read_line(
    const std::string& line, const std::function<TracedRequest(const nlohmann::json&)>& request) {
  try {
    TracedRequest traced = request(config::parse_json(line));
    traced.request.prompt = std::max<std::int64_t>(1, traced.request.prompt);
    traced.request.output = std::max<std::int64_t>(1, traced.request.output);
    return traced;
  } catch (const config::JsonFault& fault) {
    return LineFault{fault.what(), fault.byte};
  } catch (const std::invalid_argument& error) {
    return LineFault{error.what()};
  }
}

}  // namespace

double trace_time(std::string_view cell) {
  const std::optional<double> value = number(cell);
  if (!value || !(*value >= 0 && *value <= kMostSeconds)) throw std::invalid_argument("no time");
  return *value;
}

std::vector<TracedRequest> read_trace_columns(const TraceText& trace, const TraceColumns& columns) {
  config::CsvReader csv(trace.name, trace.text);
  const std::size_t time = csv.column(columns.time), prompt = csv.column(columns.prompt),
                    output = csv.column(columns.output);
  std::vector<TracedRequest> requests;
  while (csv.next()) {
    const std::int64_t in = tokens(csv, prompt);
    const std::int64_t out = tokens(csv, output);
    try {
      requests.push_back({columns.seconds(csv.cell(time)), {0, 0, in, out}});
    } catch (const std::invalid_argument&) {
      csv.error(time, "expected a time, got '" + std::string(csv.cell(time)) + "'");
    }
  }
  csv.throw_if_errors();
  return requests;
}

std::vector<TracedRequest> read_trace_lines(
    const TraceText& trace, const std::function<TracedRequest(const nlohmann::json&)>& request) {
  std::vector<TracedRequest> requests;
  config::Diagnostics diagnostics;
  std::istringstream lines(trace.text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto read = read_line(line, request);
    if (auto* traced = std::get_if<TracedRequest>(&read)) {
      requests.push_back(std::move(*traced));
      continue;
    }
    const auto& fault = std::get<LineFault>(read);
    if (!diagnostics.has_errors()) diagnostics.add_source(trace.name, trace.text);
    diagnostics.error({trace.name, number, static_cast<int>(fault.byte)}, 1, fault.message);
  }
  diagnostics.throw_if_errors();
  return requests;
}

double traced_time(const nlohmann::json& line, const char* field) {
  const double value = field_number(line, field, "the time at which a request came");
  if (value >= 0 && value <= kMostSeconds * 1e9) return value;  // of any unit from ns on
  throw std::invalid_argument("'" + std::string(field) + "' is no time");
}

std::int64_t traced_tokens(const nlohmann::json& line, const char* field) {
  if (const auto count = token_count(field_number(line, field, "a number of tokens")))
    return *count;
  throw std::invalid_argument("'" + std::string(field) + "' is no number of tokens");
}

std::uint64_t piece_identifier(const nlohmann::json& value) {
  if (value.is_number_integer()) return value.get<std::uint64_t>();
  throw std::invalid_argument("an identifier of a piece is no integer of 64 bits: " +
                              value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

}  // namespace orrery
