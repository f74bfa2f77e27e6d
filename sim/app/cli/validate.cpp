// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/validate.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/app/cli/progress.h"
#include "sim/app/questions/base/verb.h"
#include "sim/config/library.h"

namespace orrery {

PredictionRows::PredictionRows(const std::string& path, std::string predicted)
    : predicted_(std::move(predicted)) {
  if (!path.empty()) file_ = std::make_unique<AtomicFile>(path);
}

void PredictionRows::header(const std::string& columns) {
  if (!file_ || columns == columns_) return;
  if (!columns_.empty()) throw UsageError("--rows: the tables do not have the same columns");
  file_->stream() << columns << ',' << predicted_ << '\n';
  columns_ = columns;
}

void PredictionRows::row(const std::string& text, const std::vector<std::string>& predicted) {
  if (!file_) return;
  file_->stream() << text;
  for (const std::string& cell : predicted) file_->stream() << ',' << cell;
  file_->stream() << '\n';
}

void PredictionRows::commit() {
  if (file_) file_->commit();
}

std::string predicted_text(double value) { return fmt::format("{:.6g}", value); }

std::string left_out_lines(const std::map<std::string, std::size_t>& rows_by_reason) {
  std::string lines;
  for (const auto& [reason, count] : rows_by_reason)
    lines += fmt::format("left out: {} rows, {}\n", count, reason);
  return lines;
}

std::vector<std::string> shipped_rows(const std::string& folder) {
  std::vector<std::string> files;
  const auto root = config::default_library().root().parent_path() / "validation" / folder;
  if (!std::filesystem::exists(root)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

std::vector<PublishedComparison> compare_with_progress(const std::vector<std::string>& files) {
  std::optional<Progress> progress;
  return compare_published(files, [&progress](std::size_t rows, const std::string& id) {
    if (!progress) progress.emplace("rows", rows);
    progress->step(id);
  });
}

Table source_table(const std::vector<PublishedSummary>& sources) {
  Table table =
      Table::titled("source | >n | >mean absolute error | >bias | >worst | >in p10 to p90");
  for (const PublishedSummary& s : sources) {
    const bool any = s.predicted > 0;
    table.add_row({s.source, std::to_string(s.rows), any ? format_percent(s.mean_absolute) : "-",
                   any ? format_difference(s.bias) : "-", any ? format_difference(s.worst) : "-",
                   s.intervals > 0 ? fmt::format("{} of {}", s.inside, s.intervals) : "-"});
  }
  return table;
}

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
  return fmt::format("{} to {}{}", format_si(c.interval->first, unit),
                     format_si(c.interval->second, unit), c.inside() ? ", in" : "");
}

nlohmann::ordered_json value_if(bool has, double value) {
  return has ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

ToldRows rows_of(const std::vector<PublishedComparison>& comparisons) {
  ToldRows rows{Table::titled("id | metric | >predicted | >measured | >error | p10 to p90 | note")};
  for (const PublishedComparison& c : comparisons) {
    const std::string unit = c.row.compared_unit();
    const bool has = c.reason.empty();
    const auto [p10, p90] = c.interval.value_or(std::pair(0.0, 0.0));
    rows.add({c.row.id, (c.row.is_ratio() ? "ratio of " : "") + c.row.metric,
              has ? format_si(c.predicted, unit) : "-", format_si(c.measured, unit),
              has ? format_difference(c.error) : "-", has ? interval_of(c, unit) : "-",
              has ? note_of(c) : c.reason},
             {{"id", c.row.id},
              {"metric", c.row.metric},
              {"unit", unit},
              {"ratio", c.row.is_ratio()},
              {"predicted", value_if(has, c.predicted)},
              {"measured", c.measured},
              {"error", value_if(has, c.error)},
              {"p10", value_if(c.interval.has_value(), p10)},
              {"p90", value_if(c.interval.has_value(), p90)},
              {"provenance", c.provenance},
              {"source", c.row.source},
              {"reason", c.reason},
              {"misfit", c.misfit}});
  }
  return rows;
}

std::string line_of(const PublishedSummary& summary) {
  std::string line = fmt::format("{} rows, mean absolute error {}", summary.rows,
                                 format_percent(summary.mean_absolute));
  if (!summary.worst_id.empty())
    line += fmt::format(", worst {} ({})", format_difference(summary.worst), summary.worst_id);
  line += fmt::format(", {} outside their tolerance", summary.off);
  if (summary.intervals > 0)
    line += fmt::format(", {} of {} in p10 to p90, which are {} apart in the median",
                        summary.inside, summary.intervals, format_percent(summary.spread - 1));
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
      answer.add_below(source_table(sources));
      answer.add("\n");
    }
    if (const std::optional<SourceSpread> spread = spread_of(sources))
      answer.add(fmt::format(
          "spread of log(measured / predicted) of sources: {} in the median, {} to {} without one "
          "of them\n",
          format_percent(spread->median), format_percent(spread->least),
          format_percent(spread->greatest)));
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

const VerbRegistry::Register registered_validate("validate", "predicted against measured", {});
const RegisterQuestion<PublishedQuestion> registered_published("validate published",
                                                               "published figures of real systems");

}  // namespace
}  // namespace orrery
