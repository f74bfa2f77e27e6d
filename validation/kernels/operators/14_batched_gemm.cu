// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "device/gemm_data.cuh"
#include "host/gemm_shapes.h"
#include "host/measurement.h"
#include "host/names.h"
#include "host/priority_shapes.h"

namespace orrery::measure::batched_gemm {
namespace {

constexpr std::size_t kBytes = std::size_t{3} << 30;

void measure(const Context& context, Table& table, const LtLibrary& library, const GemmData& data,
             const BatchedShape& batched) {
  const GemmShape& shape = batched.gemm;
  if (!data.fits(shape, batched.batch)) return;
  const std::optional<LtGemm> gemm = LtGemm::plan(library, data.format(), shape, batched.batch);
  if (!gemm) return;
  data.check(*gemm, shape, 64, batched.batch);
  const int copies = data.copies(shape, batched.batch);
  TimingOptions options;
  options.copies = copies;
  const Timing timing = time_graph(
      context,
      [&](cudaStream_t stream, int i) {
        const int copy = i % copies;
        gemm->run(stream, data.in(shape, copy, batched.batch),
                  data.weight(shape, copy, batched.batch), data.out(shape, copy, batched.batch));
      },
      options);
  const LtAlgorithm chosen = gemm->algorithm();
  table.add_row(with_timing(
      {context.system, std::string(name_of(data.format())), std::int64_t{batched.batch}, shape.m,
       shape.n, shape.k, batched.batch * shape.flops() / (timing.us.median * 1e-6),
       std::int64_t{chosen.id}, tile_name(chosen.tile), stages_name(chosen.stages),
       std::int64_t{chosen.split_k}, cluster_name(chosen.cluster)},
      timing));
}

void run(const Context& context, Table& table) {
  const LtLibrary library;
  const GemmData data(context, Format::kBf16,
                      std::min(kBytes, static_cast<std::size_t>(context.device.memory_bytes) / 5));
  Failures failures;
  const bool priority = context.depth == Depth::kPriority;
  for (const BatchedShape& batched : priority ? priority_batched_shapes() : batched_shapes()) {
    if (context.out_of_time()) break;
    try {
      measure(context, table, library, data, batched);
    } catch (const WrongResult& error) {
      failures.add(error);
    }
  }
  failures.raise();
}

const Registration registration({
    .number = 14,
    .name = "batched_gemm",
    .what = "cuBLASLt strided batched bf16 GEMM: the products of attention by head, and squares",
    .quick_s = 4,
    .full_s = 12,
    .columns = with_timing_columns({"system", "precision", "batch", "m", "n", "k", "flops_per_s",
                                    "algorithm_id", "tile", "stages", "split_k", "cluster"}),
    .run = run,
});

}  // namespace
}  // namespace orrery::measure::batched_gemm
