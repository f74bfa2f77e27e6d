// SPDX-License-Identifier: Apache-2.0
#include "host/runner.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <stdexcept>

#include "host/files.h"
#include "host/isolate.h"
#include "host/priority.h"
#include "host/table.h"

namespace orrery::measure {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr const char* kSkipMark = "skipped: ";

/// The child's part: opens the device, measures, mirrors the rows into `part`.
/// @returns a remark, kSkipMark first when there was nothing to measure.
std::string measure(const Measurement& measurement, const Run& run, Clock::time_point start,
                    const std::filesystem::path& part) {
  Context context = run.open_device();
  if (!context.device.at_least(measurement.capability)) {
    return kSkipMark + ("needs compute capability " + std::to_string(measurement.capability));
  }
  context.depth = run.info.depth;
  context.seed = run.info.seed;
  context.log = run.log;
  // The budget includes the start of the process and of CUDA.
  context.deadline =
      start + std::chrono::duration_cast<Clock::duration>(
                  std::chrono::duration<double>(budget_s(measurement, context.depth)));
  std::ofstream file(part, std::ios::binary);
  if (!file) throw std::runtime_error("cannot write " + part.string());
  Table table(measurement.columns);
  table.mirror(file);
  measurement.run(context, table);
  return context.out_of_time() ? "stopped at its time budget" : "";
}

/// Rows of a mirrored CSV file: its lines but the header. An unfinished last line is cut off.
std::int64_t finish_rows(const std::filesystem::path& part) {
  std::ifstream file(part, std::ios::binary);
  std::int64_t lines = 0;
  std::uintmax_t whole = 0, size = 0;
  for (char c = 0; file.get(c);) {
    ++size;
    if (c != '\n') continue;
    ++lines;
    whole = size;
  }
  file.close();
  if (size > 0) std::filesystem::resize_file(part, whole);
  return lines > 0 ? lines - 1 : 0;
}

Outcome run_one(const Measurement& measurement, const Run& run) {
  const auto start = Clock::now();
  const std::filesystem::path csv = run.out / (measurement.name + ".csv");
  std::filesystem::path part = csv;
  part += ".part";
  std::filesystem::remove(part);
  std::filesystem::remove(csv);
  // One that overruns its budget by so much does not end by itself any more.
  const double limit_s = 1.5 * budget_s(measurement, run.info.depth) + 15;
  const Ending ending = isolate([&] { return measure(measurement, run, start, part); }, limit_s);
  Outcome outcome{measurement.number, measurement.name, Status::kOk, ending.text, 0, 0};
  if (ending.kind != Ending::Kind::kReturned) {
    outcome.status = Status::kFailed;
  } else if (ending.text.rfind(kSkipMark, 0) == 0) {
    outcome.status = Status::kSkipped;
    outcome.reason.erase(0, std::string(kSkipMark).size());
  }
  if (std::filesystem::exists(part)) {
    outcome.rows = finish_rows(part);
    if (outcome.rows > 0) {
      std::filesystem::rename(part, csv);
    } else {
      std::filesystem::remove(part);
    }
  }
  outcome.seconds = seconds_since(start);
  return outcome;
}

/// "[3/18] hbm_stream ... 41 rows in 3.2 s (about 80 s left)"
void report(std::ostream* log, const Outcome& outcome, const std::string& place, double left_s) {
  if (log == nullptr) return;
  char text[96];
  std::snprintf(text, sizeof text, "%lld rows in %.1f s (at most %.0f s left)",
                static_cast<long long>(outcome.rows), outcome.seconds, left_s);
  *log << place << ' ' << outcome.name << ": " << text;
  if (outcome.status == Status::kFailed) *log << " FAILED: " << outcome.reason;
  if (outcome.status == Status::kSkipped) *log << " skipped: " << outcome.reason;
  if (outcome.status == Status::kOk && !outcome.reason.empty())
    *log << " (" << outcome.reason << ')';
  *log << std::endl;
}

std::string seconds(double value) {
  if (value == 0) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0f s", value);
  return text.data();
}

std::string line(const std::array<std::string, 6>& cells, std::size_t name_width) {
  std::ostringstream out;
  out << std::setw(3) << cells[0] << "  " << std::left << std::setw(static_cast<int>(name_width))
      << cells[1] << std::right << "  " << std::setw(6) << cells[2] << "  " << std::setw(6)
      << cells[3] << "  " << std::setw(8) << cells[4] << "  " << cells[5] << '\n';
  return out.str();
}

}  // namespace

std::vector<Outcome> run_all(const std::vector<const Measurement*>& selected, const Run& run) {
  std::vector<Outcome> outcomes;
  double left_s = 0;
  for (const Measurement* measurement : selected) left_s += budget_s(*measurement, run.info.depth);
  for (const Measurement* measurement : selected) {
    outcomes.push_back(run_one(*measurement, run));
    left_s -= budget_s(*measurement, run.info.depth);
    write_file(run.out / "environment.yaml",
               environment_yaml(run.info, run.device_section, outcomes));
    report(run.log, outcomes.back(),
           '[' + std::to_string(outcomes.size()) + '/' + std::to_string(selected.size()) + ']',
           left_s);
  }
  return outcomes;
}

double budget_s(const Measurement& measurement, Depth depth) {
  if (depth == Depth::kPriority) return priority_budget_s(measurement.name);
  return depth == Depth::kQuick ? measurement.quick_s : measurement.full_s;
}

std::string listing(const std::vector<Measurement>& all) {
  std::size_t width = 4;
  double quick = 0, full = 0, priority = 0;
  for (const Measurement& measurement : all) {
    width = std::max(width, measurement.name.size());
    quick += measurement.quick_s;
    full += measurement.full_s;
    priority += priority_budget_s(measurement.name);
  }
  std::string text = line({"#", "name", "quick", "full", "priority", "what it measures"}, width);
  for (const Measurement& measurement : all) {
    std::string what = measurement.what;
    if (measurement.capability > 8) {
      what += " (needs compute capability " + std::to_string(measurement.capability) + ")";
    }
    text +=
        line({std::to_string(measurement.number), measurement.name, seconds(measurement.quick_s),
              seconds(measurement.full_s), seconds(priority_budget_s(measurement.name)), what},
             width);
  }
  const bool within = quick < kQuickLimit_s && full < kFullLimit_s && priority < kPriorityLimit_s;
  return text + line({"", "sum", seconds(quick), seconds(full), seconds(priority),
                      within ? "within budget" : "over budget"},
                     width);
}

}  // namespace orrery::measure
