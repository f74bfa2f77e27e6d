// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/published_table.h"
#include "sim/app/cli/verb.h"
#include "sim/config/library.h"
#include "sim/serving/serving_log.h"
#include "validation/checks/published_comparison.h"

namespace orrery {
namespace {

struct MemoryArguments {
  std::vector<std::string> files;

  void take(Options& options);
  ExitCode run() const;
};

/// A published memory metric, and the function that measures the prediction error.
struct MemoryQuantity {
  const char* metric;
  const char* name;
  double (*distance)(const PublishedComparison&);
  std::string (*text)(double);
};

double in_bytes(const PublishedComparison& c) { return std::abs(c.predicted - c.measured); }
double in_shares(const PublishedComparison& c) { return std::abs(c.error); }
std::string gibibytes(double bytes) {
  constexpr double kGibibyte = 1024.0 * 1024 * 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f GiB", bytes / kGibibyte);
  return text.data();
}

std::string percent(double share) { return format_percent(share, 2); }

// Of the same device, bytes that are too few for the cache are too many for all else.
constexpr std::array<MemoryQuantity, 5> kQuantities = {
    {{"kv_bytes", "memory that is not the cache, a GPU", in_bytes, gibibytes},
     {"kv_tokens", "tokens of the cache", in_shares, percent},
     {"peak_memory_bytes", "allocated in training", in_shares, percent},
     {"reserved_memory_bytes", "reserved in training", in_shares, percent},
     {"used_memory_bytes", "used in training, as nvidia-smi shows", in_shares, percent}}};

/// Files of validation/memory, in order.
std::vector<std::string> memory_files() {
  std::vector<std::string> files;
  const auto folder = config::default_library().root().parent_path() / "validation" / "memory";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

void add_rows(const std::string& file, const std::vector<PublishedComparison>& comparisons,
              Table& table) {
  for (const MemoryQuantity& quantity : kQuantities) {
    std::vector<double> distances;
    std::string worst;
    std::size_t without = 0;
    for (const PublishedComparison& c : comparisons) {
      if (c.row.metric != quantity.metric) continue;
      if (!c.reason.empty()) {
        ++without;
        continue;
      }
      distances.push_back(quantity.distance(c));
      if (distances.back() == *std::max_element(distances.begin(), distances.end()))
        worst = c.row.id;
    }
    if (distances.empty()) continue;
    std::sort(distances.begin(), distances.end());
    table.add_row({file, quantity.name, std::to_string(distances.size()),
                   quantity.text(quantile(distances, 0.5)), quantity.text(quantile(distances, 0.9)),
                   quantity.text(distances.back()) + " (" + worst + ")", std::to_string(without)});
  }
}

void MemoryArguments::take(Options& options) {
  options.optional_positionals(
      "FILE", files, "YAML files of published rows; by default all files in validation/memory");
}

ExitCode MemoryArguments::run() const {
  using Align = Table::Align;
  Table table({{"rows"},
               {"what"},
               {"n", Align::kRight},
               {"median error", Align::kRight},
               {"p90", Align::kRight},
               {"worst"},
               {"not predicted", Align::kRight}});
  for (const std::string& file : files.empty() ? memory_files() : files)
    add_rows(std::filesystem::path(file).stem().string(), compare_with_progress({file}), table);
  print(table, std::cout);
  return ExitCode::kOk;
}

const RegisterVerb<MemoryArguments> registered_memory(
    "validate memory",
    "compare predicted device memory of engines and training steps with published values");

}  // namespace
}  // namespace orrery
