// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/images.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace orrery {
namespace {

constexpr std::uint32_t kNoImage = std::numeric_limits<std::uint32_t>::max();

/// The lowest group that is linked to this one by shared ranks, of those seen so far.
std::uint32_t root_of(std::vector<std::uint32_t>& joined, std::uint32_t group) {
  while (joined[group] != group) group = joined[group] = joined[joined[group]];
  return group;
}

}  // namespace

TransferImages::TransferImages(const Transfer& transfer)
    : lowest_(std::numeric_limits<int>::max()) {
  if (transfer.groups.empty()) throw std::logic_error("a transfer without groups");
  int highest = 0;
  for (const std::vector<int>& group : transfer.groups) {
    const auto [low, high] = std::minmax_element(group.begin(), group.end());
    lowest_ = std::min(lowest_, *low);
    highest = std::max(highest, *high);
  }
  images_.assign(static_cast<std::size_t>(highest - lowest_) + 1, kNoImage);
  std::vector<std::uint32_t> joined(transfer.groups.size());
  std::iota(joined.begin(), joined.end(), 0);
  for (std::uint32_t group = 0; group < joined.size(); ++group) {
    for (const int rank : transfer.groups[group]) {
      std::uint32_t& known = images_[static_cast<std::size_t>(rank - lowest_)];
      if (known == kNoImage) {
        known = group;
        continue;
      }
      const std::uint32_t a = root_of(joined, known), b = root_of(joined, group);
      joined[std::max(a, b)] = std::min(a, b);
    }
  }
  std::vector<std::uint32_t> numbers(joined.size(), kNoImage);  // images by their lowest group
  for (std::uint32_t& image : images_) {
    if (image == kNoImage) continue;
    std::uint32_t& number = numbers[root_of(joined, image)];
    if (number == kNoImage) {
      number = static_cast<std::uint32_t>(participants_.size());
      participants_.push_back(0);
    }
    image = number;
    ++participants_[image];
  }
}

Images::Images(const Program& program) {
  for (TransferId id = 0; id < program.transfers.size(); ++id) {
    images_.emplace_back(program.transfers[id]);
    first_.push_back(static_cast<std::uint32_t>(transfers_.size()));
    transfers_.insert(transfers_.end(), images_.back().size(), id);
  }
}

}  // namespace orrery
