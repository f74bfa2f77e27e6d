// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/published_table.h"
#include "sim/app/cli/verb.h"
#include "validation/checks/published_comparison.h"

namespace orrery {
namespace {

struct PublishedArguments {
  std::vector<std::string> files;
  bool json = false;

  void take(Options& options);
  ExitCode run() const;
};

/// Whether a prediction is off, and whether memory would have held the run.
std::string note_of(const PublishedComparison& c) {
  const std::string off = c.ok() ? "" : "outside its tolerance";
  const std::string misfit = c.misfit.substr(0, c.misfit.find(';'));
  return off + (off.empty() || misfit.empty() ? "" : "; ") + misfit;
}

/// The interval of a prediction, and whether the measured value is in it.
std::string interval_of(const PublishedComparison& c, const std::string& unit) {
  if (!c.interval) return "-";
  return format_si(c.interval->first, unit) + " to " + format_si(c.interval->second, unit) +
         (c.inside() ? ", in" : "");
}

void print_rows(const std::vector<PublishedComparison>& comparisons) {
  Table table = Table::titled("id | metric | >predicted | >measured | >error | p10 to p90 | note");
  for (const PublishedComparison& c : comparisons) {
    const std::string unit = c.row.compared_unit();
    const bool has = c.reason.empty();
    table.add_row({c.row.id, (c.row.is_ratio() ? "ratio of " : "") + c.row.metric,
                   has ? format_si(c.predicted, unit) : "-", format_si(c.measured, unit),
                   has ? format_difference(c.error) : "-", has ? interval_of(c, unit) : "-",
                   has ? note_of(c) : c.reason});
  }
  print(table, std::cout);
}

void print(const std::vector<PublishedComparison>& comparisons, const PublishedSummary& summary) {
  print_rows(comparisons);
  const std::vector<PublishedSummary> sources = by_source(comparisons);
  if (sources.size() > 1) {
    std::cout << "\n";
    print_sources(sources);
    std::cout << "\n";
  }
  if (const std::optional<SourceSpread> spread = spread_of(sources))
    std::cout << "spread of log(measured / predicted) of sources: "
              << format_percent(spread->median) << " in the median, "
              << format_percent(spread->least) << " to " << format_percent(spread->greatest)
              << " without one of them\n";
  std::cout << summary.rows << " rows, mean absolute error "
            << format_percent(summary.mean_absolute);
  if (!summary.worst_id.empty())
    std::cout << ", worst " << format_difference(summary.worst) << " (" << summary.worst_id << ")";
  std::cout << ", " << summary.off << " outside their tolerance";
  if (summary.intervals > 0)
    std::cout << ", " << summary.inside << " of " << summary.intervals
              << " in p10 to p90, which are " << format_percent(summary.spread - 1)
              << " apart in the median";
  std::cout << "\n";
}

nlohmann::ordered_json report(const std::vector<PublishedComparison>& comparisons,
                              const PublishedSummary& summary) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const PublishedComparison& c : comparisons) {
    const bool has = c.reason.empty();
    entries.push_back({{"id", c.row.id},
                       {"metric", c.row.metric},
                       {"unit", c.row.compared_unit()},
                       {"ratio", c.row.is_ratio()},
                       {"predicted", has ? nlohmann::ordered_json(c.predicted) : nullptr},
                       {"measured", c.measured},
                       {"error", has ? nlohmann::ordered_json(c.error) : nullptr},
                       {"p10", c.interval ? nlohmann::ordered_json(c.interval->first) : nullptr},
                       {"p90", c.interval ? nlohmann::ordered_json(c.interval->second) : nullptr},
                       {"provenance", c.provenance},
                       {"source", c.row.source},
                       {"reason", c.reason},
                       {"misfit", c.misfit}});
  }
  return {{"schema", "orrery.validation/1"},
          {"entries", std::move(entries)},
          {"mean_absolute_error", summary.mean_absolute},
          {"worst", summary.worst_id.empty() ? nlohmann::ordered_json(nullptr)
                                             : nlohmann::ordered_json(summary.worst_id)}};
}

}  // namespace

void PublishedArguments::take(Options& options) {
  options.optional_positionals(
      "FILE", files, "lists of published rows (YAML); by default all below validation/published");
  options.json(json);
}

ExitCode PublishedArguments::run() const {
  const std::vector<PublishedComparison> comparisons =
      compare_with_progress(files.empty() ? shipped_rows("published") : files);
  const PublishedSummary summary = summarise(comparisons);
  if (json) {
    std::cout << report(comparisons, summary).dump(2) << "\n";
  } else {
    print(comparisons, summary);
  }
  return summary.off > 0 ? ExitCode::kPartial : ExitCode::kOk;
}

namespace {

const RegisterVerbGroup registered_validate("validate", "predicted against measured");
const RegisterVerb<PublishedArguments> registered_published("validate published",
                                                            "published figures of real systems");

}  // namespace

}  // namespace orrery
