// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/published_table.h"
#include "sim/app/cli/verb.h"
#include "sim/config/library.h"
#include "sim/serving/serving_log.h"
#include "sim/trace/atomic_file.h"
#include "validation/checks/power_tables.h"
#include "validation/checks/published_comparison.h"

namespace orrery {
namespace {

struct PowerArguments {
  std::vector<std::string> files;
  std::string rows;  ///< file for the rows of kernels with their predictions; empty: none

  void take(Options& options);
  ExitCode run() const;
};

/// Errors as shares of what was measured.
struct PowerErrors {
  std::vector<double> signed_errors;

  void add(double error) { signed_errors.push_back(error); }
  std::vector<std::string> cells() const {
    if (signed_errors.empty()) return {"0", "-", "-", "-"};
    std::vector<double> sizes;
    double sum = 0;
    for (const double error : signed_errors) {
      sizes.push_back(std::abs(error));
      sum += error;
    }
    std::sort(sizes.begin(), sizes.end());
    return {std::to_string(sizes.size()), format_percent(quantile(sizes, 0.5)),
            format_percent(quantile(sizes, 0.9)),
            format_percent(sum / static_cast<double>(sizes.size()))};
  }
};

PowerErrors errors_of(const std::vector<Comparison>& rows) {
  PowerErrors errors;
  for (const Comparison& row : rows) errors.add(row.error());
  return errors;
}

void add_cells(std::vector<std::string>& row, const PowerErrors& errors) {
  for (std::string& cell : errors.cells()) row.push_back(std::move(cell));
}

/// Files of validation/power, in order.
std::vector<std::string> power_files() {
  std::vector<std::string> files;
  const auto folder = config::default_library().root().parent_path() / "validation" / "power";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

bool is_yaml(const std::string& file) { return std::filesystem::path(file).extension() == ".yaml"; }

void print_kernels(const KernelPowerReport& report) {
  using Align = Table::Align;
  Table table({{"kernels"},
               {"system"},
               {"framework"},
               {"class"},
               {"n", Align::kRight},
               {"median", Align::kRight},
               {"p90", Align::kRight},
               {"bias", Align::kRight},
               {"held out: n", Align::kRight},
               {"median", Align::kRight},
               {"p90", Align::kRight},
               {"bias", Align::kRight}});
  KernelPowerGroup all;
  for (const auto& [key, group] : report.groups) {
    std::vector<std::string> row = {key[0], key[1], key[2].empty() ? "-" : key[2], key[3]};
    add_cells(row, errors_of(group.fitted));
    add_cells(row, errors_of(group.held_out));
    table.add_row(std::move(row));
    all.fitted.insert(all.fitted.end(), group.fitted.begin(), group.fitted.end());
    all.held_out.insert(all.held_out.end(), group.held_out.begin(), group.held_out.end());
  }
  std::vector<std::string> row = {"all", "", "", ""};
  add_cells(row, errors_of(all.fitted));
  add_cells(row, errors_of(all.held_out));
  table.add_row(std::move(row));
  print(table, std::cout);
  std::cout << "short runs, whose readings do not tell the power of the kernel: "
            << report.short_runs << " rows\n";
  for (const auto& [reason, count] : report.left_out)
    std::cout << "left out: " << count << " rows, " << reason << "\n";
}

/// A row of watts may have one of time beside it: "ID W" and "ID ms".
std::string subject_of(const std::string& id) { return id.substr(0, id.rfind(' ')); }

/// Figures of power of one file; those whose time is off stand apart.
void add_published(const std::string& file, const std::vector<PublishedComparison>& comparisons,
                   Table& table) {
  constexpr double kTimeOff = 0.15;
  std::map<std::string, double> time_errors;
  for (const PublishedComparison& c : comparisons)
    if (c.reason.empty() && c.row.metric == "median_itl_ms")
      time_errors[subject_of(c.row.id)] = c.error;
  std::map<std::string, std::array<PowerErrors, 2>> errors;
  std::size_t without = 0;
  for (const PublishedComparison& c : comparisons) {
    if (c.row.metric == "median_itl_ms") continue;
    if (!c.reason.empty()) {
      ++without;
      continue;
    }
    const auto time = time_errors.find(subject_of(c.row.id));
    const bool off = time != time_errors.end() && std::abs(time->second) > kTimeOff;
    errors[c.row.metric].at(off ? 1 : 0).add(c.error);
  }
  for (const auto& [metric, parts] : errors) {
    for (std::size_t part = 0; part < parts.size(); ++part) {
      if (parts.at(part).signed_errors.empty()) continue;
      std::vector<std::string> row = {
          file, metric + (part == 1 ? ", time per token more than 15 % off" : "")};
      add_cells(row, parts.at(part));
      table.add_row(std::move(row));
    }
  }
  if (without > 0) table.add_row({file, "not predicted", std::to_string(without), "-", "-", "-"});
}

/// Writes rows of kernels with their predictions, if a file was asked for.
class PowerRowsFile {
 public:
  explicit PowerRowsFile(const std::string& path) {
    if (!path.empty()) file_ = std::make_unique<AtomicFile>(path);
  }
  bool wanted() const { return file_ != nullptr; }
  void row(const std::string& text, const KernelPower& row) {
    std::array<char, 80> numbers{};
    std::snprintf(numbers.data(), numbers.size(), ",%.6g,%.6g", row.predicted_us, row.predicted_w);
    lines_.push_back(text + numbers.data());
  }
  void flush(const std::string& header) {
    if (!file_) return;
    if (header != header_) {
      if (!header_.empty()) throw UsageError("--rows: the tables do not have the same columns");
      file_->stream() << header << ",predicted_us,predicted_w\n";
      header_ = header;
    }
    for (const std::string& line : lines_) file_->stream() << line << '\n';
    lines_.clear();
  }
  void commit() {
    if (file_) file_->commit();
  }

 private:
  std::unique_ptr<AtomicFile> file_;
  std::string header_;
  std::vector<std::string> lines_;
};

void PowerArguments::take(Options& options) {
  options.optional_positionals(
      "FILE", files,
      "tables of kernels with power_w (CSV, plain or gzip) and YAML files of published rows; by "
      "default the files of validation/power");
  options.option("--rows", rows, "write the rows of kernels with predictions to this CSV");
}

ExitCode PowerArguments::run() const {
  using Align = Table::Align;
  KernelPowerReport kernels;
  PowerRowsFile rows_file(rows);
  Table published({{"rows"},
                   {"what"},
                   {"n", Align::kRight},
                   {"median error", Align::kRight},
                   {"p90", Align::kRight},
                   {"bias", Align::kRight}});
  bool tables = false, figures = false;
  for (const std::string& file : files.empty() ? power_files() : files) {
    if (is_yaml(file)) {
      figures = true;
      add_published(std::filesystem::path(file).stem().string(), compare_with_progress({file}),
                    published);
      continue;
    }
    tables = true;
    KernelPowerRow heard;
    if (rows_file.wanted())
      heard = [&](const std::string& text, const KernelPower& row) { rows_file.row(text, row); };
    rows_file.flush(add_power_table(file, kernels, heard));
  }
  rows_file.commit();
  if (tables) print_kernels(kernels);
  if (figures) print(published, std::cout);
  return ExitCode::kOk;
}

const RegisterVerb<PowerArguments> registered_power(
    "validate power",
    "compare predicted power of kernels, served and trained runs and servers with measured values");

}  // namespace
}  // namespace orrery
