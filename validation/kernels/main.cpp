// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <exception>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "device/device_info.h"
#include "host/environment.h"
#include "host/files.h"
#include "host/isolate.h"
#include "host/options.h"
#include "host/priority.h"
#include "host/runner.h"

namespace orrery::measure {
namespace {

constexpr int kUsage = 2, kMeasurementFailed = 3, kNoGpu = 6, kOther = 1;

/// A process that is to be forked must not have started CUDA: a child looks at the GPU.
Ending look_at_device(const Options& options) {
  return isolate([&] { return device_yaml(report_device(options.device, options.system)); }, 120);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

void pack(const std::filesystem::path& out, const std::vector<Outcome>& outcomes) {
  std::vector<std::string> names = {"environment.yaml"};
  for (const Outcome& outcome : outcomes) {
    if (outcome.rows > 0) names.push_back(outcome.name + ".csv");
  }
  archive(out, names);
}

int measure_device(const Options& options, const std::string& command_line) {
  const std::vector<const Measurement*> selected = options.depth == Depth::kPriority
                                                       ? prioritised(measurements())
                                                       : select(options.kernels, measurements());
  const Ending device = look_at_device(options);
  if (device.kind != Ending::Kind::kReturned) {
    std::cerr << "orrery-measure: no GPU to measure: " << first_line(device.text) << '\n';
    return kNoGpu;
  }
  std::filesystem::create_directories(options.out);
  Run run;
  run.info.version = program_version();
  run.info.date = utc(std::chrono::system_clock::now());
  run.info.command_line = command_line;
  run.info.depth = options.depth;
  run.info.seed = options.seed ? *options.seed : std::random_device{}();
  run.out = options.out;
  run.open_device = [&options] { return open_device(options.device, options.system); };
  run.device_section = device.text;
  run.log = &std::cerr;
  const std::vector<Outcome> outcomes = run_all(selected, run);
  pack(options.out, outcomes);
  bool failed = false;
  for (const Outcome& outcome : outcomes) failed = failed || outcome.status == Status::kFailed;
  std::cerr << "wrote " << (options.out / "measurements.tar.gz").string() << '\n';
  return failed ? kMeasurementFailed : 0;
}

int run(const std::vector<std::string>& arguments) {
  const Options options = parse_options(arguments);
  switch (options.action) {
    case Action::kHelp:
      std::cout << help_text();
      return 0;
    case Action::kVersion:
      std::cout << "orrery-measure " << program_version() << '\n';
      return 0;
    case Action::kList:
      std::cout << listing(measurements()) << priority_listing(measurements());
      return 0;
    case Action::kRun:
      break;
  }
  std::string command_line = "orrery-measure";
  for (const std::string& argument : arguments) command_line += ' ' + argument;
  return measure_device(options, command_line);
}

}  // namespace
}  // namespace orrery::measure

int main(int argc, char** argv) {
  using orrery::measure::UsageError;
  try {
    return orrery::measure::run({argv + 1, argv + argc});
  } catch (const UsageError& error) {
    std::cerr << "orrery-measure: " << error.what() << '\n';
    return orrery::measure::kUsage;
  } catch (const std::exception& error) {
    std::cerr << "orrery-measure: " << error.what() << '\n';
    return orrery::measure::kOther;
  }
}
