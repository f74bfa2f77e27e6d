// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/graph/program.h"
#include "sim/replay/replay.h"

namespace orrery {

/// A program whose roles all repeat calls of one length, round after round, as 1F1B does: some
/// hundred rounds, of which a few are enough to know the others. That a round more always adds the
/// same, to the picosecond, is not taken for granted: three numbers of rounds have to say so.
class SteadyRounds {
 public:
  /// Nothing where some role does not repeat, or too seldom to be worth it.
  static std::optional<SteadyRounds> find(const Program& program);

  /// Rounds that the role with the fewest has.
  std::size_t rounds() const { return rounds_; }
  /// Rounds that are enough to be steady, it is thought: a pipeline fills in as many as it has
  /// stages. Three programs are asked for: of few(), few() + 1 and 2 few() rounds.
  std::size_t few() const { return few_; }
  /// The program with so many rounds, in the role that has the fewest, and as many fewer in others.
  Program with(std::size_t rounds) const;
  /// The result of all rounds, from those of few(), few() + 1 and 2 few(); nothing where a round
  /// does not always add the same. Events and operators are those of all rounds.
  std::optional<ReplayResult> extrapolate(const ReplayResult& few, const ReplayResult& one_more,
                                          const ReplayResult& twice) const;

 private:
  explicit SteadyRounds(const Program& program) : program_(&program) {}
  bool find_length();

  const Program* program_;
  std::size_t length_ = 0;           ///< calls of a round
  std::vector<std::size_t> begins_;  ///< first call of the rounds of each role
  std::size_t rounds_ = 0, few_ = 0;
};

}  // namespace orrery
