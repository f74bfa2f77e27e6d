// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/graph/program.h"

namespace orrery {

/// What the ranks of a transfer meet for where each is replayed on its own. An image is a group of
/// the transfer; groups that share ranks, such as the messages of a ring, are one image, for their
/// ranks post once for all.
class TransferImages {
 public:
  /// @throws std::logic_error for a transfer without groups
  explicit TransferImages(const Transfer& transfer);

  std::size_t size() const { return participants_.size(); }
  /// How many ranks meet there.
  std::uint32_t participants(std::size_t image) const { return participants_[image]; }
  /// The image that a rank of the transfer takes part in.
  std::uint32_t of(int rank) const { return images_[static_cast<std::size_t>(rank - lowest_)]; }

 private:
  int lowest_ = 0;                           ///< lowest rank of all groups
  std::vector<std::uint32_t> images_;        ///< images by rank, from the lowest on
  std::vector<std::uint32_t> participants_;  ///< ranks by image
};

/// The images of all transfers of a program, numbered transfer by transfer.
class Images {
 public:
  explicit Images(const Program& program);

  std::size_t size() const { return transfers_.size(); }
  const TransferImages& at(TransferId transfer) const { return images_[transfer]; }
  std::uint32_t first(TransferId transfer) const { return first_[transfer]; }
  TransferId transfer(std::uint32_t image) const { return transfers_[image]; }
  std::uint32_t participants(std::uint32_t image) const {
    return images_[transfers_[image]].participants(image - first_[transfers_[image]]);
  }
  /// The image of the transfer that a rank takes part in.
  std::uint32_t of(TransferId transfer, int rank) const {
    return first_[transfer] + images_[transfer].of(rank);
  }

 private:
  std::vector<TransferImages> images_;  ///< images by transfer
  std::vector<std::uint32_t> first_;    ///< numbers of first images by transfer
  std::vector<TransferId> transfers_;   ///< transfers by image
};

}  // namespace orrery
