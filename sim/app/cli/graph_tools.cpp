// SPDX-License-Identifier: Apache-2.0
// Verbs about operator graphs of other programs.
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/graph_arguments.h"
#include "sim/app/questions/base/verb.h"
#include "sim/config/diagnostics.h"
#include "sim/results/table.h"
#include "workloads/formats/dot/imported_dot.h"
#include "workloads/formats/graph_facts.h"

namespace orrery {
namespace {

double seconds_of(Picoseconds time) { return to_seconds(time).base(); }

nlohmann::ordered_json facts_json(const ImportedRun& run, const GraphFacts& facts) {
  nlohmann::ordered_json kinds, transfers;
  for (std::size_t kind = 0; kind < GraphFacts::kKinds; ++kind) {
    kinds[to_string(static_cast<NodeKind>(kind))] = {
        {"nodes", facts.by_kind[kind]}, {"recorded_s", seconds_of(facts.recorded[kind])}};
  }
  for (const auto& [kind, of] : facts.transfers)
    transfers[kind] = {{"count", of.count}, {"bytes", of.bytes}};
  return {{"schema", "orrery.graph/1"},
          {"ranks", run.ranks()},
          {"graphs", run.graphs.size()},
          {"groups", run.groups.size()},
          {"nodes", facts.nodes},
          {"dependencies", facts.dependencies},
          {"untimed", facts.untimed},
          {"kinds", kinds},
          {"transfers", transfers},
          {"flops", facts.flops},
          {"bytes", facts.bytes},
          {"streams", facts.streams},
          {"critical_path_s", seconds_of(facts.critical_path)},
          {"critical_path_nodes", facts.critical_nodes},
          {"notes", run.notes}};
}

void add_facts(const ImportedRun& run, const GraphFacts& facts, Answer& answer) {
  answer.add(fmt::format("{} ranks, {} graphs that differ, {} nodes, {} dependencies\n",
                         run.ranks(), run.graphs.size(), facts.nodes, facts.dependencies));
  Table kinds = Table::titled("nodes | >count | >recorded time | >bytes");
  for (std::size_t kind = 0; kind < GraphFacts::kKinds; ++kind) {
    if (facts.by_kind[kind] == 0) continue;
    kinds.add_row({to_string(static_cast<NodeKind>(kind)), std::to_string(facts.by_kind[kind]),
                   format_si(seconds_of(facts.recorded[kind]), "s"), ""});
  }
  for (const auto& [kind, of] : facts.transfers)
    kinds.add_row({"  " + kind, std::to_string(of.count), "", format_si(of.bytes, "B")});
  answer.add(std::move(kinds));
  answer.add(
      fmt::format("kernels: {}, {}; {} nodes without a recorded time\n"
                  "critical path, in recorded times: {}, {} nodes\n",
                  format_si(facts.flops, "FLOP"), format_si(facts.bytes, "B"), facts.untimed,
                  format_si(seconds_of(facts.critical_path), "s"), facts.critical_nodes));
}

GraphFacts facts_of(const ImportedRun& run) {
  std::vector<GraphFacts> graphs;
  graphs.reserve(run.graphs.size());
  for (const ImportedGraph& graph : run.graphs) graphs.push_back(graph_facts(graph));
  GraphFacts all;
  for (const std::uint32_t graph : run.graph_of_rank)
    if (graph != ImportedRun::kAbsent) all += graphs[graph];
  return all;
}

/// Kernels of a graph without what is fused, and with it.
Table fusion_table(const GraphFacts& apart, const GraphFacts& fused) {
  constexpr auto kKernel = static_cast<std::size_t>(NodeKind::kKernel);
  Table table = Table::titled("fusion | >apart | >fused");
  table.add_row(
      {"kernels", std::to_string(apart.by_kind[kKernel]), std::to_string(fused.by_kind[kKernel])});
  table.add_row({"FLOPs", format_si(apart.flops, "FLOP"), format_si(fused.flops, "FLOP")});
  table.add_row({"bytes", format_si(apart.bytes, "B"), format_si(fused.bytes, "B")});
  return table;
}

struct GraphStatsArguments : GraphArguments {
  bool fuse_kernels = false;

  void take(Options& options) {
    take_graph(options);
    options.flag("--fuse-kernels", fuse_kernels,
                 "fuse attention and elementwise kernels first, as graph.fuse_kernels of a replay "
                 "does");
  }

  ExitCode run() const {
    const ImportedFiles files = read(fuse_kernels);
    const ImportedRun& of = files.run;
    const GraphFacts all = facts_of(of);
    Answer answer{.parts = {}, .json = facts_json(of, all)};
    add_facts(of, all, answer);
    if (fuse_kernels) {
      const GraphFacts apart = facts_of(read().run);
      answer.json["apart"] = facts_json(of, apart);
      answer.add(fusion_table(apart, all));
    }
    print_answer(answer, json);
    return ExitCode::kOk;
  }
};

/// A figure of a graph by its name, with its unit.
struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
};

std::vector<Figure> figures_of(const ImportedRun& run) {
  const GraphFacts facts = facts_of(run);
  std::vector<Figure> figures = {{"ranks", static_cast<double>(run.ranks()), ""},
                                 {"nodes", static_cast<double>(facts.nodes), ""},
                                 {"dependencies", static_cast<double>(facts.dependencies), ""}};
  for (std::size_t kind = 0; kind < GraphFacts::kKinds; ++kind) {
    const std::string name = to_string(static_cast<NodeKind>(kind));
    figures.push_back({name, static_cast<double>(facts.by_kind[kind]), ""});
    figures.push_back({name + " time", seconds_of(facts.recorded[kind]), "s"});
  }
  for (std::size_t kind = 0; kind < kTransferKinds; ++kind) {
    const std::string name = to_string(static_cast<TransferKind>(kind));
    const auto of = facts.transfers.find(name);
    const bool any = of != facts.transfers.end();
    figures.push_back({name, any ? static_cast<double>(of->second.count) : 0, ""});
    figures.push_back({name + " bytes", any ? of->second.bytes : 0, "B"});
  }
  figures.push_back({"FLOPs of kernels", facts.flops, "FLOP"});
  figures.push_back({"bytes of kernels", facts.bytes, "B"});
  figures.push_back({"critical path", seconds_of(facts.critical_path), "s"});
  return figures;
}

struct GraphDiffArguments : GraphArguments {
  std::string other;

  void take(Options& options) {
    take_graph(options);
    options.positional("OTHER", other, "a second file, folder or prefix");
  }

  ExitCode run() const {
    const std::vector<Figure> first = figures_of(read().run);
    GraphArguments second = *this;
    second.path = other;
    const std::vector<Figure> then = figures_of(second.read().run);
    constexpr Table::Align kRight = Table::Align::kRight;
    ToldRows rows{Table({{"figure"}, {path, kRight}, {other, kRight}, {"difference", kRight}})};
    for (std::size_t i = 0; i < first.size(); ++i) {
      const double a = first[i].value;
      const double b = then[i].value;
      if (a == b) continue;
      rows.add({first[i].name, format_si(a, first[i].unit), format_si(b, first[i].unit),
                a > 0 ? format_difference(b / a - 1) : "new"},
               {{"figure", first[i].name}, {"unit", first[i].unit}, {"a", a}, {"b", b}});
    }
    Answer answer{.parts = {},
                  .json = {{"schema", "orrery.graph/1"}, {"differences", std::move(rows.json)}}};
    if (rows.table.empty()) {
      answer.add("no figure differs\n");
    } else {
      answer.add(std::move(rows.table));
    }
    print_answer(answer, json);
    return ExitCode::kOk;
  }
};

struct GraphVerifyArguments : GraphArguments {
  void take(Options& options) { take_graph(options); }

  ExitCode run() const {
    const ImportedFiles files = read();
    // Nodes take no time, so ranks come to their transfers in the order of their dependencies and
    // files alone.
    GraphCosts costs;
    for (const ImportedGraph& graph : files.run.graphs)
      costs.works.emplace_back(graph.works.size());
    costs.recorded_scale = 0;
    const std::string fault = fault_of_replay(files.run, costs);
    if (!fault.empty()) throw config::ConfigError(path + ": " + fault);
    std::uint64_t nodes = 0;
    for (const ImportedGraph& graph : files.run.graphs) nodes += graph.size();
    const std::string text = fmt::format(
        "{}: {} ranks, {} nodes in graphs that differ: no cycles, nothing missing, and all "
        "transfers meet\n",
        path, files.run.ranks(), nodes);
    print_answer({.parts = {text},
                  .json = {{"schema", "orrery.graph/1"},
                           {"valid", true},
                           {"ranks", files.run.ranks()},
                           {"nodes", nodes},
                           {"notes", files.run.notes}}},
                 json);
    return ExitCode::kOk;
  }
};

struct GraphDotArguments : GraphArguments {
  std::string output;

  void take(Options& options) {
    take_graph(options);
    options.option("-o,--output", output, "file to write; without it standard output");
  }

  ExitCode run() const {
    const ImportedFiles files = read();
    write_to(output, [&](std::ostream& out) {
      for (std::size_t i = 0; i < files.run.graphs.size(); ++i)
        write_dot(files.run.graphs[i], fmt::format("{} graph {}", path, i), out);
    });
    return ExitCode::kOk;
  }
};

const RegisterVerb<GraphStatsArguments> registered_graph_stats(
    "graph stats", "nodes, bytes, FLOPs and the critical path of operator graphs");
const RegisterVerb<GraphVerifyArguments> registered_graph_verify(
    "graph verify", "cycles, missing nodes, and transfers that do not meet across ranks");
const RegisterVerb<GraphDiffArguments> registered_graph_diff(
    "graph diff", "what two operator graphs differ in: counts, times, bytes, FLOPs");
const RegisterVerb<GraphDotArguments> registered_graph_dot(
    "graph dot", "operator graphs in Graphviz's language");

}  // namespace
}  // namespace orrery
