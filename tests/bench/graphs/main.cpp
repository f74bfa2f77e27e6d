// SPDX-License-Identifier: Apache-2.0
// Chakra traces from file to result: nodes per second and bytes per node. Writes its own input.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "sim/app/experiments/core/simulate.h"
#include "sim/config/load.h"
#include "tests/unit/workloads/formats/chakra_file.h"

namespace orrery::bench {
namespace {

namespace fs = std::filesystem;
using test::attribute;
using test::chakra_node;
using test::int64_attribute;
using test::micros;
using test::number;

/// A chain of kernels; each `every`-th node is an all-reduce of all ranks. 0: none is.
void write_chain(const fs::path& file, std::uint64_t nodes, std::uint64_t every, unsigned rank) {
  std::ofstream out(file, std::ios::binary);
  out << test::chakra_file("");
  std::string text;
  for (std::uint64_t id = 0; id < nodes; ++id) {
    const std::vector<std::uint64_t> after =
        id > 0 ? std::vector<std::uint64_t>{id - 1} : std::vector<std::uint64_t>{};
    const std::string on_device = attribute("is_cpu_op", number(27, 0));
    if (every > 0 && id % every == every - 1) {
      text += chakra_node(
          id, "all_reduce_" + std::to_string(id), 7, after,
          on_device + int64_attribute("comm_type", 0) + int64_attribute("comm_size", 1 << 20));
    } else {
      text += chakra_node(id, "compute_" + std::to_string(id), 4, after,
                          micros(5 + (id * 7 + rank) % 50) + on_device +
                              int64_attribute("num_ops", 1'000'000'000) +
                              attribute("tensor_size", number(13, 1 << 20)));
    }
    if (text.size() > (1U << 20U)) {
      out << text;
      text.clear();
    }
  }
  out << text;
}

/// Time of the processor, of which other programs take nothing; reads and faults of pages included.
double cpu_seconds() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double memory_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

/// Reads and replays the graphs at a path, and says how fast.
void report(const char* what, const fs::path& path, const char* system, int copies) {
  config::Diagnostics diagnostics;
  const std::string text = std::string("{experiment: replay, system: ") + system +
                           ", nodes: " + std::to_string(copies) +
                           ", graph: {path: " + path.string() + "}}";
  const double before = memory_bytes();
  const double start = cpu_seconds();
  const LoadedExperiment loaded =
      load_experiment(config::parse_yaml(text, "bench.yaml", diagnostics), {}, diagnostics);
  const double read = cpu_seconds() - start;
  const RunRecord record = simulate(loaded);
  const double all = cpu_seconds() - start;
  const double nodes = record.find("graph_nodes")->value;
  std::printf(
      "%-28s %9.0f nodes  %6.2f CPU-s (%.2f read)  %8.0f nodes/s  %5.0f B/node  end %.9g s\n", what,
      nodes, all, read, nodes / all, (memory_bytes() - before) / nodes,
      record.find("time_s")->value);
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) {
  using namespace orrery::bench;
  const std::uint64_t nodes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2'000'000;
  const fs::path folder = fs::temp_directory_path() / "orrery_graph_bench";
  fs::create_directories(folder);
  write_chain(folder / "chain.et", nodes, 0, 0);
  report("chain", folder / "chain.et", "dgx_h100", 1);
  for (unsigned rank = 0; rank < 64; ++rank)
    write_chain(folder / ("ranks." + std::to_string(rank) + ".et"), nodes / 64, 10, rank);
  report("64 ranks, 10 % all-reduces", folder / "ranks", "gb200_nvl72", 1);
  fs::remove_all(folder);
  return 0;
}
