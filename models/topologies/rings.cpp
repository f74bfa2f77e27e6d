// SPDX-License-Identifier: Apache-2.0
#include "models/topologies/rings.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace orrery {
namespace {

constexpr int kMostSteps = 200000;

/// Cycles through all members, found depth first: each begins at member 0 and follows the links
/// that are left, the widest first and, of those, to the member with the fewest ways on.
class CycleSearch {
 public:
  explicit CycleSearch(const LinkTable& links) : left_(links), taken_(members(), false) {
    goal_ = std::numeric_limits<int>::max();
    for (int member = 0; member < links.members(); ++member)
      goal_ = std::min(goal_, links.degree(member) / 2);
    taken_.front() = true;
    if (goal_ > 0) extend();
  }

  const RingOrders& best() const { return best_; }

 private:
  std::size_t members() const { return static_cast<std::size_t>(left_.members()); }
  bool is_taken(int member) const { return taken_[static_cast<std::size_t>(member)]; }
  void add_links(int a, int b, int links) { left_.set(a, b, left_.at(a, b) + links); }

  int ways_on(int member) const {
    int ways = 0;
    for (int next = 0; next < left_.members(); ++next)
      ways += !is_taken(next) && left_.at(member, next) > 0 ? 1 : 0;
    return ways;
  }

  std::vector<int> nexts(int from) const {
    std::vector<int> nexts;
    for (int member = 0; member < left_.members(); ++member)
      if (!is_taken(member) && left_.at(from, member) > 0) nexts.push_back(member);
    const auto key = [&](int member) {
      return std::pair(-left_.at(from, member), ways_on(member));
    };
    std::stable_sort(nexts.begin(), nexts.end(), [&](int a, int b) { return key(a) < key(b); });
    return nexts;
  }

  /// Extends the path; true when the search is over.
  bool extend() {
    if (++steps_ > kMostSteps) return true;
    const int last = path_.back();
    if (path_.size() == members()) return close(last);
    for (const int next : nexts(last)) {
      add_links(last, next, -1);
      taken_[static_cast<std::size_t>(next)] = true;
      path_.push_back(next);
      if (extend()) return true;
      path_.pop_back();
      taken_[static_cast<std::size_t>(next)] = false;
      add_links(last, next, 1);
    }
    return false;
  }

  /// Closes the path to a cycle and goes on with the next one. Each set of cycles is met once: in
  /// lexicographic order, and each of them one way round.
  bool close(int last) {
    const bool known = path_[1] > last || (!cycles_.empty() && path_ < cycles_.back());
    if (known || left_.at(last, 0) == 0) return false;
    add_links(last, 0, -1);
    cycles_.push_back(path_);
    if (cycles_.size() > best_.size()) best_ = cycles_;
    bool over = static_cast<int>(best_.size()) == goal_;
    if (!over) {
      std::vector<int> path = {0};
      std::vector<bool> taken(members(), false);
      taken.front() = true;
      path_.swap(path);
      taken_.swap(taken);
      over = extend();
      path_.swap(path);
      taken_.swap(taken);
    }
    cycles_.pop_back();
    add_links(last, 0, 1);
    return over;
  }

  LinkTable left_;
  std::vector<bool> taken_;
  std::vector<int> path_ = {0};
  RingOrders cycles_, best_;
  int goal_ = 0;
  int steps_ = 0;
};

/// Links between each two members where all have equally many; else 0.
int links_of_full_mesh(const LinkTable& links) {
  const int wanted = links.at(0, 1);
  for (int a = 0; a < links.members(); ++a) {
    for (int b = 0; b < a; ++b)
      if (links.at(a, b) != wanted) return 0;
  }
  return wanted;
}

/// n-1 cycles which pass each pair of members twice: the last member stays, the others rotate.
RingOrders cycles_of_full_mesh(int members) {
  const int others = members - 1;
  RingOrders cycles;
  for (int turn = 0; turn < others; ++turn) {
    std::vector<int>& cycle = cycles.emplace_back();
    cycle.push_back(others);
    for (int i = 0; i < others; ++i) {
      const int zigzag = i % 2 == 1 ? (i + 1) / 2 : others - i / 2;
      cycle.push_back((zigzag + turn) % others);
    }
  }
  return cycles;
}

/// Links of the narrowest hop of a ring in rank order.
int links_in_rank_order(const LinkTable& links) {
  int least = links.at(0, links.members() - 1);
  for (int member = 1; member < links.members(); ++member)
    least = std::min(least, links.at(member - 1, member));
  return least;
}

}  // namespace

LinkTable::LinkTable(int members)
    : members_(members),
      links_(static_cast<std::size_t>(members) * static_cast<std::size_t>(members)) {}

std::size_t LinkTable::index(int a, int b) const {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(members_) +
         static_cast<std::size_t>(b);
}

void LinkTable::set(int a, int b, int links) {
  links_[index(a, b)] = links;
  links_[index(b, a)] = links;
}

int LinkTable::degree(int member) const {
  const auto row = links_.begin() + static_cast<std::ptrdiff_t>(index(member, 0));
  return std::accumulate(row, row + members_, 0);
}

RingOrders disjoint_rings(const LinkTable& links) {
  if (links.members() < 3 || links.members() > kMostRingMembers) return {};
  RingOrders cycles;
  if (links_of_full_mesh(links) > 0) {
    cycles = cycles_of_full_mesh(links.members());
  } else {
    cycles = CycleSearch(links).best();
    if (static_cast<int>(cycles.size()) <= links_in_rank_order(links)) return {};
  }
  RingOrders rings;
  for (const std::vector<int>& cycle : cycles) {
    rings.push_back(cycle);
    rings.emplace_back(cycle.rbegin(), cycle.rend());
  }
  return rings;
}

}  // namespace orrery
