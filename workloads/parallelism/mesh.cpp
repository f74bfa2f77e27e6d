// SPDX-License-Identifier: Apache-2.0
#include "workloads/parallelism/mesh.h"

#include <cstddef>
#include <numeric>

namespace orrery {
namespace {

/// Deals `ranks` into `count` groups: rank i goes to group `group_of(i)`.
template <class GroupOf>
Mesh::Groups deal(const std::vector<int>& ranks, int count, GroupOf group_of) {
  Mesh::Groups groups(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    groups[static_cast<std::size_t>(group_of(static_cast<int>(i)))].push_back(ranks[i]);
  }
  return groups;
}

}  // namespace

Mesh::Mesh(const ParallelConfig& parallel) : parallel_(parallel) { require_supported(parallel); }

int Mesh::rank(MeshPosition position) const {
  return (position.pp * parallel_.dp + position.dp) * parallel_.tp + position.tp;
}

MeshPosition Mesh::position(int rank) const {
  return {.tp = rank % parallel_.tp,
          .dp = rank / parallel_.tp % parallel_.dp,
          .pp = rank / parallel_.tp / parallel_.dp};
}

std::vector<int> Mesh::stage(int pp) const {
  const int size = parallel_.tp * parallel_.dp;
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), pp * size);
  return ranks;
}

Mesh::Groups Mesh::tensor_groups(int pp) const {
  return deal(stage(pp), parallel_.dp, [tp = parallel_.tp](int i) { return i / tp; });
}

Mesh::Groups Mesh::data_groups(int pp) const {
  return deal(stage(pp), parallel_.tp, [tp = parallel_.tp](int i) { return i % tp; });
}

Mesh::Groups Mesh::expert_groups(int pp) const {
  const int ep = parallel_.ep, etp = parallel_.etp;
  return deal(stage(pp), parallel_.tp * parallel_.dp / ep,
              [ep, etp](int i) { return i / (etp * ep) * etp + i % etp; });
}

Mesh::Groups Mesh::expert_tensor_groups(int pp) const {
  const int etp = parallel_.etp;
  return deal(stage(pp), parallel_.tp * parallel_.dp / etp, [etp](int i) { return i / etp; });
}

Mesh::Groups Mesh::expert_data_groups(int pp) const {
  const int holders = parallel_.ep * parallel_.etp;
  return deal(stage(pp), holders, [holders](int i) { return i % holders; });
}

Mesh::Groups Mesh::pairs(int from_pp, int to_pp) const {
  const std::vector<int> from = stage(from_pp);
  const std::vector<int> to = stage(to_pp);
  Groups pairs;
  for (std::size_t i = 0; i < from.size(); ++i) pairs.push_back({from[i], to[i]});
  return pairs;
}

}  // namespace orrery
