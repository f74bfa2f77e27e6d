// SPDX-License-Identifier: Apache-2.0
#include "workloads/requests/trace_format.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "sim/config/csv.h"

namespace orrery {
namespace {

constexpr std::int64_t kMostTraceTokens = 100000000;

std::size_t column(const config::CsvReader& csv, const std::string& name) {
  if (const auto at = csv.find(name)) return *at;
  throw config::ConfigError(csv.name() + ":1:1: error: no column '" + name +
                            "': is it of another format?");
}

std::optional<std::int64_t> token_count(double value) {
  if (!(value >= 0 && value <= double(kMostTraceTokens))) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::int64_t tokens(config::CsvReader& csv, std::size_t at) {
  try {
    if (const auto count = token_count(trace_number(csv.cell(at))))
      return std::max<std::int64_t>(1, *count);
  } catch (const std::invalid_argument&) {
  }
  csv.error(at, "expected a number of tokens, got '" + std::string(csv.cell(at)) + "'");
  return 1;
}

}  // namespace

double trace_number(std::string_view cell) {
  double value = 0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (code != std::errc() || end != cell.data() + cell.size() || !(value == value))
    throw std::invalid_argument("no number");
  return value;
}

std::vector<TracedRequest> read_trace_columns(const TraceText& trace, const TraceColumns& columns) {
  config::CsvReader csv(trace.name, trace.text);
  const std::size_t time = column(csv, columns.time), prompt = column(csv, columns.prompt),
                    output = column(csv, columns.output);
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
    std::string fault;
    try {
      TracedRequest traced = request(nlohmann::json::parse(line));
      Request& r = traced.request;
      r.prompt = std::max<std::int64_t>(1, r.prompt);
      r.output = std::max<std::int64_t>(1, r.output);
      requests.push_back(std::move(traced));
    } catch (const nlohmann::json::exception& error) {
      fault = error.what();
    } catch (const std::invalid_argument& error) {
      fault = error.what();
    }
    if (!fault.empty())
      throw config::ConfigError(trace.name + ":" + std::to_string(number) + ":1: error: " + fault);
  }
  return requests;
}

std::int64_t traced_tokens(const nlohmann::json& line, const char* field) {
  if (const auto count = token_count(line.at(field).get<double>())) return *count;
  throw std::invalid_argument("'" + std::string(field) + "' is no number of tokens");
}

std::uint64_t piece_identifier(const nlohmann::json& value) {
  if (value.is_number_integer()) return value.get<std::uint64_t>();
  throw std::invalid_argument("an identifier of a piece is no integer of 64 bits: " +
                              value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

}  // namespace orrery
