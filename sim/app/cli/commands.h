// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/experiments/exit_codes.h"

namespace orrery {

// One function per verb, with what the command line gave it. stdout carries the result only.

struct RunArguments {
  std::string file, db, trace;
  std::vector<std::string> set;
  bool json = false;
};
ExitCode run_command(const RunArguments& arguments);

struct CheckArguments {
  std::vector<std::string> files;
  bool json = false;
};
ExitCode check_command(const CheckArguments& arguments);

struct ExplainArguments {
  std::string file;
  std::vector<std::string> set;
  bool config = false;  ///< every value with its origin, too
  bool json = false;
};
ExitCode explain_command(const ExplainArguments& arguments);

struct DescribeArguments {
  std::vector<std::string> words;
  int nodes = 1;     ///< of `topology SYSTEM`: copies of the system
  bool dot = false;  ///< of `topology SYSTEM`: its links in Graphviz's language
  bool json = false;
};
ExitCode describe_command(const DescribeArguments& arguments);

struct PublishedArguments {
  std::vector<std::string> files;
  bool json = false;
};
ExitCode validate_published_command(const PublishedArguments& arguments);

struct OperatorsArguments {
  std::vector<std::string> files;
  std::string rows;                  ///< file for the rows with their predictions; empty: none
  std::string calibration = "auto";  ///< as the key of an experiment
  std::string baseline;              ///< a calibration to compare with, or a folder; empty: none
  std::string fidelity = "auto";     ///< likewise
  bool held_out = false;             ///< only shape groups that fits leave out
  bool json = false;
};
ExitCode validate_operators_command(const OperatorsArguments& arguments);

struct CollectivesArguments {
  std::vector<std::string> files;
  std::string rows;                  ///< file for the rows with their predictions; empty: none
  std::string calibration = "auto";  ///< of the network: auto, none, a name or a path
  bool held_out = false;             ///< only rows that fits leave out
  bool summary = false;              ///< what the model is good for, in one table
  bool json = false;
};
ExitCode validate_collectives_command(const CollectivesArguments& arguments);

struct CalibrateArguments {
  std::vector<std::string> files;
  std::vector<std::string> systems;  ///< fit protocols of these; empty: kernels of accelerators
  std::vector<std::string> accelerators;  ///< empty: all that the tables have
  std::string output;                     ///< empty: a folder of the library
  std::string source, date;
  std::string model = "tiles";  ///< of kernels
  bool check = false;           ///< compare with the file that is there, write nothing
  bool json = false;
};
ExitCode calibrate_command(const CalibrateArguments& arguments);
ExitCode calibrate_collectives_command(const CalibrateArguments& arguments);

struct SweepArguments {
  std::string file, db;
  std::size_t jobs = 0;  ///< 0: one for each processor
  bool json = false;
};
ExitCode sweep_run_command(const SweepArguments& arguments);

struct ImportArguments {
  std::string kind, output, system, collective;
  std::vector<std::string> files;
  bool json = false;
};
ExitCode import_command(const ImportArguments& arguments);
/// "nccl-tests, nsys, ...": what import_command() knows.
std::string import_kinds();

struct SchemaArguments {
  std::string kind = "experiment";
  bool json = true;  ///< there is no other form
};
ExitCode schema_command(const SchemaArguments& arguments);

}  // namespace orrery
