// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/app/cli/validate.h"
#include "sim/app/questions/base/verb.h"
#include "sim/serving/serving_log.h"

namespace orrery {
namespace {

/// A published memory metric, and the function that measures the prediction error.
struct MemoryQuantity {
  const char* metric;
  const char* name;
  const char* unit;  ///< unit of distances; "" of shares
  double (*distance)(const PublishedComparison&);
  std::string (*text)(double);
};

double in_bytes(const PublishedComparison& c) { return std::abs(c.predicted - c.measured); }
double in_shares(const PublishedComparison& c) { return std::abs(c.error); }
std::string gibibytes(double bytes) {
  constexpr double kGibibyte = 1024.0 * 1024 * 1024;
  return fmt::format("{:.2f} GiB", bytes / kGibibyte);
}

std::string percent(double share) { return format_percent(share, 2); }

// Of the same device, bytes that are too few for the cache are too many for all else.
constexpr std::array<MemoryQuantity, 5> kQuantities = {
    {{"kv_bytes", "memory that is not the cache, a GPU", "B", in_bytes, gibibytes},
     {"kv_tokens", "tokens of the cache", "", in_shares, percent},
     {"peak_memory_bytes", "allocated in training", "", in_shares, percent},
     {"reserved_memory_bytes", "reserved in training", "", in_shares, percent},
     {"used_memory_bytes", "used in training, as nvidia-smi shows", "", in_shares, percent}}};

/// Errors of the rows of one file that tell one quantity.
struct MemoryErrors {
  std::string file;
  const MemoryQuantity* quantity = nullptr;
  std::vector<double> distances;  ///< ascending; not empty
  std::string worst;              ///< row of the last one
  std::size_t without = 0;        ///< rows without a prediction
};

std::vector<MemoryErrors> errors_of(const std::string& file,
                                    const std::vector<PublishedComparison>& comparisons) {
  std::vector<MemoryErrors> all;
  for (const MemoryQuantity& quantity : kQuantities) {
    MemoryErrors errors{file, &quantity, {}, {}, 0};
    for (const PublishedComparison& c : comparisons) {
      if (c.row.metric != quantity.metric) continue;
      if (!c.reason.empty()) {
        ++errors.without;
        continue;
      }
      errors.distances.push_back(quantity.distance(c));
      if (errors.distances.back() == *std::ranges::max_element(errors.distances))
        errors.worst = c.row.id;
    }
    if (errors.distances.empty()) continue;
    std::ranges::sort(errors.distances);
    all.push_back(std::move(errors));
  }
  return all;
}

struct MemoryQuestion {
  std::vector<std::string> files;

  void take(Options& options) {
    options.optional_positionals(
        "FILE", files, "YAML files of published rows; by default all files in validation/memory");
  }

  Answer answer() const {
    ToldRows rows{
        Table::titled("rows | what | >n | >median error | >p90 | worst | >not predicted")};
    for (const std::string& file : files.empty() ? shipped_rows("memory") : files)
      for (const MemoryErrors& e :
           errors_of(std::filesystem::path(file).stem().string(), compare_with_progress({file})))
        add(e, rows);
    return {.parts = {std::move(rows.table)},
            .json = {{"schema", "orrery.memory/1"}, {"entries", std::move(rows.json)}}};
  }

 private:
  static void add(const MemoryErrors& e, ToldRows& rows) {
    const auto& [metric, name, unit, distance, text] = *e.quantity;
    const double median = quantile(e.distances, 0.5), p90 = quantile(e.distances, 0.9);
    const double worst = e.distances.back();
    rows.add({e.file, name, std::to_string(e.distances.size()), text(median), text(p90),
              fmt::format("{} ({})", text(worst), e.worst), std::to_string(e.without)},
             {{"rows", e.file},
              {"metric", metric},
              {"unit", unit},
              {"count", e.distances.size()},
              {"median", median},
              {"p90", p90},
              {"worst", worst},
              {"worst_row", e.worst},
              {"not_predicted", e.without}});
  }
};

const RegisterQuestion<MemoryQuestion> registered_memory(
    "validate memory",
    "compare predicted device memory of engines and training steps with published values");

}  // namespace
}  // namespace orrery
