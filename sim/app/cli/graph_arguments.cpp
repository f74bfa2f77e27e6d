// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/graph_arguments.h"

#include <iostream>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/verb.h"

namespace orrery {

void GraphArguments::take_graph(Options& options) {
  options.positional("FILE-OR-PREFIX", path,
                     "a file, a folder with a file for each rank, or what stands before "
                     ".<rank>.et");
  options.option("--groups", groups, "JSON file of communicators: {\"name\": [ranks], ...}");
  options.repeatable("--set", dimensions, "size of a symbolic dimension: batch=8; repeatable");
  options.flag("--repair", repair,
               "drop dependencies on nodes that are not there, and those that close cycles; take "
               "collectives without comm_type (Chakra) for what they are named");
  options.json(json);
}

ImportedFiles GraphArguments::read(bool fuse_kernels) const {
  GraphFiles files{path, groups, repair, {}};
  files.fuse_kernels = fuse_kernels;
  for (const std::string& text : dimensions) {
    const std::size_t equals = text.find('=');
    std::size_t used = 0;
    std::int64_t size = 0;
    try {
      if (equals != std::string::npos) size = std::stoll(text.substr(equals + 1), &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used == 0 || equals + 1 + used != text.size() || size < 1)
      throw UsageError("--set " + text + ": expected name=size");
    files.dimensions[text.substr(0, equals)] = size;
  }
  ImportedFiles read = read_graph_files(files);
  for (const std::string& note : read.run.notes) std::cerr << note << "\n";
  return read;
}

std::string fault_of_replay(const ImportedRun& run, const GraphCosts& costs) {
  try {
    replay(run, costs);
  } catch (const GraphMismatch& error) {
    return error.what();
  } catch (const DeadlockError& error) {
    return error.what();
  }
  return {};
}

}  // namespace orrery
