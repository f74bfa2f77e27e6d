// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/memory/kept_messages.h"

#include <algorithm>

#include "workloads/ops/kernels.h"
#include "workloads/software/training_software.h"

namespace orrery {

KeptMessages kept_messages(const Pieces& pieces, const RankWork& work, ChunkPlace place) {
  if (!work.software->keeps_messages.value) return {};
  const int slice = pieces.placement().slice(place);
  const auto behind = [&](int of) {
    return Bytes(pieces.values_behind(of, work, false) * activation_bytes(work.formats.precision));
  };
  KeptMessages kept;
  if (slice > 0) kept.received = behind(slice - 1);
  if (slice + 1 < pieces.placement().slices()) kept.sent = behind(slice);
  return kept;
}

std::int64_t micro_batches(const TrainingConfig& config) {
  return std::max<std::int64_t>(1, config.global_batch / (config.micro_batch * config.parallel.dp));
}

}  // namespace orrery
