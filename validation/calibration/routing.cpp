// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/routing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/units/hash.h"

namespace orrery {
namespace {

constexpr int kRoutings = 5;

double real(std::int64_t value) { return static_cast<double>(value); }

/// Experts of a group of `experts` that get none of `rows` copies dealt out at random keep their
/// weights unread.
double expected_active(double experts, double rows) {
  return experts * (1 - std::pow(1 - 1 / experts, rows));
}

RankLoad balanced(const OperatorRow& row) {
  const double experts = real(row.experts) / real(row.moe_ep);
  const double rows = real(row.tokens * row.top_k) / real(row.moe_ep);
  return {std::max(1.0, std::min(experts, rows)), std::max(1.0, rows)};
}

/// Loads of all experts, with the given exponent, adding up to `copies`.
std::vector<double> power_law_loads(const OperatorRow& row, double exponent, std::uint64_t& state) {
  const double most = std::max(2.0, 0.8 * real(row.tokens));
  const double power = 1 - exponent;
  std::vector<double> loads(static_cast<std::size_t>(row.experts));
  double sum = 0;
  for (double& load : loads) {
    const double u = next_uniform(state);
    load = std::pow(1 + u * (std::pow(most, power) - 1), 1 / power);
    sum += load;
  }
  const double copies = real(row.tokens * row.top_k);
  for (double& load : loads) load = std::min(real(row.tokens), load * copies / sum);
  return loads;
}

RankLoad drawn(const OperatorRow& row, double exponent) {
  RankLoad mean;
  std::uint64_t state = stable_hash(row.distribution);
  const auto local = static_cast<std::size_t>(std::max<std::int64_t>(1, row.experts / row.moe_ep));
  for (int routing = 0; routing < kRoutings; ++routing) {
    const std::vector<double> loads = power_law_loads(row, exponent, state);
    RankLoad heaviest;
    for (std::size_t first = 0; first + local <= loads.size(); first += local) {
      RankLoad rank;
      for (std::size_t i = first; i < first + local; ++i) {
        rank.rows += loads[i];
        rank.experts += std::min(1.0, loads[i]);
      }
      if (rank.rows > heaviest.rows) heaviest = rank;
    }
    mean.rows += heaviest.rows / kRoutings;
    mean.experts += heaviest.experts / kRoutings;
  }
  mean.rows = std::max(1.0, mean.rows);
  mean.experts = std::clamp(std::min(mean.experts, expected_active(real(row.experts), mean.rows)),
                            1.0, mean.rows);
  return mean;
}

}  // namespace

RankLoad heaviest_rank(const OperatorRow& row) {
  static const std::string prefix = "power_law_";
  if (!row.distribution.starts_with(prefix)) return balanced(row);
  using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  static std::map<Key, RankLoad> known;  // rows of a table share few routings
  const Key key{row.distribution, row.tokens, row.top_k, row.experts, row.moe_ep};
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const RankLoad load = drawn(row, std::stod(row.distribution.substr(prefix.size())));
  known.emplace(key, load);
  return load;
}

}  // namespace orrery
