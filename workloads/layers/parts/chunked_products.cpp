// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/chunked_products.h"

#include <algorithm>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/ops/kernels.h"
#include "workloads/software/training_software.h"

namespace orrery {
namespace {

/// A part of a collective of the tensor parallel group, of `parts`.
LayerCollective part_of(LayerCollective collective, int parts) {
  collective.name += " part";
  collective.bytes = collective.bytes / parts;
  return collective;
}

/// Chunks of a product whose sums are scattered beside the next one: Transformer Engine's
/// num_splits.
constexpr int kScatterChunks = 4;

}  // namespace

bool in_chunks(const RankWork& work) {
  return work.trains() && work.split.sp && work.split.tp > 1 && work.software->has_user_buffers();
}

void fill_buffer(StepList& steps, const RankWork& work, const Linear& linear,
                 const std::string& name, std::int64_t width) {
  if (work.software->buffer_copies.value == Fusion::kFused) return;
  const double bytes = gathered_bytes(work, linear);
  steps.then(elementwise(name + " buffer copy", work.split_tokens(), width, {bytes, bytes, 0}));
  if (work.software->scaling(linear.precision) != NarrowScaling::kBlocks) return;
  constexpr double kBlock = 32;
  LayerCollective scales =
      tensor_collective(name + " scales all-gather", TransferKind::kAllGather, work, width);
  scales.bytes = Bytes(real(work.tokens()) * real(width) / kBlock);
  steps.then(std::move(scales));
}

void product_of_parts(StepList& steps, const RankWork& work, const LayerCollective& gather,
                      const std::vector<Kernel>& whole) {
  const std::size_t start = steps.cursor();
  std::vector<std::size_t> arrived = {start};
  for (int step = 1; step < work.split.tp; ++step)
    arrived.push_back(steps.aside(part_of(gather, work.split.tp - 1), {start}));
  for (const std::size_t part : arrived) {
    for (const Kernel& kernel : whole) {
      const GemmShape shape{work.split_tokens(), kernel.n, kernel.k, kernel.batch};
      Kernel chunk = gemm(kernel.name + " chunk", kernel.precision, shape, kernel.weights);
      chunk.rate = kernel.rate;
      steps.join(chunk, {part});
    }
  }
}

void scatter_parts(StepList& steps, const RankWork& work, const LayerCollective& scatter,
                   const Kernel& whole) {
  const std::int64_t chunk_rows = std::max<std::int64_t>(1, work.tokens() / kScatterChunks);
  std::size_t last = StepList::kStart;
  for (std::int64_t row = 0; row < work.tokens(); row += chunk_rows) {
    const std::int64_t rows = std::min(chunk_rows, work.tokens() - row);
    const std::size_t product =
        steps.then(gemm(whole.name + " chunk", whole.precision,
                        {rows, whole.n, whole.k, whole.batch}, whole.weights));
    last = steps.aside(part_of(scatter, kScatterChunks), {product});
  }
  // What follows waits for the last part.
  steps.move_to(last);
}

}  // namespace orrery
