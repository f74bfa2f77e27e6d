// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_slice.h"

#include <fmt/core.h>
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/graph_arguments.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/verb.h"
#include "sim/config/diagnostics.h"
#include "sim/replay/graph_replay.h"
#include "sim/units/comma_separated.h"
#include "sim/units/text.h"
#include "workloads/formats/graph_format.h"

namespace orrery {
namespace {

std::string slice_formats() {
  std::vector<std::string> names;
  for (const auto& [name, item] : GraphFormatRegistry::items())
    if (item.entry->writes_runs()) names.push_back(name);
  return comma_joined(names);
}

bool whole_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

[[noreturn]] void refuse(const std::string& option, const std::string& text,
                         const std::string& why) {
  throw UsageError(fmt::format("{} {}: {}", option, text, why));
}

/// "3,8..15" as ranges.
std::vector<GraphSelection::Range> ranges_of(const std::string& option,
                                             const std::vector<std::string>& texts) {
  std::vector<GraphSelection::Range> ranges;
  for (const std::string& text : texts) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      const std::string_view one = std::string_view(text).substr(begin, end - begin);
      const std::size_t dots = one.find("..");
      GraphSelection::Range range;
      const bool first = whole_number(one.substr(0, dots), range.first);
      range.second = range.first;
      const bool last =
          dots == std::string_view::npos || whole_number(one.substr(dots + 2), range.second);
      if (!first || !last || range.second < range.first)
        refuse(option, text, "expected numbers or ranges, like 3,8..15");
      ranges.push_back(range);
      begin = end + 1;
    }
  }
  return ranges;
}

std::optional<Picoseconds> time_of(const std::string& option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return to_picoseconds(orrery::parse<Seconds>(text));
  } catch (const std::exception& error) {
    refuse(option, text, error.what());
  }
}

struct GraphSliceArguments : GraphArguments {
  std::vector<std::string> ranks, ids, names;
  std::string from, until, upstream, downstream, format = "chakra", output;

  void take(Options& options) {
    take_graph(options);
    options.repeatable("--ranks", ranks, "ranks to keep, like 0,4..7; others have no file");
    options.repeatable("--ids", ids, "identifiers of nodes in their files, like 100..199");
    options.repeatable("--name", names, "part of the names of nodes; repeatable, one has to fit");
    options.option("--from", from,
                   "nodes that begin at this time or later, like 1.5 ms, where the graph is "
                   "replayed in the times that its files have recorded");
    options.option("--until", until, "nodes that begin before this time");
    options.option("--upstream-of", upstream,
                   "a node, by identifier or name, and all that it waits for on its rank");
    options.option("--downstream-of", downstream,
                   "a node, by identifier or name, and all that waits for it on its rank");
    options.option("--format", format, "what is written: " + slice_formats());
    options.option("-o,--output", output,
                   "what stands before .<rank>.et in the names of the files");
    options.examples({R"(graph slice traces/ --ranks 0 --from "10 ms" --until "20 ms" -o part)",
                      "graph slice trace.json.gz -o trace"});
  }

  ExitCode run() const {
    if (output.empty()) throw UsageError("graph slice needs -o PREFIX");
    const GraphFormat& form = *GraphFormatRegistry::at("graph format", format, "--format");
    if (!form.writes_runs())
      throw UsageError(
          fmt::format("--format: {} is not written; there are: {}", format, slice_formats()));
    const GraphSelection selection = selected();
    const ImportedFiles files = read();
    const GraphSlice part = cut(files.run, selection);
    std::vector<std::string> written;
    form.write_run(part.run, [&](const std::string& ending, const auto& write) {
      write_to(output + ending, write);
      written.push_back(output + ending);
    });
    const std::string fault = fault_of_replay(part.run, {});
    print_answer(answer(part, written, fault), json);
    if (!json && !fault.empty())
      std::cerr << "the transfers of this part do not meet, so that it cannot be replayed: "
                << fault << "\n";
    return ExitCode::kOk;
  }

 private:
  GraphSelection selected() const {
    GraphSelection selection = {.ranks = ranges_of("--ranks", ranks),
                                .ids = ranges_of("--ids", ids),
                                .names = names,
                                .from = time_of("--from", from),
                                .until = time_of("--until", until),
                                .upstream_of = upstream,
                                .downstream_of = downstream};
    if (selection.until && *selection.until <= selection.from.value_or(0))
      throw UsageError("--until " + until + " is not after --from");
    return selection;
  }

  GraphSlice cut(const ImportedRun& whole, const GraphSelection& selection) const {
    NodeTimes begins;
    try {
      GraphReplayOptions options;
      options.begins = &begins;
      if (selection.timed()) replay(whole, {}, {}, options);
      return slice(whole, selection, begins);
    } catch (const GraphMismatch& error) {
      throw config::ConfigError(path + ": " + error.what());
    } catch (const DeadlockError& error) {
      throw config::ConfigError(path + ": " + error.what());
    } catch (const config::ConfigError& error) {
      throw config::ConfigError(path + ": " + error.what());
    }
  }

  static Answer answer(const GraphSlice& part, const std::vector<std::string>& written,
                       const std::string& fault) {
    const std::string text = fmt::format(
        "{} nodes in {} {}, {} left out\n"
        "dependencies dropped: {} on nodes that are left out, {} of such nodes\n",
        part.nodes, written.size(), written.size() == 1 ? "file" : "files", part.left_out,
        part.waits_cut, part.next_cut);
    Answer answer{.parts = {text},
                  .json = {{"schema", "orrery.graph/1"},
                           {"files", written},
                           {"nodes", part.nodes},
                           {"nodes_left_out", part.left_out},
                           {"dependencies_cut", part.waits_cut},
                           {"dependents_cut", part.next_cut},
                           {"transfers_meet", fault.empty()}}};
    if (!fault.empty()) answer.json["mismatch"] = fault;
    return answer;
  }
};

const RegisterVerb<GraphSliceArguments> registered_graph_slice(
    "graph slice", "a part of operator graphs, or all of them, as Chakra traces");

}  // namespace
}  // namespace orrery
