// SPDX-License-Identifier: Apache-2.0
// What each image of a transfer loads: the price of the whole, image by image.
#include "models/transfers/flow_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/collectives/plans/user_algorithm.h"
#include "models/topologies/dimensions.h"

namespace orrery {
namespace {

/// Larger groups are counted by the fabric, in a place for all bundles.
constexpr std::size_t kFewRanks = 64;

/// What bytes of payload take of links, inside systems, between them and in each dimension, as a
/// price has it.
class LoadFactors {
 public:
  LoadFactors(const LinkLoads& priced, const std::vector<Bundle>& bundles,
              const DimensionGrid* dimensions)
      : priced_(priced), bundles_(bundles), dimensions_(dimensions) {}

  double of(BundleId bundle) {
    std::optional<double>& factor = factors_[side(bundle)];
    for (auto load = priced_.begin(); !factor && load != priced_.end(); ++load) {
      const LinkLoad first = *load;
      if (side(first.link) == side(bundle) && first.payload > 0)
        factor = first.bytes / first.payload;
    }
    return factor.value_or(1);
  }

 private:
  int side(BundleId bundle) const {
    constexpr int kBetween = -2;
    if (bundles_[bundle].kind == LinkKind::kScaleOut) return kBetween;
    return dimensions_ == nullptr ? -1 : dimensions_->dimension_of(bundle);
  }

  const LinkLoads& priced_;
  const std::vector<Bundle>& bundles_;
  const DimensionGrid* dimensions_;
  std::map<int, std::optional<double>> factors_;
};

/// The transfer with the groups of its first image alone.
Transfer first_image(const Transfer& transfer) {
  Transfer first;
  first.kind = transfer.kind;
  first.bytes = transfer.bytes;
  first.routing = transfer.routing;
  first.pair_bytes = transfer.pair_bytes;
  first.host = transfer.host;
  // Of other transfers each group is an image.
  const bool messages = transfer.kind == TransferKind::kSendReceive && !transfer.host;
  if (!messages) {
    first.groups.push_back(transfer.groups.front());
    return first;
  }
  const TransferImages images(transfer);
  const std::uint32_t image = images.of(transfer.groups.front().front());
  for (const std::vector<int>& group : transfer.groups)
    if (images.of(group.front()) == image) first.groups.push_back(group);
  return first;
}

}  // namespace

/// Adds up the bytes of some groups by the bundles that they cross, without a place for all bundles
/// of the machine.
class GroupSink final : public FlowSink {
 public:
  GroupSink(const Fabric& fabric, std::size_t bundles) : fabric_(fabric), bundles_(bundles) {}

  void add(int source, int destination, Bytes bytes) override {
    route_.clear();
    fabric_.append_route(source, destination, route_);
    add_route(route_, bytes);
  }
  void exchange(std::span<const int> group, Bytes bytes) override {
    if (group.size() <= kFewRanks) {
      FlowSink::exchange(group, bytes);
      return;
    }
    std::vector<double> all(bundles_);
    fabric_.add_exchange(group, bytes.base(), all);
    for (BundleId bundle = 0; bundle < all.size(); ++bundle)
      if (all[bundle] > 0) loads_.emplace_back(bundle, all[bundle]);
  }

  void reduce(std::span<const int> group, Bytes bytes) override {
    route_.clear();
    fabric_.append_reduction(group, route_);
    add_route(route_, bytes);
  }
  void multicast(std::span<const int> group, Bytes bytes) override {
    route_.clear();
    fabric_.append_multicast(group, route_);
    add_route(route_, bytes);
  }
  void add_route(const Route& route, Bytes bytes) {
    for (const Hop& hop : route) loads_.emplace_back(hop.bundle, bytes.base() * hop.share);
  }

  /// Bytes by bundle, ascending; nothing is left of them.
  std::vector<std::pair<BundleId, double>> take() {
    std::stable_sort(loads_.begin(), loads_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::pair<BundleId, double>> sums;
    for (const auto& [bundle, bytes] : loads_) {
      if (sums.empty() || sums.back().first != bundle) sums.emplace_back(bundle, 0);
      sums.back().second += bytes;
    }
    loads_.clear();
    return sums;
  }

 private:
  const Fabric& fabric_;
  std::size_t bundles_;
  Route route_;
  std::vector<std::pair<BundleId, double>> loads_;  ///< loads as they came
};

Transfer as_all_reduce(Transfer transfer) {
  transfer.kind = TransferKind::kAllReduce;
  return transfer;
}

void FlowModel::send_group(const Transfer& transfer, std::span<const int> group,
                           const CollectiveAlgorithm* algorithm, GroupSink& sink) const {
  if (transfer.host) {
    Route route;
    fabric_->append_host_route(group.front(), transfer.host->end, transfer.host->outward, route);
    sink.add_route(route, transfer.bytes);
  } else if (group.size() > 1) {
    algorithm->run(collective(transfer, group), sink);
  }
}

PricedTransfer FlowModel::host_price(const Transfer& transfer) const {
  PricedTransfer priced = host_copy(transfer, {*fabric_, capacities_, copy_start_});
  priced.cost.image = image_size(transfer, priced);
  return priced;
}

std::vector<LinkLoads> FlowModel::image_loads(const Transfer& transfer,
                                              const TransferImages& images,
                                              const PricedTransfer& priced) const {
  const auto algorithm = transfer.host ? nullptr : find_algorithm(priced.algorithm);
  const std::optional<Transfer> all =
      priced.as_all_reduce ? std::optional(as_all_reduce(transfer)) : std::nullopt;
  std::vector<std::vector<std::size_t>> groups(images.size());
  for (std::size_t i = 0; i < transfer.groups.size(); ++i)
    groups[images.of(transfer.groups[i].front())].push_back(i);
  LoadFactors factors(priced.cost.loads, topology_.bundles(), fabric_->dimensions());
  GroupSink sink(*fabric_, capacities_.size());
  std::vector<LinkLoads> loads;
  loads.reserve(images.size());
  for (const std::vector<std::size_t>& of_image : groups) {
    for (const std::size_t i : of_image)
      send_group(all ? *all : transfer, transfer.groups[i], algorithm.get(), sink);
    LinkLoads& image = loads.emplace_back();
    for (const auto& [bundle, payload] : sink.take())
      image.push_back({bundle, payload * factors.of(bundle), payload});
  }
  return loads;
}

/// Images are taken to be alike: the first one speaks for all.
double FlowModel::image_size(const Transfer& transfer, const PricedTransfer& priced) const {
  if (transfer.groups.size() < 2 || priced.cost.loads.empty()) return 0;
  const Transfer first = first_image(transfer);
  if (first.groups.size() == transfer.groups.size()) return 0;
  const std::vector<LinkLoads> loads = image_loads(first, TransferImages(first), priced);
  double most = 0;
  for (const LinkLoad& load : loads.front()) most = std::max(most, load.bytes);
  return most;
}

PricedTransfer host_copy(const Transfer& transfer, const HostPath& path) {
  PricedTransfer priced;
  priced.algorithm = "copy";
  priced.protocol = "none";
  std::map<BundleId, double> loads;
  Route route;
  for (const std::vector<int>& group : transfer.groups) {
    route.clear();
    path.fabric.append_host_route(group.front(), transfer.host->end, transfer.host->outward, route);
    for (const Hop& hop : route) loads[hop.bundle] += transfer.bytes.base() * hop.share;
  }
  for (const auto& [bundle, bytes] : loads) {
    priced.cost.loads.push_back({bundle, bytes, bytes});
    const Seconds time = Bytes(bytes) / path.capacities[bundle];
    if (time <= priced.limit) continue;
    priced.limit = time;
    priced.bottleneck = bundle;
  }
  priced.cost.latency = to_picoseconds(path.start);
  priced.isolated_time = path.start + priced.limit;
  return priced;
}

}  // namespace orrery
