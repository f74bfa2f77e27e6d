// SPDX-License-Identifier: Apache-2.0
// Results of the serving benchmarks of vLLM (`vllm bench serve --save-result`, one JSON object, or
// one a line with --append-result) and SGLang (`sglang.bench_serving --output-file`, one a line),
// which grew from one program and differ in a few names (docs.vllm.ai, "vllm bench serve";
// docs.sglang.ai, "Bench Serving Guide"); in files of their own, or in a log. Where a log has no
// JSON, the tables that both print are read.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/config/diagnostics.h"
#include "validation/importers/importer.h"
#include "validation/importers/log_text.h"
#include "validation/importers/serving_log.h"

namespace orrery {
namespace {

using nlohmann::json;

/// A column of ours, and the keys that hold it, the newest first.
struct Key {
  std::string column;
  std::vector<std::string> names;
  enum class Need { kRequired, kOptional, kSetting } need = Need::kOptional;
};

/// The metrics are those of a serving experiment; the settings before them say what was run.
std::vector<Key> keys_of(bool sglang) {
  using Need = Key::Need;
  std::vector<Key> keys = {
      {"model", {"model_id", "model"}, Need::kSetting},
      {"backend", {"backend", "endpoint_type"}, Need::kSetting},
      {"request_rate", {"request_rate"}, Need::kSetting},
      {"max_concurrency", {"max_concurrency"}, Need::kSetting},
      {"duration_s", {"duration"}},
      {"total_input_tokens", {"total_input_tokens", "total_input"}},
      {"total_output_tokens", {"total_output_tokens", "total_output"}},
      {"completed", {"completed"}, Need::kRequired},
      {"request_throughput", {"request_throughput"}, Need::kRequired},
      {"request_goodput", {"request_goodput", "request_goodput:"}},  // a slip of early vLLM
      {"output_throughput", {"output_throughput"}, Need::kRequired},
      {"total_token_throughput", {sglang ? "total_throughput" : "total_token_throughput"}}};
  for (const std::string metric : {"ttft", "tpot", "itl", "e2el"}) {
    const std::string ours = "_" + metric + "_ms";
    const std::string theirs = sglang && metric == "e2el" ? "_e2e_latency_ms" : ours;
    for (const std::string statistic : {"mean", "median", "p90", "p95", "p99"}) {
      keys.push_back({statistic + ours, {statistic + theirs}});
    }
  }
  return keys;
}

/// Python writes numbers that JSON does not have; SGLang's request_rate is Infinity by default.
/// They become texts of the same length, so that places in messages stay right.
std::string with_json_numbers(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kNumbers[] = {
      {"-Infinity", "\"-inf\"   "}, {"Infinity", "\"inf\"   "}, {"NaN", "\"\" "}};
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[i] == '-' || text[i] == 'I' || text[i] == 'N')) {
      const auto found = std::find_if(std::begin(kNumbers), std::end(kNumbers), [&](const auto& n) {
        return text.compare(i, n.first.size(), n.first) == 0;
      });
      if (found == std::end(kNumbers)) continue;
      text.replace(i, found->first.size(), found->second);
      i += found->first.size() - 1;
    }
  }
  return text;
}

/// A number from 0 on, or a text where that may be; nothing for what else there is. The empty text
/// stands for NaN.
std::optional<ImportedCell> to_cell(const json& value, bool text_allowed) {
  constexpr std::uint64_t kMostExact = std::uint64_t{1} << 53;  // of doubles, which Python wrote
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= kMostExact) {
    return static_cast<std::int64_t>(value.get<std::uint64_t>());
  }
  if (value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0) {
    return value.get<double>();
  }
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text.empty()) return ImportedCell();
  if (text_allowed) return text;
  return std::nullopt;
}

/// Whether the keys of a result are those that only this program writes.
bool is_of(const json& object, bool sglang) {
  static const std::vector<std::string> of_sglang = {
      "mean_e2e_latency_ms", "median_e2e_latency_ms", "total_output_tokens_retokenized",
      "sharegpt_output_len", "random_input_len",      "input_throughput"};
  static const std::vector<std::string> of_vllm = {"model_id", "tokenizer_id", "endpoint_type",
                                                   "mean_e2el_ms", "median_e2el_ms"};
  const auto& keys = sglang ? of_sglang : of_vllm;
  return std::any_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return object.contains(key); });
}

class ServingReader {
 public:
  ServingReader(const std::string& path, bool sglang)
      : path_(path), text_(read_log(path)), sglang_(sglang), keys_(keys_of(sglang)) {}

  ImportedTable read() {
    ImportedTable table;
    for (const Key& key : keys_) table.columns.push_back(key.column);
    for (const ServingResult& record : records()) table.rows.push_back(row(record));
    diagnostics_.throw_if_errors();
    if (table.rows.empty()) throw config::ConfigError(path_ + ": holds no result");
    if (left_out_ > 0)
      table.notes.push_back(
          fmt::format("{}: left out {} printed table{} beside the results in JSON", path_,
                      left_out_, left_out_ == 1 ? "" : "s"));
    return table;
  }

 private:
  /// One object a line where the first line is whole, and else one text: an object or a list.
  /// Where that is no JSON, the objects and tables between the lines of a log.
  std::vector<ServingResult> records() {
    const std::size_t first = std::min(text_.find_first_not_of(" \t\r\n"), text_.size());
    const std::size_t line_end = std::min(text_.find('\n', first), text_.size());
    std::vector<ServingResult> all = logged_records(first, line_end);
    if (!all.empty()) return all;
    if (!is_json(first, line_end)) {
      add_parsed(0, text_.size(), all);
      return all;
    }
    for (std::size_t at = first; at < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      const std::size_t word = text_.find_first_not_of(" \t\r\n", at);
      if (word < end) add_parsed(at, end - at, all);
      at = end + 1;
    }
    return all;
  }

  bool is_json(std::size_t start, std::size_t end) const {
    return json::accept(with_json_numbers(text_.substr(start, end - start)));
  }

  /// Results in a text that does not begin with JSON, or has other lines after it.
  std::vector<ServingResult> logged_records(std::size_t first, std::size_t line_end) {
    std::vector<ServingResult> all;
    const bool begins = first < text_.size() && (text_[first] == '{' || text_[first] == '[');
    if (begins && (is_json(first, line_end) || is_json(0, text_.size()))) return all;
    for (const auto& [start, size] : json_objects_in(text_)) {
      json object = json::parse(with_json_numbers(text_.substr(start, size)), keep_results, false);
      if (object.is_object() && object.contains("completed") &&
          (object.contains("duration") || object.contains("output_throughput"))) {
        all.push_back({start, size, std::move(object)});
      }
    }
    std::vector<ServingResult> printed = printed_results_in(text_);
    if (!all.empty()) {
      left_out_ = printed.size();
      return all;
    }
    for (ServingResult& result : printed) {
      // Both print the total under nearly the same name.
      if (sglang_ && result.object.contains("total_token_throughput")) {
        result.object["total_throughput"] = result.object["total_token_throughput"];
      }
    }
    return printed;
  }

  // Arrays below the object are the times of each request: not read, and often the bulk.
  static bool keep_results(int depth, json::parse_event_t event, json& /*value*/) {
    return event != json::parse_event_t::array_start || depth == 0;
  }

  void add_parsed(std::size_t start, std::size_t size, std::vector<ServingResult>& all) {
    json parsed;
    try {
      parsed = json::parse(with_json_numbers(text_.substr(start, size)), keep_results);
    } catch (const json::parse_error& fault) {
      error(start + (fault.byte > 0 ? fault.byte - 1 : 0), 1, "is not JSON");
      return;
    } catch (const json::out_of_range&) {
      error(start, 1, "has a number that is too large");
      return;
    }
    if (parsed.is_object()) {
      all.push_back({start, size, std::move(parsed)});
    } else if (parsed.is_array() && !parsed.empty() && parsed.front().is_object()) {
      for (json& object : parsed) all.push_back({start, size, std::move(object)});
    } else {
      error(start, 1, "is no object with the results of a benchmark");
    }
  }

  std::vector<ImportedCell> row(const ServingResult& record) {
    std::vector<ImportedCell> cells;
    if (!record.object.is_object()) {
      error(record.start, 1, "is no object with the results of a benchmark");
      return cells;
    }
    if (!check_program(record)) return cells;
    const ServingResult whole{record.start, record.size, with_throughputs(record.object)};
    for (const Key& key : keys_) cells.push_back(cell(whole, key));
    fill_total_throughput(whole, cells);
    return cells;
  }

  /// Refuses results of the other program, which keys of its own tell, and else the backend.
  bool check_program(const ServingResult& record) {
    const std::string ours = sglang_ ? "sglang" : "vllm", other = sglang_ ? "vllm" : "sglang";
    if (is_of(record.object, sglang_) && !is_of(record.object, !sglang_)) return true;
    const auto backend = record.object.find("backend");
    const bool other_backend = backend != record.object.end() && backend->is_string() &&
                               backend->get_ref<const std::string&>().starts_with(other);
    if (!other_backend && !is_of(record.object, !sglang_)) return true;
    const std::string message =
        fmt::format("is a result of {0}'s benchmark, not of {1}'s; read it by `orrery import {0}`",
                    other, ours);
    if (other_backend) {
      error_of_key(record, "backend", message);
    } else {
      error(record.start, 1, message);
    }
    return false;
  }

  /// Results of early 2025 have no throughputs: counts over the duration are what the programs
  /// divide.
  static json with_throughputs(json object) {
    constexpr std::pair<const char*, const char*> kRates[] = {
        {"request_throughput", "completed"}, {"output_throughput", "total_output_tokens"}};
    for (const auto& [rate, count] : kRates) {
      const auto number = object.find(count), duration = object.find("duration");
      if (object.contains(rate) || number == object.end() || duration == object.end() ||
          !number->is_number() || !duration->is_number() || !(duration->get<double>() > 0)) {
        continue;
      }
      const double quotient = number->get<double>() / duration->get<double>();
      if (std::isfinite(quotient)) object[rate] = quotient;
    }
    return object;
  }

  ImportedCell cell(const ServingResult& record, const Key& key) {
    for (const std::string& name : key.names) {
      const auto value = record.object.find(name);
      if (value == record.object.end() || value->is_null()) continue;
      if (const auto cell = to_cell(*value, key.need == Key::Need::kSetting)) return *cell;
      error_of_key(record, name, "'" + name + "' is a finite number from 0 on");
      return {};
    }
    if (key.need == Key::Need::kRequired) {
      error(record.start, 1,
            "has no key '" + key.names.front() + "'; is it the result of " + "another program?");
    }
    return {};
  }

  /// SGLang says the throughput of input and output only apart in its early versions.
  void fill_total_throughput(const ServingResult& record, std::vector<ImportedCell>& cells) const {
    const auto place = static_cast<std::size_t>(
        std::find_if(keys_.begin(), keys_.end(),
                     [](const Key& key) { return key.column == "total_token_throughput"; }) -
        keys_.begin());
    if (!std::holds_alternative<std::monostate>(cells[place])) return;
    const auto input = record.object.find("input_throughput");
    const auto output = record.object.find("output_throughput");
    if (input == record.object.end() || output == record.object.end() || !input->is_number() ||
        !output->is_number()) {
      return;
    }
    const double total = input->get<double>() + output->get<double>();
    if (std::isfinite(total)) cells[place] = total;
  }

  void error_of_key(const ServingResult& record, const std::string& name,
                    const std::string& message) {
    const std::string quoted = "\"" + name + "\"";
    const std::size_t at = std::string_view(text_).substr(record.start, record.size).find(quoted);
    error(record.start + (at == std::string_view::npos ? 0 : at), static_cast<int>(quoted.size()),
          message);
  }

  void error(std::size_t at, int length, std::string message) {
    if (!diagnostics_.has_errors()) diagnostics_.add_source(path_, text_);
    diagnostics_.error(place_behind(path_, std::string_view(text_).substr(0, at)), length,
                       std::move(message));
  }

  const std::string& path_;
  std::string text_;
  bool sglang_;
  std::vector<Key> keys_;
  std::size_t left_out_ = 0;  // printed tables
  config::Diagnostics diagnostics_;
};

template <bool sglang>
ImportedTable import_serving(const std::string& path, const ImportOptions& /*options*/) {
  return ServingReader(path, sglang).read();
}

const ImporterRegistry::Register registered_vllm("vllm",
                                                 "results of `vllm bench serve --save-result`",
                                                 import_serving<false>);
const ImporterRegistry::Register registered_sglang(
    "sglang", "results of `sglang.bench_serving --output-file`", import_serving<true>);

}  // namespace

}  // namespace orrery
