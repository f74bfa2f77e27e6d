// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/questions/explain/explain.h"
#include "sim/results/json_table.h"
#include "sim/units/comma_separated.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

/// "step time 27.6 ms (p10 to p90: 26.1 ms to 29.0 ms)".
std::string time_line(const ordered_json& time) {
  const char* what = time.at("metric") == "time_s" ? "time" : "step time";
  const std::string value = format_si(time.at("value"), "s");
  if (time.at("p10").is_null()) return fmt::format("{} {}\n", what, value);
  return fmt::format("{} {} (p10 to p90: {} to {})\n", what, value, format_si(time.at("p10"), "s"),
                     format_si(time.at("p90"), "s"));
}

void add_time(const ordered_json& explanation, Answer& answer) {
  const std::string name = explanation.at("name");
  answer.add(explanation.at("experiment").get<std::string>() + (name.empty() ? "" : ": " + name) +
             "\n");
  const ordered_json& time = explanation.at("time");
  if (time.is_null()) {
    answer.add(explanation.at("reason").get<std::string>() + "\n");
    return;
  }
  answer.add(time_line(time));
  for (const auto& label : explanation.at("labels").items())
    answer.add(fmt::format("{}: {}\n", label.key(), label.value().get<std::string>()));
}

/// Casts can cost more than products of few bits win.
void add_casts(const ordered_json& explanation, Answer& answer) {
  const auto casts = explanation.find("narrow_casts");
  if (casts == explanation.end() || !casts->contains("share")) return;
  answer.add(
      fmt::format("casts to the format of products: {}, {} of the step; a step in bf16 has none\n",
                  format_si(casts->at("time_s"), "s"), format_percent(casts->at("share"))));
}

/// Rows that JSON has under a key, as a table of some columns.
void add_rows(const ordered_json& explanation, const char* key, const std::string& columns,
              Answer& answer) {
  const auto rows = explanation.find(key);
  if (rows != explanation.end()) answer.add_below(json_table(*rows, columns));
}

constexpr const char* kTimeAndShare = " | time = time_s s | share = share percent";

void add_shares(const ordered_json& explanation, const char* key, const char* column,
                const std::string& title, Answer& answer) {
  add_rows(explanation, key, title + " = " + column + kTimeAndShare, answer);
}

/// Memory of the fullest rank by part of the model.
void add_module_memory(const ordered_json& explanation, Answer& answer) {
  const auto memory = explanation.find("memory_by_module");
  if (memory == explanation.end()) return;
  add_rows(*memory, "modules",
           "memory of a rank of pp " + memory->at("stage").dump() +
               " = module | parameters = parameters plain | weights = weights_bytes B | "
               "gradients = gradients_bytes B | optimizer = optimizer_bytes B | "
               "activations = activations_bytes B",
           answer);
}

/// What the end of the step waited for, back to its start: parts that add up to the step.
void add_path(const ordered_json& explanation, Answer& answer) {
  const auto path = explanation.find("critical_path");
  if (path == explanation.end()) return;
  const std::string rest = std::string(" | operators = operators count") + kTimeAndShare;
  add_rows(*path, "parts", "critical path: what the step waits for = part" + rest, answer);
  add_rows(*path, "stages", "critical path by stage = stage" + rest, answer);
}

/// Kernels or transfers, each with all that is known of it.
void add_operations(const ordered_json& explanation, const char* key, const std::string& title,
                    Answer& answer) {
  if (!explanation.contains(key)) return;
  ordered_json rows = explanation.at(key);
  for (ordered_json& row : rows)
    if (row.value("flops", 0.0) == 0) row.erase("flops");
  answer.add_below(json_table(
      rows, title + " = name | class = class | count = count count | FLOPs = flops FLOP | "
                    "bytes = bytes B | bound = bound | of limit = share_of_limit percent | "
                    "fidelity = fidelity | clock = clock_hz Hz | time = time_s s | "
                    "total = total_s s"));
}

/// "+12.3 ms", "-1.2 %".
std::string signed_text(double value, const std::string& text) {
  return (value >= 0 ? "+" : "-") + text;
}

void add_switches(const ordered_json& explanation, Answer& answer) {
  const auto rows = explanation.find("switches");
  if (rows == explanation.end()) return;
  if (rows->empty())
    return answer.add(
        "\nno switches: training steps have software, steps of inference an `engine`\n");
  const double now = explanation.at("time").at("value");
  Table table =
      Table::titled("switch of the software | now | other | >step then | >change | >share");
  std::vector<std::string> same;
  for (const ordered_json& row : *rows) {
    const double change = row.at("change_s");
    if (change == 0) {
      same.push_back(fmt::format("{} {}", row.at("switch").get<std::string>(),
                                 row.at("other").get<std::string>()));
      continue;
    }
    table.add_row({row.at("switch"), row.at("value"), row.at("other"),
                   format_si(row.at("step_time_s"), "s"),
                   signed_text(change, format_si(std::abs(change), "s")),
                   signed_text(change, format_percent(std::abs(change) / now))});
  }
  answer.add("\n");
  answer.add(std::move(table));
  if (!same.empty()) answer.add(fmt::format("would change nothing: {}\n", comma_joined(same)));
}

void add_sizes(const ordered_json& explanation, Answer& answer) {
  const auto sizes = explanation.find("sizes");
  if (sizes == explanation.end()) return;
  Table table = Table::titled("sizes | >value");
  for (const auto& item : sizes->items())
    if (item.value().is_number()) table.add_row({item.key(), format_si(item.value(), "")});
  for (const auto& item : sizes->at("memory_per_rank_bytes").items())
    if (item.value().is_number())
      table.add_row({"memory of a rank: " + item.key(), format_si(item.value(), "B")});
  answer.add_below(std::move(table));
}

void add_operator(const ordered_json& explanation, Answer& answer) {
  if (!explanation.contains("operator")) return;
  std::vector<std::string> energies;
  for (const auto& part : explanation.at("energy_j").items())
    energies.push_back(fmt::format("{} {}", part.key(), format_si(part.value(), "J")));
  answer.add(energies.empty() ? "\n" : fmt::format("\nenergy: {}\n", comma_joined(energies)));
  const ordered_json& saved = explanation.at("fusion_saves");
  if (saved.is_null()) return;
  answer.add(fmt::format(
      "fusion saves {} of device memory traffic and {} launches{}\n",
      format_si(saved["bytes"], "B"), saved["launches"].dump(),
      saved["masked_flops"] > 0
          ? fmt::format(", and skips {} that masks hide", format_si(saved["masked_flops"], "FLOP"))
          : ""));
}

/// "default" of a default, else where it was written: the experiment, `--set`, the library.
std::map<std::string, std::string> origins(const ordered_json& explanation) {
  std::map<std::string, std::string> found;
  for (const ordered_json& row : explanation.at("configuration"))
    found[row.at("path")] = row.at("origin");
  return found;
}

/// First the keys that somebody wrote, with their places, then the names of those left at their
/// defaults.
void add_effects(const ordered_json& explanation, Answer& answer) {
  const std::map<std::string, std::string> where = origins(explanation);
  const ordered_json& none = explanation.at("no_effect");
  const ordered_json& not_examined = explanation.at("not_examined");
  answer.add(fmt::format("\ninputs that had no effect:{}\n",
                         none.empty() && not_examined.empty() ? " none" : ""));
  Table written = Table::titled("written | at");
  std::vector<std::string> defaults;
  for (const std::string path : none) {
    const std::string& origin = where.at(path);
    if (origin == "default") {
      defaults.push_back(path);
    } else {
      written.add_row({path, origin});
    }
  }
  if (!written.empty()) answer.add(std::move(written));
  if (!defaults.empty())
    answer.add(fmt::format("left at their defaults: {}\n", comma_joined(defaults)));
  for (const std::string path : not_examined)
    answer.add(fmt::format("not examined, a try takes too long: {}\n", path));
}

/// As engines print it.
std::string gib(double bytes) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  return fmt::format("{:.2f} GiB", bytes / kGiB);
}

/// Memory of a rank of each group of a fleet: what an engine prints as it starts.
void add_groups(const ordered_json& explanation, Answer& answer) {
  const auto groups = explanation.find("groups");
  if (groups == explanation.end()) return;
  std::vector<Table::Column> columns = {{"memory of a rank"}};
  for (const ordered_json& group : *groups)
    columns.push_back({group.at("group"), Table::Align::kRight});
  Table table(std::move(columns));
  // Left out where it is 0 of all.
  const auto term = [&](const char* name, const char* key) {
    std::vector<std::string> cells = {name};
    for (const ordered_json& group : *groups) cells.push_back(gib(group.at(key)));
    const bool any = std::any_of(groups->begin(), groups->end(),
                                 [&](const ordered_json& group) { return group.at(key) > 0; });
    if (any) table.add_row(std::move(cells));
  };
  term("usable", "usable_bytes");
  term("weights", "weights_bytes");
  const std::string working = groups->front().at("working");
  term(working == "sampling" ? "logits and next tokens" : "activations", "working_bytes");
  term("libraries", "libraries_bytes");
  term("communicators", "communicators_bytes");
  term("graphs", "graphs_bytes");
  term("before loading", "before_bytes");
  term("states set aside", "set_aside_bytes");
  term("KV cache", "cache_bytes");
  term("windows of a request", "windows_bytes");
  term("states of a request", "states_bytes");
  const auto count = [&](const char* name, const char* key, const char* unit) {
    std::vector<std::string> cells = {name};
    for (const ordered_json& group : *groups) cells.push_back(format_si(group.at(key), unit));
    table.add_row(std::move(cells));
  };
  count("KV block", "block_bytes", "B");
  count("blocks", "blocks", "");
  count("tokens", "tokens", "");
  answer.add_below(std::move(table));
}

}  // namespace

Answer explanation_parts(const ordered_json& explanation, bool configuration) {
  const std::string role = explanation.value("role", std::string());
  const std::string of_role = role.empty() ? "" : " of " + role;
  Answer answer;
  add_time(explanation, answer);
  if (explanation.contains("limit"))
    answer.add("limited by: " + explanation.at("limit").get<std::string>() + "\n");
  add_casts(explanation, answer);
  add_shares(explanation, "request_time", "part", "mean time of a request", answer);
  add_shares(explanation, "instance_time", "part", "time of the instances", answer);
  add_shares(explanation, "breakdown", "part", "where the time goes" + of_role, answer);
  add_shares(explanation, "bounds", "bound", "kernels by what limits them", answer);
  add_shares(explanation, "classes", "class", "kernels by class", answer);
  add_shares(explanation, "communication", "class", "transfers, hidden or not", answer);
  add_rows(explanation, "modules",
           "kernels by part of the model = module | FLOPs = flops FLOP | bytes = bytes B | "
           "bound = bound | time = time_s s | share = share percent",
           answer);
  add_module_memory(explanation, answer);
  add_path(explanation, answer);
  add_rows(explanation, "longest",
           "longest kernels = name | bound = bound | of limit = share_of_limit percent | "
           "count = count count | total = total_s s | share = share percent",
           answer);
  add_switches(explanation, answer);
  add_rows(explanation, "links",
           "links = name | number = links count | bytes = bytes B | busy = busy_share percent | "
           "busiest = peak_share percent",
           answer);
  add_operator(explanation, answer);
  add_sizes(explanation, answer);
  add_groups(explanation, answer);
  add_operations(explanation, "kernels", "kernels" + of_role, answer);
  add_operations(explanation, "transfers", "transfers" + of_role, answer);
  add_effects(explanation, answer);
  if (configuration)
    add_rows(explanation, "configuration", "configuration = path | value = value | from = origin",
             answer);
  return answer;
}

}  // namespace orrery
