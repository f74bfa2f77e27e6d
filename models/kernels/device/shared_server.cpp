// SPDX-License-Identifier: Apache-2.0

#include <cmath>

#include "models/kernels/device/block_player.h"

namespace orrery {
namespace {

template <Claim Loops::*claim>
double greatest_wish(const AtWork& at_work) {
  double most = 0;
  for (const Loops* loops : at_work)
    if ((loops->*claim).bytes > 0) most = std::max(most, (loops->*claim).wish);
  return most;
}

/// @param together how long work of one time takes beside that of another
template <class Together>
double set_rates_with(const AtWork& at_work, double each, Together together) {
  double first = kForever, before = 0, rate = kForever;
  for (Loops* loops : at_work) {
    const double time = together(loops->own, loops->memory_wait + loops->memory.bytes * each);
    // Kinds that the memory holds up often go at one rate: a comparison instead of a division.
    if (time != before) rate = 1 / time;
    before = time;
    loops->rate = rate;
    const double end = loops->left() * time;
    first = end < first ? end : first;
  }
  return first;
}

}  // namespace

template <Claim Loops::*claim>
double SharedServer::level(const AtWork& at_work) {
  if (capacity_ <= 0) return kForever;
  const Demand all = demand<claim>(at_work);
  if (all.blocks == 0) return kForever;
  if (all.all > capacity_) return last_ = saturated<claim>(at_work, all);
  return exponent_ == 0 ? kForever : capacity_ * (greatest_wish<claim>(at_work) / all.all);
}

template <Claim Loops::*claim>
SharedServer::Demand SharedServer::demand(const AtWork& at_work) {
  content_.resize(std::max(content_.size(), at_work.size()));
  double sum = 0, count = 0, least = kForever;
  Wish* content = content_.data();
  for (const Loops* loops : at_work) {
    if (!((loops->*claim).bytes > 0)) continue;
    const double each = (loops->*claim).wish, blocks = loops->blocks, all = each * blocks;
    sum += all;
    count += blocks;
    // Written always, kept if so: no branch that half of the kinds take.
    *content = {each, blocks, all};
    const bool less = each < last_;
    content += less ? 1 : 0;
    const double hungry = less ? kForever : each;
    least = hungry < least ? hungry : least;
  }
  return {sum, count, least, static_cast<std::size_t>(content - content_.data())};
}

/// Newton's method on a concave function: from wherever it starts, its second point is below the
/// level and those after it rise to it. The last level is a good start: where the same blocks want
/// less than the second point, that is the level.
template <Claim Loops::*claim>
double SharedServer::saturated(const AtWork& at_work, const Demand& demand) const {
  double rest = capacity_, others = demand.blocks, hungriest = 0;
  for (std::size_t i = 0; i < demand.content; ++i) {
    rest -= content_[i].all;
    others -= content_[i].blocks;
    hungriest = std::max(hungriest, content_[i].each);
  }
  const double second = rest / others;
  if (others > 0 && hungriest < second && second <= demand.least_hungry) return second;
  const double most = greatest_wish<claim>(at_work);
  double level = std::min(last_, most);
  for (double before = 0; std::abs(level - before) > kSameTime * level;) {
    before = level;
    rest = capacity_;
    others = 0;
    for (const Loops* loops : at_work) {
      const Claim& wanted = loops->*claim;
      if (!(wanted.bytes > 0)) continue;
      const bool content = wanted.wish < level;
      rest -= content ? wanted.wish * loops->blocks : 0;
      others += content ? 0 : loops->blocks;
    }
    if (others == 0) return most;  // just enough, but for rounding
    level = rest / others;
  }
  return level;
}

template double SharedServer::level<&Loops::memory>(const AtWork&);
template double SharedServer::level<&Loops::cache>(const AtWork&);

void go_on(const AtWork& at_work, double step, AtWork& at_end) {
  at_end.resize(at_work.size());
  Loops** next = at_end.data();
  for (Loops* loops : at_work) {
    const double done = loops->rate * step, left = loops->left();
    loops->progress += left < done ? left : done;
    *next = loops;
    next += loops->left() <= kSameTime ? 1 : 0;
  }
  at_end.resize(static_cast<std::size_t>(next - at_end.data()));
}

double set_rates(const AtWork& at_work, double each, double exponent) {
  if (exponent == 0)
    return set_rates_with(at_work, each, [](double a, double b) { return a < b ? b : a; });
  return set_rates_with(at_work, each,
                        [exponent](double a, double b) { return joined(a, b, exponent); });
}

}  // namespace orrery
