// SPDX-License-Identifier: Apache-2.0
// Collectives of whole clusters: building the network of DGX H100, pricing one collective; and
// whole experiments on 10,000 and 100,000 nodes.
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "models/transfers/flow_model.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/config/library.h"
#include "sim/config/load.h"
#include "sim/machine/system_config.h"
#include "tests/bench/contest.h"
#include "tests/bench/contestants.h"

namespace orrery::bench {
namespace {

Sample price(TransferKind kind, int ranks, const std::string& algorithm) {
  const config::Library& library = config::default_library();
  const auto system =
      config::load<SystemConfig>(library.locate("systems", "dgx_h100", ""), library, "systems");
  Transfer transfer;
  transfer.name = "bench";
  transfer.kind = kind;
  transfer.bytes = Bytes(1 << 30);
  transfer.groups.emplace_back(static_cast<std::size_t>(ranks));
  std::iota(transfer.groups[0].begin(), transfer.groups[0].end(), 0);
  const double memory = allocated_bytes(), begin = cpu_seconds();
  const FlowModel network(system, ranks / system.ranks(), algorithm);
  const PricedTransfer priced = network.price(transfer);
  const double seconds = cpu_seconds() - begin;
  return {priced.isolated_time.base() > 0 ? seconds : 0, allocated_bytes() - memory};
}

/// The most that this process has held, in bytes.
double peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

/// An experiment from its text to its result.
Sample simulate_nodes(const std::string& text) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("orrery_bench_" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(file) << text;
  const double begin = cpu_seconds();
  const RunRecord record = simulate(load_experiment(file.string(), {}));
  const double seconds = cpu_seconds() - begin;
  std::filesystem::remove(file);
  return {record.status == RunStatus::kOk ? seconds : 0, peak_bytes()};
}

std::string collective_on(int nodes) {
  return "experiment: collective\nsystem: dgx_h100\nnodes: " + std::to_string(nodes) +
         "\ncollective: {kind: all_reduce, bytes: 64 MiB}\n";
}

std::string training_on(int nodes) {
  return "experiment: training\nsystem: dgx_h100\nnodes: " + std::to_string(nodes) +
         "\nmodel: llama_3_1_8b\nparallel: {tp: 8, sp: true, dp: " + std::to_string(nodes) +
         "}\nbatch: {global: " + std::to_string(nodes) + ", micro: 1, sequence: 4096}\n";
}

/// A step of 16 micro-batches on 98,304 accelerators.
std::string ranks_step(const std::string& fold) {
  return "experiment: training\nsystem: dgx_h100\nnodes: 12288\nmodel: llama_3_1_405b\n"
         "parallel: {tp: 8, sp: true, pp: 16, dp: 768, zero: 1}\n"
         "batch: {global: 12288, micro: 1, sequence: 8192}\nrecompute: full\nfold: " +
         fold + "\n";
}

/// Folded, and with every rank replayed on its own.
void add_ranks() {
  const std::string folded = "ranks/98k/folded", alone = "ranks/98k/unfolded";
  add_contestant(folded, [] { return simulate_nodes(ranks_step("auto")); });
  add_contestant(alone, [] { return simulate_nodes(ranks_step("off")); });
  const std::string step = "405B step on 98,304 ranks, ";
  add_comparison(
      {"N6", step + "folded [s]", folded, "", Quantity::kSeconds, Limit::kAtMost, 1, false});
  add_comparison({"N7", step + "unfolded: 640 M operators [s]", alone, "", Quantity::kSeconds,
                  Limit::kAtMost, 60, false});
  add_comparison({"N7", step + "unfolded, memory [B]", alone, "", Quantity::kBytes, Limit::kAtMost,
                  4.0 * (1ULL << 30), false});
}

/// 10,000 and 100,000 nodes side by side: ten times as many may take fifteen times as much.
void add_nodes(const char* id, const std::string& what, std::string (*text)(int)) {
  const std::string small = "nodes/" + what + "/10k", large = "nodes/" + what + "/100k";
  add_contestant(small, [=] { return simulate_nodes(text(10'000)); });
  add_contestant(large, [=] { return simulate_nodes(text(100'000)); });
  const std::string on = what + " on 100,000 nodes";
  add_comparison({id, on + " [s]", large, "", Quantity::kSeconds, Limit::kAtMost, 5, false});
  add_comparison(
      {id, on + ", memory [B]", large, "", Quantity::kBytes, Limit::kAtMost, 5e8, false});
  add_comparison(
      {id, on + " over 10,000, time", large, small, Quantity::kSeconds, Limit::kAtMost, 15, false});
  add_comparison(
      {id, on + " over 10,000, memory", large, small, Quantity::kBytes, Limit::kAtMost, 15, false});
}

}  // namespace

void add_network_contest() {
  const auto add = [](const char* id, TransferKind kind, int ranks, const std::string& algorithm,
                      double most) {
    const std::string name =
        std::string("network/") + to_string(kind) + "/" + std::to_string(ranks);
    add_contestant(name, [=] { return price(kind, ranks, algorithm); });
    add_comparison(
        {id, algorithm + " " + to_string(kind) + " on " + std::to_string(ranks) + " ranks [s]",
         name, "", Quantity::kSeconds, Limit::kAtMost, most, false});
    add_comparison({id, algorithm + " " + to_string(kind) + ", memory [B]", name, "",
                    Quantity::kBytes, Limit::kAtMost, 3000.0 * ranks, false});
  };
  add("N1", TransferKind::kAllReduce, 4096, "ring", 0.1);
  add("N2", TransferKind::kAllToAll, 16384, "auto", 1);
  add("N3", TransferKind::kAllReduce, 98304, "auto", 1);
  add_nodes("N4", "all_reduce", collective_on);
  add_nodes("N5", "training", training_on);
  add_ranks();
}

}  // namespace orrery::bench
