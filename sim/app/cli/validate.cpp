// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/app/cli/published_table.h"
#include "sim/app/cli/verb.h"
#include "sim/app/questions/base/question.h"
#include "validation/checks/published_comparison.h"

namespace orrery {
namespace {

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

nlohmann::ordered_json or_null(bool has, double value) {
  return has ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

ToldRows rows_of(const std::vector<PublishedComparison>& comparisons) {
  ToldRows rows{Table::titled("id | metric | >predicted | >measured | >error | p10 to p90 | note")};
  for (const PublishedComparison& c : comparisons) {
    const std::string unit = c.row.compared_unit();
    const bool has = c.reason.empty();
    rows.add({c.row.id, (c.row.is_ratio() ? "ratio of " : "") + c.row.metric,
              has ? format_si(c.predicted, unit) : "-", format_si(c.measured, unit),
              has ? format_difference(c.error) : "-", has ? interval_of(c, unit) : "-",
              has ? note_of(c) : c.reason},
             {{"id", c.row.id},
              {"metric", c.row.metric},
              {"unit", unit},
              {"ratio", c.row.is_ratio()},
              {"predicted", or_null(has, c.predicted)},
              {"measured", c.measured},
              {"error", or_null(has, c.error)},
              {"p10", or_null(c.interval.has_value(), c.interval ? c.interval->first : 0)},
              {"p90", or_null(c.interval.has_value(), c.interval ? c.interval->second : 0)},
              {"provenance", c.provenance},
              {"source", c.row.source},
              {"reason", c.reason},
              {"misfit", c.misfit}});
  }
  return rows;
}

std::string line_of(const PublishedSummary& summary) {
  std::string line = std::to_string(summary.rows) + " rows, mean absolute error " +
                     format_percent(summary.mean_absolute);
  if (!summary.worst_id.empty())
    line += ", worst " + format_difference(summary.worst) + " (" + summary.worst_id + ")";
  line += ", " + std::to_string(summary.off) + " outside their tolerance";
  if (summary.intervals > 0)
    line += ", " + std::to_string(summary.inside) + " of " + std::to_string(summary.intervals) +
            " in p10 to p90, which are " + format_percent(summary.spread - 1) +
            " apart in the median";
  return line + "\n";
}

struct PublishedQuestion {
  std::vector<std::string> files;

  void take(Options& options) {
    options.optional_positionals(
        "FILE", files, "lists of published rows (YAML); by default all below validation/published");
  }

  Answer answer() const {
    const std::vector<PublishedComparison> comparisons =
        compare_with_progress(files.empty() ? shipped_rows("published") : files);
    const PublishedSummary summary = summarise(comparisons);
    ToldRows rows = rows_of(comparisons);
    Answer answer;
    answer.add(std::move(rows.table));
    const std::vector<PublishedSummary> sources = by_source(comparisons);
    if (sources.size() > 1) {
      answer.add("\n");
      answer.add(source_table(sources));
      answer.add("\n");
    }
    if (const std::optional<SourceSpread> spread = spread_of(sources))
      answer.add(
          "spread of log(measured / predicted) of sources: " + format_percent(spread->median) +
          " in the median, " + format_percent(spread->least) + " to " +
          format_percent(spread->greatest) + " without one of them\n");
    answer.add(line_of(summary));
    answer.json = {{"schema", "orrery.validation/1"},
                   {"entries", std::move(rows.json)},
                   {"mean_absolute_error", summary.mean_absolute},
                   {"worst", nullptr}};
    if (!summary.worst_id.empty()) answer.json["worst"] = summary.worst_id;
    if (summary.off > 0) answer.code = ExitCode::kPartial;
    return answer;
  }
};

const VerbRegistry::Register registered_validate("validate", "predicted against measured", nullptr);
const RegisterQuestion<PublishedQuestion> registered_published("validate published",
                                                               "published figures of real systems");

}  // namespace
}  // namespace orrery
