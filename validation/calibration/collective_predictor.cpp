// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/collective_predictor.h"

#include <fmt/core.h>

#include <numeric>
#include <stdexcept>

#include "sim/config/diagnostics.h"
#include "sim/config/load.h"
#include "validation/calibration/operator_kernels.h"

namespace orrery {
namespace {

TransferKind kind_of(const std::string& collective) {
  if (collective == "all_reduce") return TransferKind::kAllReduce;
  if (collective == "all_gather") return TransferKind::kAllGather;
  if (collective == "reduce_scatter") return TransferKind::kReduceScatter;
  if (collective == "alltoall") return TransferKind::kAllToAll;
  throw config::ConfigError("there is no collective '" + collective + "'");
}

Bytes limit_of(const SystemConfig& system) {
  return system.scale_up.protocols ? system.scale_up.protocols->one_shot_limit.value : Bytes(0);
}

}  // namespace

CollectivePredictor::CollectivePredictor(const SystemConfig& system)
    : one_shot_limit_(limit_of(system)),
      ranks_(system.ranks()),
      library_(system, 1),
      one_shot_(system, 1, "one_shot") {}

Transfer CollectivePredictor::transfer(const CollectiveRow& row) const {
  if (row.ranks < 2 || row.ranks > ranks_)
    throw std::out_of_range("a row has more ranks than its system, or less than 2");
  Transfer transfer;
  transfer.name = row.collective;
  transfer.kind = kind_of(row.collective);
  transfer.bytes = Bytes(static_cast<double>(row.bytes));
  transfer.byte_sums = row.precision == "int8";
  transfer.groups.emplace_back(static_cast<std::size_t>(row.ranks));
  std::iota(transfer.groups[0].begin(), transfer.groups[0].end(), 0);
  return transfer;
}

bool CollectivePredictor::one_shot(CollectiveTableKind kind, const CollectiveRow& row) const {
  return kind == CollectiveTableKind::kAllReduceCustom &&
         static_cast<double>(row.bytes) <= one_shot_limit_.base();
}

std::vector<PricedTransfer> CollectivePredictor::priced(CollectiveTableKind kind,
                                                        const CollectiveRow& row) const {
  const Transfer sent = transfer(row);
  std::vector<PricedTransfer> ways = {library_.price(sent)};
  if (one_shot(kind, row)) ways.push_back(one_shot_.price(sent));
  return ways;
}

std::vector<Carried> CollectivePredictor::carried(CollectiveTableKind kind,
                                                  const CollectiveRow& row) const {
  const Transfer sent = transfer(row);
  std::vector<Carried> ways;
  if (const auto way = library_.carried(sent)) ways.push_back(*way);
  if (!one_shot(kind, row)) return ways;
  if (const auto way = one_shot_.carried(sent)) ways.push_back(*way);
  return ways;
}

std::string measured_system(const std::string& accelerator) {
  const config::Library& library = config::default_library();
  std::string sibling;
  for (const std::string& name : library.names("systems")) {
    const std::string file = library.locate("systems", name, "");
    const auto system = config::load<SystemConfig>(file, library, "systems");
    if (system.accelerator.id != accelerator || !system.scale_up.protocols) continue;
    if (system.scale_up.calibration == name) return name;
    if (sibling.empty() && !system.scale_up.calibration.empty()) sibling = name;
  }
  return sibling;
}

bool is_held_out(const CollectiveRow& row) {
  return is_held_out(fmt::format("{} {} {}", row.collective, row.ranks, row.bytes));
}

const char* byte_class(std::int64_t bytes) {
  constexpr std::int64_t kMiB = 1 << 20;
  if (bytes < kMiB) return "<1MiB";
  return bytes <= 8 * kMiB ? "1-8MiB" : ">8MiB";
}

}  // namespace orrery
