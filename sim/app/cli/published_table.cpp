// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/published_table.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "sim/app/cli/progress.h"
#include "sim/config/library.h"

namespace orrery {

std::vector<std::string> shipped_rows(const std::string& folder) {
  std::vector<std::string> files;
  const auto root = config::default_library().root().parent_path() / "validation" / folder;
  if (!std::filesystem::exists(root)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
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
    table.add_row(
        {s.source, std::to_string(s.rows), any ? format_percent(s.mean_absolute) : "-",
         any ? format_difference(s.bias) : "-", any ? format_difference(s.worst) : "-",
         s.intervals > 0 ? std::to_string(s.inside) + " of " + std::to_string(s.intervals) : "-"});
  }
  return table;
}

}  // namespace orrery
