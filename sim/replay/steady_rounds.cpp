// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/steady_rounds.h"

#include <algorithm>
#include <array>

#include "sim/graph/verify.h"

namespace orrery {
namespace {

constexpr std::size_t kLongest = 64;  // calls of a round that are looked for
constexpr std::size_t kWorth = 8;     // times few() below which all rounds are replayed

/// Where calls repeat.
struct Stretch {
  std::size_t begin = 0, rounds = 0;
};

/// The longest stretch of rounds of so many calls.
Stretch longest(const std::vector<BlockId>& calls, std::size_t length) {
  Stretch best;
  std::size_t begin = 0;
  for (std::size_t i = 0; i + length <= calls.size(); ++i) {
    if (i + length < calls.size() && calls[i] == calls[i + length]) continue;
    const std::size_t rounds = (i + length - begin) / length;
    if (rounds > best.rounds) best = {begin, rounds};
    begin = i + 1;
  }
  return best;
}

/// What one round more adds, of numbers that are whole.
class Growth {
 public:
  /// @param rounds between the second and the third
  Growth(std::size_t rounds, std::size_t left) : rounds_(rounds), left_(left) {}

  template <class Whole>
  Whole of(Whole few, Whole one_more, Whole twice) {
    const Whole added = one_more - few;
    same_ = same_ && twice - one_more == static_cast<Whole>(rounds_) * added;
    return twice + static_cast<Whole>(left_) * added;
  }
  /// What bytes and seconds come to, whose sums are rounded.
  double of_sums(double few, double one_more, double twice) const {
    return twice + static_cast<double>(left_) * (one_more - few);
  }
  bool same() const { return same_; }

 private:
  std::size_t rounds_, left_;
  bool same_ = true;
};

constexpr std::array kParts = {
    &TimeBreakdown::compute, &TimeBreakdown::contention, &TimeBreakdown::exposed_communication,
    &TimeBreakdown::bubble,  &TimeBreakdown::optimizer,  &TimeBreakdown::host,
    &TimeBreakdown::idle};

RoleResult grown(const RoleResult& few, const RoleResult& one_more, const RoleResult& twice,
                 Growth& growth) {
  RoleResult all = twice;
  all.end = growth.of(few.end, one_more.end, twice.end);
  for (const auto part : kParts)
    all.breakdown.*part =
        growth.of(few.breakdown.*part, one_more.breakdown.*part, twice.breakdown.*part);
  for (std::size_t i = 0; i < all.block_time.size(); ++i)
    all.block_time[i] = growth.of(few.block_time[i], one_more.block_time[i], twice.block_time[i]);
  return all;
}

}  // namespace

bool SteadyRounds::find_length() {
  for (length_ = 1; length_ <= kLongest; ++length_) {
    begins_.clear();
    rounds_ = program_->roles.empty() ? 0 : std::size_t(-1);
    for (const Role& role : program_->roles) {
      const Stretch stretch = longest(role.calls, length_);
      begins_.push_back(stretch.begin);
      rounds_ = std::min(rounds_, stretch.rounds);
    }
    if (rounds_ >= kWorth * few_) return true;
  }
  return false;
}

std::optional<SteadyRounds> SteadyRounds::find(const Program& program) {
  SteadyRounds steady(program);
  steady.few_ = 2 * program.roles.size() + 4;
  if (!steady.find_length() || !verify(steady.with(steady.few_)).empty()) return std::nullopt;
  return steady;
}

Program SteadyRounds::with(std::size_t rounds) const {
  Program program = *program_;
  const auto cut = static_cast<std::ptrdiff_t>((rounds_ - rounds) * length_);
  for (std::size_t i = 0; i < begins_.size(); ++i) {
    std::vector<BlockId>& calls = program.roles[i].calls;
    const auto begin = calls.begin() + static_cast<std::ptrdiff_t>(begins_[i]);
    calls.erase(begin, begin + cut);
  }
  return program;
}

std::optional<ReplayResult> SteadyRounds::extrapolate(const ReplayResult& few,
                                                      const ReplayResult& one_more,
                                                      const ReplayResult& twice) const {
  if (few.last_role != twice.last_role || one_more.last_role != twice.last_role)
    return std::nullopt;
  Growth growth(few_ - 1, rounds_ - 2 * few_);
  ReplayResult all = twice;
  all.end = growth.of(few.end, one_more.end, twice.end);
  all.events = growth.of(few.events, one_more.events, twice.events);
  all.operators = growth.of(few.operators, one_more.operators, twice.operators);
  for (std::size_t i = 0; i < all.roles.size(); ++i)
    all.roles[i] = grown(few.roles[i], one_more.roles[i], twice.roles[i], growth);
  for (const auto links :
       {&ReplayResult::link_bytes, &ReplayResult::link_payload, &ReplayResult::link_busy_s})
    for (std::size_t i = 0; i < (all.*links).size(); ++i)
      (all.*links)[i] = growth.of_sums((few.*links)[i], (one_more.*links)[i], (twice.*links)[i]);
  return growth.same() ? std::optional(std::move(all)) : std::nullopt;
}

}  // namespace orrery
