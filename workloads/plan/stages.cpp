// SPDX-License-Identifier: Apache-2.0
#include "workloads/plan/stages.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "workloads/base/require.h"

namespace orrery {

std::vector<std::int64_t> stage_layers(std::int64_t layers, int stages) {
  require(layers >= stages, "parallel.pp",
          fmt::format("{} pipeline stages for {} layers", stages, layers),
          {std::to_string(layers), {}});
  std::vector<std::int64_t> count(static_cast<std::size_t>(stages), layers / stages);
  std::int64_t left = layers % stages;
  for (std::size_t stage = count.size() - 1; stage-- > 1 && left > 0; --left) ++count[stage];
  // All stages but one have one more: the head is a larger GEMM than the embedding's lookup, so the
  // last stays short.
  if (left > 0) ++count.front();
  return count;
}

namespace {

using KeyPaths = std::vector<std::string>;

using Counts = std::vector<std::int64_t>;

std::string layers_text(std::int64_t layers) { return std::to_string(layers) + " layers"; }

/// As written in parallel.layout.slices.
Counts written_counts(std::int64_t layers, const ParallelConfig& parallel, int slices,
                      int modules) {
  const std::vector<SliceContents> written = written_slices(parallel.layout.slices);
  const auto size = static_cast<int>(written.size());
  require(size == slices, KeyPaths{"parallel.layout.slices", "parallel.vpp", "parallel.pp"},
          fmt::format("the layout has {} slices, the pipeline {} (pp = {}, vpp = {})", size, slices,
                      parallel.pp, parallel.vpp),
          size % parallel.pp == 0
              ? config::Advice{{}, {"parallel.vpp: " + std::to_string(size / parallel.pp)}}
              : config::Advice{});
  Counts counts;
  SliceContents all;
  for (const SliceContents& slice : written) {
    counts.push_back(slice.layers);
    all.layers += slice.layers;
    all.modules += slice.modules;
  }
  require(all.layers == layers, KeyPaths{"parallel.layout.slices", "model"},
          fmt::format("the layout has {} (t), the model {}", layers_text(all.layers), layers));
  require(all.modules == modules, KeyPaths{"parallel.layout.slices", "mtp"},
          fmt::format("the layout has {} modules of multi-token prediction (m), the step {}",
                      all.modules, modules));
  return counts;
}

/// So many layers in the stages at the ends and equally many in the others, chunk by chunk.
Counts counts_of_stages(std::int64_t layers, const ParallelConfig& parallel,
                        const Placement& placement) {
  const LayerLayout& layout = parallel.layout;
  const KeyPaths keys{layout.first > 0 ? "parallel.layout.first" : "parallel.layout.last",
                      "parallel.layout.last", "parallel.pp", "parallel.vpp"};
  const int first = placement.place(0).rank, last = placement.place(placement.slices() - 1).rank;
  require(first != last, keys, "one stage has the first and the last slice");
  const int others = placement.ranks() - (layout.first > 0 ? 1 : 0) - (layout.last > 0 ? 1 : 0);
  const std::int64_t left = layers - layout.first - layout.last;
  const std::int64_t chunks = placement.slices() / placement.ranks();
  require(others > 0 ? left > 0 && left % (others * chunks) == 0 : left == 0, keys,
          fmt::format("of {} {} are left for {} stages of {} chunks", layers_text(layers), left,
                      others, chunks));
  require(layout.first % chunks == 0 && layout.last % chunks == 0, keys,
          "layers of a stage do not divide by its " + std::to_string(chunks) + " chunks");
  Counts counts;
  for (int slice = 0; slice < placement.slices(); ++slice) {
    const int stage = placement.place(slice).rank;
    const std::int64_t given = stage == first ? layout.first : stage == last ? layout.last : 0;
    counts.push_back(given > 0 ? given / chunks : left / (others * chunks));
  }
  return counts;
}

/// Equally many, with the ends that count as layers.
Counts even_counts(std::int64_t layers, const ParallelConfig& parallel, int slices) {
  const LayerLayout& layout = parallel.layout;
  const std::int64_t slots = layers + (layout.embedding ? 1 : 0) + (layout.head ? 1 : 0);
  const bool counts_ends = slots > layers;
  if (slots % slices != 0 && (counts_ends || slices > parallel.pp)) {
    const std::string ends =
        counts_ends ? fmt::format(" with the ends that count as layers are {}, which", slots) : "";
    config::Advice advice{{}, divisors_near(slots, slices).notes};
    if ((layers + 2) % slices == 0)
      advice.notes.emplace_back(
          "parallel.layout: {embedding: true, head: true} counts both ends as layers, which "
          "divides; any other: parallel.layout: \"Et*3|(tt|)*29|L\"");
    require(false, KeyPaths{"parallel.vpp", "parallel.pp", "parallel.layout"},
            fmt::format("{}{} do not divide by pp * vpp = {}", layers_text(layers), ends, slices),
            std::move(advice));
  }
  Counts counts = stage_layers(slots, slices);
  if (layout.embedding) --counts.front();
  if (layout.head) --counts.back();
  return counts;
}

}  // namespace

std::vector<LayerRange> slice_layers(std::int64_t layers, const ParallelConfig& parallel,
                                     const Placement& placement, int modules) {
  const LayerLayout& layout = parallel.layout;
  const Counts counts =
      !layout.slices.empty() ? written_counts(layers, parallel, placement.slices(), modules)
      : layout.first > 0 || layout.last > 0 ? counts_of_stages(layers, parallel, placement)
                                            : even_counts(layers, parallel, placement.slices());
  std::vector<LayerRange> ranges;
  std::int64_t first = 0;
  for (const std::int64_t count : counts) {
    ranges.push_back({.first = first, .count = count});
    first += count;
  }
  return ranges;
}

int module_slice(const ParallelConfig& parallel, const Placement& placement) {
  if (parallel.layout.slices.empty()) return placement.slices() - 1;
  const std::vector<SliceContents> slices = written_slices(parallel.layout.slices);
  const auto found =
      std::ranges::find_if(slices, [](const SliceContents& slice) { return slice.modules > 0; });
  return found == slices.end() ? placement.slices() - 1 : static_cast<int>(found - slices.begin());
}

std::vector<std::vector<LayerRange>> layer_ranges(std::int64_t layers,
                                                  const ParallelConfig& parallel,
                                                  const Placement& placement, int modules) {
  const std::vector<LayerRange> of_slice = slice_layers(layers, parallel, placement, modules);
  std::vector<std::vector<LayerRange>> ranges(static_cast<std::size_t>(parallel.pp));
  for (int stage = 0; stage < parallel.pp; ++stage)
    for (int chunk = 0; chunk < parallel.vpp; ++chunk) {
      const int slice = placement.slice({stage, chunk});
      ranges[static_cast<std::size_t>(stage)].push_back(
          of_slice.at(static_cast<std::size_t>(slice)));
    }
  return ranges;
}

std::vector<std::vector<LayerRange>> layer_ranges(std::int64_t layers,
                                                  const ParallelConfig& parallel) {
  return layer_ranges(layers, parallel, Placement::round_robin(parallel.pp, parallel.vpp));
}

std::vector<std::int64_t> layers_of_stage(std::int64_t layers, const ParallelConfig& parallel,
                                          const Placement& placement, int stage, int modules) {
  std::vector<std::int64_t> all;
  const auto ranges = layer_ranges(layers, parallel, placement, modules);
  for (const LayerRange& range : ranges.at(static_cast<std::size_t>(stage)))
    for (std::int64_t i = range.first; i < range.end(); ++i) all.push_back(i);
  return all;
}

LayerRange layers_of_stage(std::int64_t layers, const ParallelConfig& parallel, int stage) {
  return layer_ranges(layers, parallel).at(static_cast<std::size_t>(stage)).front();
}

}  // namespace orrery
