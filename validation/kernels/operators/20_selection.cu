// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "device/random.cuh"
#include "device/selection.cuh"
#include "host/measurement.h"
#include "host/recurrent_shapes.h"
#include "host/reference.h"

namespace orrery::measure::selection {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{2} << 30;  ///< scores of one shape
constexpr std::int64_t kChosen = std::int64_t{1} << 26;     ///< places of all copies

class SelectionBench {
 public:
  explicit SelectionBench(const Context& context)
      : context_(context),
        scores_(static_cast<std::size_t>(kMostBytes)),
        chosen_(static_cast<std::size_t>(kChosen) * sizeof(std::int32_t)) {
    fill(Format::kF32, scores_.as(), scores_.bytes() / sizeof(float), context.seed);
  }

  bool fits(const SelectionShape& shape) const { return results(shape) <= kChosen; }

  /// Whole rows: the first, the last and some between. Equal scores may be chosen either way, so
  /// that scores are compared, exactly, and places must differ.
  void check(const SelectionShape& shape) const {
    ORRERY_CUDA(cudaMemset(chosen_.as(), 0xFF,
                           static_cast<std::size_t>(results(shape)) * sizeof(std::int32_t)));
    launch(nullptr, shape, 0);
    ORRERY_CUDA(cudaDeviceSynchronize());
    for (const Place& place : sample_places(shape.rows, 1, 6, context_.seed)) {
      const std::vector<float> row = scores_of(shape, place.row);
      if (chosen_scores(shape, place.row, row) !=
          largest(row, static_cast<std::size_t>(shape.chosen)))
        throw WrongResult("index_selection: row " + std::to_string(place.row) + " of " +
                          std::to_string(shape.rows) + " x " + std::to_string(shape.scores) +
                          ": these are not the largest scores");
    }
  }

  void measure(Table& table, const SelectionShape& shape) const {
    const std::int64_t read = scores(shape) * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t bytes =
        read + results(shape) * static_cast<std::int64_t>(sizeof(std::int32_t));
    TimingOptions options;
    const std::int64_t most =
        std::min({kMostBytes / read, kChosen / results(shape), std::int64_t{4096}});
    options.copies = std::clamp(rotation(context_.device, static_cast<std::size_t>(bytes)), 1,
                                static_cast<int>(most));
    const Timing timing = time_graph(
        context_, [&](cudaStream_t stream, int i) { launch(stream, shape, i % options.copies); },
        options);
    std::vector<Cell> cells = with_timing({context_.system, std::int64_t{shape.rows},
                                           std::int64_t{shape.scores}, std::int64_t{shape.chosen}},
                                          timing);
    const std::vector<Cell> more = {std::string("orrery"),
                                    static_cast<double>(bytes) / (timing.us.median * 1e-6)};
    cells.insert(cells.end(), more.begin(), more.end());
    table.add_row(std::move(cells));
  }

 private:
  static std::int64_t scores(const SelectionShape& shape) {
    return std::int64_t{shape.rows} * shape.scores;
  }
  static std::int64_t results(const SelectionShape& shape) {
    return std::int64_t{shape.rows} * shape.chosen;
  }

  void launch(cudaStream_t stream, const SelectionShape& shape, int copy) const {
    const SelectionOperands operands{scores_.as<float>() + copy * scores(shape),
                                     chosen_.as<std::int32_t>() + copy * results(shape),
                                     shape.scores, shape.chosen};
    selection_kernel<kSelectionThreads>
        <<<static_cast<unsigned>(shape.rows), kSelectionThreads, 0, stream>>>(operands);
    ORRERY_CUDA(cudaGetLastError());
  }

  std::vector<float> scores_of(const SelectionShape& shape, std::int64_t row) const {
    const RandomBuffer from{Format::kF32, Data::kRandom, context_.seed};
    std::vector<float> result;
    result.reserve(static_cast<std::size_t>(shape.scores));
    for (std::int64_t i = 0; i < shape.scores; ++i)
      result.push_back(static_cast<float>(from.at(row * shape.scores + i)));
    return result;
  }

  /// In falling order; fewer where a place is outside of the row or chosen twice.
  std::vector<float> chosen_scores(const SelectionShape& shape, std::int64_t row,
                                   const std::vector<float>& scores_of_row) const {
    std::vector<std::int32_t> places(static_cast<std::size_t>(shape.chosen));
    ORRERY_CUDA(cudaMemcpy(places.data(), chosen_.as<std::int32_t>() + row * shape.chosen,
                           places.size() * sizeof(std::int32_t), cudaMemcpyDeviceToHost));
    std::vector<float> result;
    result.reserve(places.size());
    for (const std::int32_t place : std::set<std::int32_t>(places.begin(), places.end()))
      if (place >= 0 && place < shape.scores)
        result.push_back(scores_of_row[static_cast<std::size_t>(place)]);
    std::sort(result.begin(), result.end(), std::greater<>());
    return result;
  }

  const Context& context_;
  DeviceBuffer scores_, chosen_;
};

void run(const Context& context, Table& table) {
  const SelectionBench bench(context);
  Failures failures;
  for (const SelectionShape& shape : selection_shapes(context.depth, kMostBytes)) {
    if (context.out_of_time()) break;
    if (!bench.fits(shape)) continue;
    try {
      bench.check(shape);
      bench.measure(table, shape);
    } catch (const WrongResult& error) {
      failures.add(error);
    }
  }
  failures.raise();
}

std::vector<std::string> columns() {
  std::vector<std::string> result = with_timing_columns({"system", "rows", "scores", "chosen"});
  for (const char* column : {"implementation", "bytes_per_s"}) result.emplace_back(column);
  return result;
}

const Registration registration({
    .number = 20,
    .name = "index_selection",
    .what = "the 2048 largest of rows of fp32 scores, as in front of sparse attention (radix "
            "selection, a kernel of our own)",
    .quick_s = 2,
    .full_s = 6,
    .columns = columns(),
    .run = run,
});

}  // namespace
}  // namespace orrery::measure::selection
