// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/serving_log.h"

#include <algorithm>
#include <array>

#include "validation/importers/numbers.h"

namespace orrery {
namespace {

constexpr std::string_view kTitle = "Serving Benchmark Result";

/// A row of the table, and the key of the JSON results that has its value.
constexpr auto kPrintedRows = std::to_array<std::pair<std::string_view, const char*>>({
    {"Backend:", "backend"},
    {"Traffic request rate:", "request_rate"},
    {"Request rate configured (RPS):", "request_rate"},
    {"Max request concurrency:", "max_concurrency"},
    {"Maximum request concurrency:", "max_concurrency"},
    {"Successful requests:", "completed"},
    {"Benchmark duration (s):", "duration"},
    {"Total input tokens:", "total_input_tokens"},
    {"Total generated tokens:", "total_output_tokens"},
    {"Request throughput (req/s):", "request_throughput"},
    {"Request goodput (req/s):", "request_goodput"},
    {"Input token throughput (tok/s):", "input_throughput"},
    {"Output token throughput (tok/s):", "output_throughput"},
    {"Total Token throughput (tok/s):", "total_token_throughput"},
    {"Total token throughput (tok/s):", "total_token_throughput"},
});

/// "Mean TTFT (ms):" as "mean_ttft_ms"; empty for what is none.
std::string statistic_key(std::string_view label) {
  constexpr std::pair<std::string_view, std::string_view> kStatistics[] = {{"Mean ", "mean_"},
                                                                           {"Median ", "median_"},
                                                                           {"P90 ", "p90_"},
                                                                           {"P95 ", "p95_"},
                                                                           {"P99 ", "p99_"}};
  constexpr std::pair<std::string_view, std::string_view> kFigures[] = {
      {"TTFT (ms):", "ttft_ms"},
      {"TPOT (ms):", "tpot_ms"},
      {"ITL (ms):", "itl_ms"},
      {"E2EL (ms):", "e2el_ms"},
      {"E2E Latency (ms):", "e2e_latency_ms"}};
  for (const auto& [statistic, prefix] : kStatistics) {
    if (!label.starts_with(statistic)) continue;
    for (const auto& [metric, key] : kFigures) {
      if (label.substr(statistic.size()) == metric) return std::string(prefix).append(key);
    }
  }
  return {};
}

std::string key_of(std::string_view label) {
  for (const auto& [row, key] : kPrintedRows) {
    if (label == row) return key;
  }
  return statistic_key(label);
}

/// The number of a text, or the text; nothing for "not set".
nlohmann::json value_of(std::string_view text) {
  if (text.empty() || text == "not set" || text == "None") return nullptr;
  if (const auto count = parse_count(text)) return *count;
  if (const auto real = parse_real(text)) return *real;
  if (text == "nan") return "";
  return std::string(text);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

/// Reads a row of a table, behind whatever a launcher put before it.
void read_printed_row(std::string_view line, nlohmann::json& object) {
  const std::size_t colon = line.rfind(':');
  if (colon == line.npos) return;
  const std::string_view label = line.substr(0, colon + 1);
  for (std::size_t at = 0; at < label.size(); ++at) {
    if (at > 0 && label[at - 1] != ' ' && label[at - 1] != '\t') continue;
    const std::string key = key_of(label.substr(at));
    if (key.empty()) continue;
    object[key] = value_of(trimmed(line.substr(colon + 1)));
    return;
  }
}

/// Behind the brace that closes the one at `start`; npos: none does.
std::size_t end_of_object(std::string_view text, std::size_t start) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t at = start; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '\\') ++at;
      quoted = c != '"' && c != '\n';  // strings of JSON have no line ends
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> json_objects_in(std::string_view text) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  int open = 0;  // braces that nothing closes: each costs a look at the rest of the text
  constexpr int kMostOpen = 100;
  for (std::size_t at = text.find('{'); at != text.npos && open < kMostOpen;) {
    const std::size_t quote = text.find_first_not_of(" \t\r\n", at + 1);
    std::size_t end = text.npos;
    if (quote != text.npos && text[quote] == '"') {
      end = end_of_object(text, at);
      open += end == text.npos ? 1 : 0;
    }
    if (end != text.npos) found.emplace_back(at, end - at);
    at = text.find('{', end == text.npos ? at + 1 : end);
  }
  return found;
}

std::vector<ServingResult> printed_results_in(std::string_view text) {
  std::vector<ServingResult> found;
  for (std::size_t at = text.find(kTitle); at != text.npos;) {
    ServingResult result{at, 0, nlohmann::json::object()};
    std::size_t line = std::min(text.find('\n', at), text.size());
    const std::size_t next = std::min(text.find(kTitle, at + 1), text.size());
    bool open = true;
    while (open && line < next) {
      const std::size_t end = std::min(text.find('\n', line + 1), text.size());
      const std::string_view row = trimmed(text.substr(line + 1, end - std::min(line + 1, end)));
      open = row.find("==========") == row.npos;
      if (open) read_printed_row(row, result.object);
      line = end;
    }
    result.size = std::min(line, next) - at;
    found.push_back(std::move(result));
    at = next < text.size() ? next : text.npos;
  }
  return found;
}

}  // namespace orrery
