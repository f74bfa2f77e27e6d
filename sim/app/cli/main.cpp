// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "sim/app/cli/commands.h"
#include "sim/results/version.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

/// What the command line asked for; set by the verb that was parsed.
using Command = std::function<ExitCode()>;

/// Calls `verb(arguments)` when `app` was the one that was parsed.
template <class Arguments>
void choose(CLI::App* app, Command& chosen, const std::shared_ptr<Arguments>& arguments,
            ExitCode (*verb)(const Arguments&)) {
  app->callback(
      [arguments, verb, &chosen] { chosen = [arguments, verb] { return verb(*arguments); }; });
}

void add_set_option(CLI::App* verb, std::vector<std::string>& set) {
  verb->add_option("--set", set, "path=value, laid over the file; repeatable")
      ->allow_extra_args(false);
}

void add_run(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* verb = app.add_subcommand("run", "simulate one experiment");
  verb->add_option("EXPERIMENT", arguments->file, "experiment file (YAML)")->required();
  add_set_option(verb, arguments->set);
  verb->add_option("--db", arguments->db, "append the result to this store (SQLite)");
  verb->add_option("--trace", arguments->trace, "write a timeline for ui.perfetto.dev");
  verb->add_flag("--json", arguments->json, "print JSON");
  choose(verb, chosen, arguments, run_command);
}

void add_check(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<CheckArguments>();
  CLI::App* verb = app.add_subcommand("check", "parse and validate files without simulating");
  verb->add_option("FILE", arguments->files,
                   "experiments, sweeps, systems, accelerators, models, published rows")
      ->required();
  verb->add_flag("--json", arguments->json, "print JSON");
  choose(verb, chosen, arguments, check_command);
}

void add_explain(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* verb =
      app.add_subcommand("explain", "what limits a run, and which inputs had no effect");
  verb->add_option("EXPERIMENT", arguments->file, "experiment file (YAML)")->required();
  add_set_option(verb, arguments->set);
  verb->add_flag("--config", arguments->config, "every value with its origin, too");
  verb->add_flag("--json", arguments->json, "print JSON");
  choose(verb, chosen, arguments, explain_command);
}

void add_describe(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<DescribeArguments>();
  CLI::App* verb = app.add_subcommand("describe", "what exists; systems side by side");
  verb->add_option(
      "KIND", arguments->words,
      "a kind (accelerators, systems, models, topologies, collectives, operators, kernels, "
      "calibrations, metrics, keys), then names");
  verb->add_option("--nodes", arguments->nodes, "topology SYSTEM: copies of the system")
      ->check(CLI::Range(1, 1000000));
  verb->add_flag("--dot", arguments->dot, "topology SYSTEM: physical links for Graphviz");
  verb->add_flag("--json", arguments->json, "print JSON");
  choose(verb, chosen, arguments, describe_command);
}

void add_validate_operators(CLI::App& validate, Command& chosen) {
  const auto arguments = std::make_shared<OperatorsArguments>();
  CLI::App* verb = validate.add_subcommand("operators", "tables of measured kernel times");
  verb->add_option("FILE", arguments->files, "tables (CSV, plain or gzip)")->required();
  verb->add_option("--rows", arguments->rows, "write the rows with predictions to this CSV");
  verb->add_option("--calibration", arguments->calibration,
                   "auto (default), none (priors), a calibration of the library, or a path");
  verb->add_option("--baseline", arguments->baseline,
                   "a calibration to compare with, or a folder of them by device (such as of "
                   "calibrate --model roofline)");
  verb->add_option("--fidelity", arguments->fidelity, "auto (default), closed or tile")
      ->check(CLI::IsMember({"auto", "closed", "tile"}));
  verb->add_flag("--held-out", arguments->held_out, "only shape groups that no fit has seen");
  verb->add_flag("--json", arguments->json, "print JSON");
  choose(verb, chosen, arguments, validate_operators_command);
}

void add_validate_collectives(CLI::App& validate, Command& chosen) {
  const auto arguments = std::make_shared<CollectivesArguments>();
  CLI::App* verb = validate.add_subcommand("collectives", "tables of measured collectives");
  verb->add_option("FILE", arguments->files, "tables (CSV, plain or gzip)")->required();
  verb->add_option("--rows", arguments->rows, "write the rows with predictions to this CSV");
  verb->add_option("--calibration,--from", arguments->calibration,
                   "auto (default: of the system itself), none (priors), that of another system "
                   "such as dgx_h100, or a path");
  CLI::Option* held_out =
      verb->add_flag("--held-out", arguments->held_out, "only rows that no fit has seen");
  CLI::Option* rows = verb->get_option("--rows");
  CLI::Option* from = verb->get_option("--calibration");
  verb->add_flag("--summary", arguments->summary,
                 "held-out rows of all systems and of siblings, published rows by source, each "
                 "beside what is demanded")
      ->excludes(held_out)
      ->excludes(rows)
      ->excludes(from);
  verb->add_flag("--json", arguments->json, "print JSON");
  choose(verb, chosen, arguments, validate_collectives_command);
}

void add_calibrate(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* verb =
      app.add_subcommand("calibrate", "fit the kernel model to measurements of a device");
  verb->add_option("FILE", arguments->files, "tables of measurements (CSV, plain or gzip)")
      ->required();
  verb->add_option("--accelerator", arguments->accelerators,
                   "only these devices; default: all that the tables have");
  verb->add_option("--system", arguments->systems,
                   "fit the collective protocols of these systems instead, such as dgx_h200");
  verb->add_option("-o,--output", arguments->output,
                   "folder or file to write; default: configs/calibrations, for systems "
                   "configs/network_calibrations");
  verb->add_option("--source", arguments->source, "who measured, and with what");
  verb->add_option("--date", arguments->date, "of the measurement; default: today");
  verb->add_option("--model", arguments->model, "kernel model: tiles (default) or roofline");
  verb->add_flag("--check", arguments->check, "fit again and tell what moved; writes nothing");
  verb->add_flag("--json", arguments->json, "print JSON");
  choose(verb, chosen, arguments, calibrate_command);
}

void add_validate(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<PublishedArguments>();
  CLI::App* verb = app.add_subcommand("validate", "predicted against measured");
  verb->require_subcommand(1);
  add_validate_operators(*verb, chosen);
  add_validate_collectives(*verb, chosen);
  CLI::App* published = verb->add_subcommand("published", "published figures of real systems");
  published->add_option("FILE", arguments->files, "lists of published rows (YAML)")->required();
  published->add_flag("--json", arguments->json, "print JSON");
  choose(published, chosen, arguments, validate_published_command);
}

void add_sweep(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<SweepArguments>();
  CLI::App* verb = app.add_subcommand("sweep", "design-space exploration into one store");
  verb->require_subcommand(1);
  CLI::App* run = verb->add_subcommand("run", "simulate the points that the store does not have");
  run->add_option("SWEEP", arguments->file, "sweep file (YAML)")->required();
  run->add_option("--db", arguments->db, "the store (SQLite); default: <name of the sweep>.db");
  run->add_option("--jobs", arguments->jobs,
                  "processes that simulate points; default: one for each processor")
      ->check(CLI::Range(1, 4096));
  run->add_flag("--json", arguments->json, "print JSON");
  choose(run, chosen, arguments, sweep_run_command);
}

void add_import(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<ImportArguments>();
  CLI::App* verb = app.add_subcommand("import", "measurements of other tools as one CSV file");
  verb->add_option("KIND", arguments->kind, import_kinds())->required();
  verb->add_option("FILE", arguments->files, "files of that kind; text may be gzip")->required();
  verb->add_option("-o,--output", arguments->output, "CSV file; without it only the summary");
  verb->add_option("--system", arguments->system, "accelerator that was measured (nccl-tests)");
  verb->add_option("--collective", arguments->collective,
                   "collective, where the text does not name the program (nccl-tests)");
  verb->add_flag("--json", arguments->json, "print JSON");
  choose(verb, chosen, arguments, import_command);
}

void add_schema(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<SchemaArguments>();
  CLI::App* verb = app.add_subcommand("schema", "print the JSON Schema (draft-07) of YAML files");
  verb->add_option("KIND", arguments->kind,
                   "experiment (default), sweep, published, system, accelerator or model");
  verb->add_flag("--json", arguments->json, "accepted; JSON is the only form");
  choose(verb, chosen, arguments, schema_command);
}

/// Says what `verb` may have meant, if it is none. CLI11 itself only says that a subcommand is
/// missing.
bool is_unknown(const CLI::App& app, const std::string& verb) {
  std::vector<std::string> verbs;
  for (const CLI::App* known : app.get_subcommands({})) verbs.push_back(known->get_name());
  if (verb.starts_with('-') || std::find(verbs.begin(), verbs.end(), verb) != verbs.end())
    return false;
  const std::string meant = nearest_name(verb, verbs);
  std::cerr << "error: unknown command '" << verb << "'"
            << (meant.empty() ? "" : "; did you mean '" + meant + "'?") << "\nthere are:";
  for (const std::string& known : verbs) std::cerr << " " << known;
  std::cerr << "\n";
  return true;
}

/// Parses the command line into `chosen`. @return an exit code when the process is to end at once
std::optional<ExitCode> parse_command_line(int argc, char** argv, Command& chosen) {
  CLI::App app{"Orrery simulates AI accelerators and clusters running language models."};
  app.name("orrery");
  app.set_version_flag("--version", "orrery " + std::string(kEngineVersion));
  app.require_subcommand(1);
  for (const auto add : {add_run, add_check, add_explain, add_describe, add_validate, add_calibrate,
                         add_sweep, add_import, add_schema}) {
    add(app, chosen);
  }
  if (argc > 1 && is_unknown(app, argv[1])) return ExitCode::kUsage;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == 0;
    app.exit(error, std::cout, std::cerr);
    return asked_for_help ? ExitCode::kOk : ExitCode::kUsage;
  }
  return std::nullopt;
}

ExitCode run_chosen(const Command& chosen) {
  try {
    const ExitCode code = chosen();
    std::cout.flush();
    if (!std::cout) throw ResourceError("cannot write to standard output");
    return code;
  } catch (...) {
    const Failure failure = classify(std::current_exception());
    std::cerr << failure.message << (failure.message.ends_with('\n') ? "" : "\n");
    return failure.code;
  }
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // `orrery ... | head` ends quietly
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of its writer
  orrery::Command chosen;
  const auto ended = orrery::parse_command_line(argc, argv, chosen);
  return static_cast<int>(ended ? *ended : orrery::run_chosen(chosen));
}
