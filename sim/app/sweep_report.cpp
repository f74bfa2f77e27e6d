// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweep_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ostream>

#include "sim/results/table.h"

namespace orrery {
namespace {

/// The records of one name of one case, in order.
struct Row {
  std::string name;
  std::vector<const RunRecord*> records;
  std::vector<const SweepPoint*> points;
};

std::vector<Row> rows_of(const Sweep& sweep, const SweepResults& results, std::size_t case_index) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    if (point.case_index != case_index) continue;
    auto row = rows.begin();
    while (row != rows.end() && row->name != point.name) ++row;
    if (row == rows.end()) row = rows.insert(rows.end(), {point.name, {}, {}});
    row->records.push_back(&results.records[i]);
    row->points.push_back(&point);
  }
  return rows;
}

std::string plan(const Experiment& e) {
  std::string text = std::to_string(e.ranks()) + " ranks: TP" + std::to_string(e.parallel.tp);
  const auto add = [&text](const char* name, int size) {
    if (size > 1) text += std::string(" ") + name + std::to_string(size);
  };
  add("PP", e.parallel.pp);
  add("VPP", e.parallel.vpp);
  add("DP", e.parallel.dp);
  add("EP", e.parallel.ep);
  add("ETP", e.parallel.etp);
  return text;
}

std::string number(const char* format, double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string metric(const RunRecord& record, const char* name, const char* unit) {
  const Metric* m = record.find(name);
  return m != nullptr ? format_si(m->value, unit) : "-";
}

std::string share(const RunRecord& record, const char* part) {
  const Metric* a = record.find(part);
  const Metric* step = record.find("step_time_s");
  return a != nullptr && step != nullptr ? number("%.1f %%", 100 * a->value / step->value) : "-";
}

/// "332 s to 367 s", or nothing where nothing was fitted.
std::string step_interval(const RunRecord& record) {
  const Metric* step = record.find("step_time_s");
  if (step == nullptr || !step->interval) return "-";
  return format_si(step->interval->first, "s") + " to " + format_si(step->interval->second, "s");
}

std::string percent(const RunRecord& record, const char* name) {
  const Metric* m = record.find(name);
  return m != nullptr ? number("%.1f %%", 100 * m->value) : "-";
}

/// Why a row has no point to show: nothing fits, or nothing keeps the limits.
std::string no_choice(const Row& row) {
  for (const RunRecord* record : row.records) {
    if (record->status == RunStatus::kOk) return "no point keeps the limits of this table";
  }
  return row.records.front()->reason;
}

const SweepPoint& point_of(const Row& row, const RunRecord* chosen) {
  for (std::size_t i = 0; i < row.records.size(); ++i) {
    if (row.records[i] == chosen) return *row.points[i];
  }
  return *row.points.front();
}

/// Whether the points of a row differ in the number of nodes, so that the chosen one is worth
/// saying.
bool nodes_vary(const Row& row) {
  return std::any_of(row.points.begin(), row.points.end(), [&row](const SweepPoint* point) {
    return point->loaded.experiment.nodes != row.points.front()->loaded.experiment.nodes;
  });
}

std::string batch(const Experiment& e) {
  return e.kind == ExperimentKind::kTraining ? std::to_string(e.batch.global)
                                             : std::to_string(e.batch.micro) + "/rank";
}

void print_case(const SweepCaseConfig& description, const std::vector<Row>& rows,
                std::ostream& out) {
  using Align = Table::Align;
  Table table({{"system"},
               {"plan"},
               {"batch", Align::kRight},
               {"step", Align::kRight},
               {"p10 to p90", Align::kRight},
               {"tokens/s/acc", Align::kRight},
               {"MFU", Align::kRight},
               {"memory", Align::kRight},
               {"exposed comm", Align::kRight},
               {"power", Align::kRight},
               {"tokens/J", Align::kRight}});
  std::string notes;
  for (const Row& row : rows) {
    const RunRecord* record = choose(description.choose, row.records);
    const Experiment& e = point_of(row, record).loaded.experiment;
    if (record == nullptr) {
      const RunRecord& first = *row.records.front();
      const Metric* shortfall = first.find("memory_shortfall_bytes");
      const std::string misfit =
          shortfall != nullptr ? "does not fit, " + format_si(shortfall->value, "B") + " short"
                               : "none";
      table.add_row({row.name, plan(e), batch(e), misfit, "-", "-", "-",
                     metric(first, "peak_memory_bytes", "B"), "-", "-", "-"});
      notes += "  " + row.name + ": " + no_choice(row) + "\n";
      continue;
    }
    std::string name = row.name;
    if (nodes_vary(row)) name += " (" + std::to_string(e.nodes) + ")";
    table.add_row(
        {name, plan(e), batch(e), metric(*record, "step_time_s", "s"), step_interval(*record),
         metric(*record, "tokens_per_s_per_accelerator", ""),
         percent(*record, "model_flops_utilization"), metric(*record, "peak_memory_bytes", "B"),
         share(*record, "breakdown.exposed_communication_s"),
         metric(*record, "average_power_w", "W"), metric(*record, "tokens_per_joule", "")});
  }
  out << description.name << "\n";
  table.print(out);
  out << notes << "\n";
}

}  // namespace

void print_sweep(const Sweep& sweep, const SweepResults& results, const std::string& store,
                 std::ostream& out) {
  for (std::size_t i = 0; i < sweep.config.cases.size(); ++i) {
    print_case(sweep.config.cases[i], rows_of(sweep, results, i), out);
  }
  out << results.records.size() << " points: " << results.from_store << " read from the store, "
      << results.simulated << " simulated in " << number("%.1f s", results.seconds);
  if (results.failed > 0) out << ", " << results.failed << " FAILED";
  out << "\nRanks that do the same at the same time are folded into one, exactly. p10 to p90: what "
         "the calibrations of\n"
         "kernels and collectives leave open; '-' is a device without measurements, on datasheets "
         "and priors.\n";
  for (const RunRecord& record : results.records) {
    if (record.status == RunStatus::kFailed)
      out << "failed: " << record.name << ": " << record.reason << "\n";
  }
  out << "Every point is a row of " << store << ". Try:\n"
      << "  sqlite3 -box " << store
      << " \"SELECT name, step_time_s, tokens_per_s_per_accelerator FROM v_runs ORDER BY 3 DESC "
         "LIMIT 10\"\n"
      << "  build/release/orrery run configs/experiments/llama_405b_training.yaml --set "
         "'system.accelerator.memory.bandwidth=4 TB/s'\n";
}

nlohmann::ordered_json sweep_to_json(const Sweep& sweep, const SweepResults& results,
                                     const std::string& store) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < sweep.config.cases.size(); ++i) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Row& row : rows_of(sweep, results, i)) {
      const RunRecord* chosen = choose(sweep.config.cases[i].choose, row.records);
      nlohmann::ordered_json points = nlohmann::ordered_json::array();
      for (const RunRecord* record : row.records) points.push_back(to_json(*record));
      rows.push_back(
          {{"name", row.name},
           {"chosen", chosen != nullptr ? nlohmann::ordered_json(chosen->identity) : nullptr},
           {"points", std::move(points)}});
    }
    cases.push_back({{"name", sweep.config.cases[i].name}, {"rows", std::move(rows)}});
  }
  return {{"schema", "orrery.sweep/1"},
          {"sweep", sweep.config.name},
          {"store", store},
          {"points", results.records.size()},
          {"from_store", results.from_store},
          {"simulated", results.simulated},
          {"failed", results.failed},
          {"cases", std::move(cases)}};
}

}  // namespace orrery
