// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "sim/app/cli/answer_text.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/verb.h"
#include "sim/app/questions/points/export_points.h"

namespace orrery {
namespace {

struct ExportArguments {
  StoreChoice choice;
  bool csv = false, jsonl = false, json = false;
  std::string reproduce, output;

  void take(Options& options) {
    choice.take(options);
    options.flag("--csv", csv, "a row for each result, ordered by identity");
    options.flag("--jsonl", jsonl, "a JSON object on a line for each result, likewise");
    options.json(json);
    options.option("--reproduce", reproduce,
                   "point (its name, or the begin of its identity) to be written as an experiment "
                   "that `orrery run` repeats it from");
    options.option("-o,--output", output, "file to write instead of standard output");
    options.examples({"export sweep.db --csv --where \"parallel.tp == 8\" -o rows.csv",
                      "export sweep.db --jsonl",
                      "export sweep.db --reproduce 84d41f852bb1 -o point.yaml"});
    options.excludes("--csv", {"--jsonl", "--json", "--reproduce"});
    options.excludes("--reproduce", {"--jsonl", "--json", "--where"});
  }

  ExitCode run() const {
    if (!reproduce.empty()) return write_reproduction();
    if (!csv && !jsonl && !json) throw UsageError("export: --csv, --jsonl or --reproduce POINT");
    write_to(output, [&](std::ostream& out) { write_results(out); });
    return ExitCode::kOk;
  }

 private:
  void write_results(std::ostream& out) const {
    if (csv) {
      export_rows(choice, [&](const std::vector<std::string>& cells) { print_csv({cells}, out); });
      return;
    }
    // --json is one array, as of every verb; --jsonl is the same by the line.
    const char* between = json ? "[\n" : "";
    export_lines(choice, [&](const std::string& line) {
      out << between << line << (json ? "" : "\n");
      if (json) between = ",\n";
    });
    if (json) out << (*between == '[' ? "[]\n" : "\n]\n");
  }

  ExitCode write_reproduction() const {
    const ResultStore store = ResultStore::open_read_only(choice.store);
    const RunRecord record = find_point(store, reproduce);
    const std::string text = reproduction(record);
    write_to(output, [&](std::ostream& out) { out << text; });
    if (output.empty()) return ExitCode::kOk;
    const std::string obstacle = obstacle_to(record, output);
    if (!obstacle.empty()) std::cerr << "warning: " << obstacle << "\n";
    std::cerr << "orrery run " << output << "\n";
    return obstacle.empty() ? ExitCode::kOk : ExitCode::kPartial;
  }
};

const RegisterVerb<ExportArguments> registered_export(
    "export", "results of a store as CSV or JSON lines, or a point as an experiment file");

}  // namespace
}  // namespace orrery
