// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/tile_store.h"

#include <fmt/core.h>
#include <cstring>

#include "sim/results/identity.h"

namespace orrery {
namespace {

std::string shape_of(const Kernel& kernel) {
  return fmt::format("{} x {} x {} x {}", kernel.batch, kernel.m, kernel.n, kernel.k);
}

/// The content has all that the configuration of the accelerator and the calibration have to do
/// with the result; names are there to tell devices and kernels apart for people.
std::string key_of(const TileQuestion& question) {
  const Kernel& kernel = question.kernel;
  std::string text =
      fmt::format("{}/{}/{}/{}/{}/", kEngineVersion, question.accelerator.id,
                  to_string(kernel.kind), to_string(kernel.precision), shape_of(kernel));
  for (const double share : {question.contention.units, question.contention.memory})
    text.append(reinterpret_cast<const char*>(&share), sizeof share);
  return sha256_hex(text + question.content);
}

}  // namespace

TileStore::TileStore(const std::vector<TileRow>& known) {
  for (const TileRow& row : known)
    results_[row.key] = {row.duration_us, static_cast<std::uint64_t>(row.events)};
}

std::optional<TileResult> TileStore::find(const TileQuestion& question) {
  const auto known = results_.find(key_of(question));
  if (known == results_.end()) return std::nullopt;
  return known->second;
}

void TileStore::keep(const TileQuestion& question, const TileResult& result) {
  const std::string key = key_of(question);
  if (!results_.emplace(key, result).second) return;
  const Kernel& kernel = question.kernel;
  played_.push_back({key, question.accelerator.id, to_string(kernel.kind),
                     to_string(kernel.precision), shape_of(kernel), question.contention.units,
                     question.contention.memory, result.duration_us,
                     static_cast<std::int64_t>(result.events)});
}

}  // namespace orrery
