// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "device/gemm_data.cuh"
#include "host/measurement.h"
#include "host/names.h"
#include "host/priority_shapes.h"

namespace orrery::measure::gemm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostFlops = 9e12;  // some 13 ms of an H200 in bf16
constexpr double kSteadySeconds = 2;
constexpr std::size_t kBytes = std::size_t{4} << 30;

class Sweep {
 public:
  Sweep(const Context& context, Table& table, Format format)
      : context_(context),
        table_(table),
        data_(context, format,
              std::min(kBytes, static_cast<std::size_t>(context.device.memory_bytes) / 5)) {}

  /// Plans, checks and times one shape; false when the library or the memory has no room for it.
  bool measure(const GemmShape& shape, double steady_s) {
    if (!data_.fits(shape)) return false;
    const std::optional<LtGemm> gemm = LtGemm::plan(library_, data_.format(), shape);
    if (!gemm) return false;
    // As many products whatever k is: 1 to 2 ms of the host.
    data_.check(*gemm, shape, static_cast<int>(std::clamp<std::int64_t>(65536 / shape.k, 8, 64)));
    const int copies = data_.copies(shape);
    TimingOptions options;
    options.copies = copies;
    options.steady_s = steady_s;
    if (shape.flops() > 1e12) options.repeats = 5;
    const Timing timing = time_graph(
        context_,
        [&](cudaStream_t stream, int i) {
          const int copy = i % copies;
          gemm->run(stream, data_.in(shape, copy), data_.weight(shape, copy),
                    data_.out(shape, copy));
        },
        options);
    add_row(shape, *gemm, timing, steady_s > 0);
    return true;
  }

 private:
  void add_row(const GemmShape& shape, const LtGemm& gemm, const Timing& timing, bool steady) {
    const LtAlgorithm chosen = gemm.algorithm();
    std::vector<Cell> cells = with_timing(
        {context_.system, std::string(name_of(data_.format())), shape.m, shape.n, shape.k}, timing);
    const std::vector<Cell> more = {std::string(steady ? "steady" : "boost"),
                                    shape.flops() / (timing.us.median * 1e-6),
                                    std::int64_t{chosen.id},
                                    tile_name(chosen.tile),
                                    stages_name(chosen.stages),
                                    std::int64_t{chosen.split_k},
                                    std::int64_t{chosen.reduction},
                                    cluster_name(chosen.cluster),
                                    chosen.waves,
                                    static_cast<std::int64_t>(chosen.workspace_bytes),
                                    "cublaslt_" + std::to_string(cublasLtGetVersion())};
    cells.insert(cells.end(), more.begin(), more.end());
    table_.add_row(std::move(cells));
  }

  const Context& context_;
  Table& table_;
  LtLibrary library_;
  GemmData data_;
};

std::vector<std::string> columns() {
  std::vector<std::string> result = with_timing_columns({"system", "precision", "m", "n", "k"});
  for (const char* column : {"state", "flops_per_s", "algorithm_id", "tile", "stages", "split_k",
                             "reduction_scheme", "cluster", "waves", "workspace_bytes", "source"}) {
    result.emplace_back(column);
  }
  return result;
}

/// One timing: a shape and the seconds that it runs before it is sampled.
struct Point {
  GemmShape shape;
  double steady_s;
};

std::vector<Point> priority_points() {
  std::vector<Point> points;
  for (const GemmShape& shape : priority_gemm_shapes(kMostFlops)) points.push_back({shape, 0});
  for (const GemmShape& shape : priority_steady_shapes()) {
    points.push_back({shape, kSteadySeconds});
  }
  return points;
}

/// The big shapes in their steady state first, then the sweep.
std::vector<Point> sweep_points(bool full, Format format) {
  std::vector<GemmShape> steady = steady_gemm_shapes();
  steady.resize(!full ? 1 : format == Format::kBf16 ? steady.size() : 3);
  std::vector<Point> points;
  for (const GemmShape& shape : steady) {
    points.push_back({shape, 0});
    points.push_back({shape, kSteadySeconds});
  }
  for (const GemmShape& shape : gemm_shapes(full ? kMostFlops : kMostFlops / 8)) {
    if (std::find(steady.begin(), steady.end(), shape) == steady.end()) {
      points.push_back({shape, 0});
    }
  }
  return points;
}

/// One precision until `deadline`.
void run_precision(const Context& context, Table& table, Format format,
                   Clock::time_point deadline) {
  Sweep sweep(context, table, format);
  Failures failures;
  int unsupported = 0;
  const std::vector<Point> points = context.depth == Depth::kPriority
                                        ? priority_points()
                                        : sweep_points(context.depth == Depth::kFull, format);
  for (const Point& point : points) {
    if (Clock::now() >= deadline) break;
    try {
      if (!sweep.measure(point.shape, point.steady_s)) ++unsupported;
    } catch (const WrongResult& error) {
      failures.add(error);
    }
  }
  if (unsupported > 0) {
    *context.log << "gemm " << name_of(format) << ": " << unsupported
                 << " shapes without algorithm or memory\n";
  }
  failures.raise();
}

/// Models run in bf16 and fp8: tf32 is no part of `--priority`.
std::vector<Format> formats_of(const Context& context) {
  std::vector<Format> formats = {Format::kBf16};
  const bool fp8 = context.device.major * 10 + context.device.minor >= 89;
  if (fp8) formats.push_back(Format::kE4m3);
  if (context.depth != Depth::kPriority) formats.push_back(Format::kTf32);
  return formats;
}

/// Each precision but the last may take half of the time that is left, bf16 first.
void run(const Context& context, Table& table) {
  const std::vector<Format> formats = formats_of(context);
  Failures failures;
  for (std::size_t i = 0; i < formats.size(); ++i) {
    const auto left = context.deadline - Clock::now();
    const bool last = i + 1 == formats.size();
    const Clock::time_point deadline = last ? context.deadline : Clock::now() + left / 2;
    try {
      run_precision(context, table, formats[i], deadline);
    } catch (const WrongResult& error) {
      failures.add(error);
    }
  }
  failures.raise();
}

const Registration registration({
    .number = 13,
    .name = "gemm",
    .what = "cuBLASLt GEMM in bf16, fp8 and tf32, from decode to 16384 rows, with the algorithm "
            "that was chosen",
    .quick_s = 38,
    .full_s = 118,
    .columns = columns(),
    .run = run,
});

}  // namespace
}  // namespace orrery::measure::gemm
