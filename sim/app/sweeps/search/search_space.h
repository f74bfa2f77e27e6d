// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/app/sweeps/search/algorithm.h"

namespace orrery {

/// The places of a plan as genomes. The first gene is the part of the plan, a row or an explicit
/// point of one; each axis is one of the others, whether or not the points of a part have it. Of
/// the blocks of a part the one counts in which the conditions of `when` come out as they do.
/// Serves one thread.
class SearchSpace {
 public:
  /// @param sweep outlives it
  explicit SearchSpace(const Sweep& sweep);

  const std::vector<Gene>& genes() const { return genes_; }
  /// The place with these values; none where there is no point: a rule excludes it, or its values
  /// cannot stand together.
  std::optional<std::uint64_t> place_of(const Genome& genome);
  /// Values of a place. Genes of axes that its block does not have are 0.
  Genome genome_of(std::uint64_t place) const;
  /// The first place with a point from this one on that `wanted` takes, then from the beginning;
  /// none where there is none.
  template <class Wanted>
  std::optional<std::uint64_t> next_point(std::uint64_t from, const Wanted& wanted) {
    for (const auto& [first, last] :
         {std::pair{from, sweep_.places()}, std::pair{std::uint64_t{0}, from}}) {
      PlanCursor cursor(sweep_);
      for (cursor.seek(first); !cursor.at_end() && cursor.place() < last; cursor.next())
        if (wanted(cursor.place()) && is_point(cursor)) return cursor.place();
    }
    return std::nullopt;
  }

 private:
  /// Blocks that differ in the conditions that hold for them.
  struct Part {
    std::vector<std::size_t> blocks;
  };

  static bool is_point(const PlanCursor& cursor) {
    return cursor.kind() == PlaceKind::kPoint && cursor.can_be();
  }
  /// What is at a place: asked once, as rules may take milliseconds.
  enum class At { kPoint, kOtherBlock, kNothing };
  At look_at(std::size_t block, std::uint64_t place);
  void add_block(std::size_t index);
  PlanCursor& cursor_of(std::size_t block);

  const Sweep& sweep_;
  std::vector<Part> parts_;
  std::vector<std::vector<std::size_t>> genes_of_;  ///< genes of the axes of each block
  std::map<const Axis*, std::size_t> gene_of_;
  std::vector<Gene> genes_;
  std::map<std::size_t, std::unique_ptr<PlanCursor>> cursors_;  ///< cursors by block
  std::map<std::uint64_t, At> looked_at_;                       ///< answers by place
};

}  // namespace orrery
