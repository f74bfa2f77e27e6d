// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/app/cli/verb.h"
#include "sim/app/experiments/files/file_kind.h"

namespace orrery {
namespace {

struct CheckArguments {
  std::vector<std::string> files;
  bool json = false;

  void take(Options& options);
  ExitCode run() const;
};

}  // namespace

void CheckArguments::take(Options& options) {
  options.positionals("FILE", files,
                      "experiments, sweeps, systems, accelerators, models, published rows");
  options.json(json);
}

ExitCode CheckArguments::run() const {
  ExitCode code = ExitCode::kOk;
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const std::string& file : files) {
    std::string error;
    try {
      std::cerr << FileKinds::find(file_kind(file))->check(file);
    } catch (...) {
      const Failure failure = classify(std::current_exception());
      error = failure.message;
      if (code == ExitCode::kOk) code = failure.code;
      std::cerr << error << (error.ends_with('\n') ? "" : "\n");
    }
    if (json) {
      results.push_back({{"file", file}, {"ok", error.empty()}, {"error", error}});
    } else if (error.empty()) {
      std::cout << file << ": ok\n";
    }
  }
  if (json)
    std::cout << nlohmann::ordered_json{{"schema", "orrery.check/1"}, {"files", results}}.dump(2)
              << "\n";
  return code;
}

namespace {

const RegisterVerb<CheckArguments> registered_check("check",
                                                    "parse and validate files without simulating");

}  // namespace

}  // namespace orrery
