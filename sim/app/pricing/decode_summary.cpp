// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/decode_summary.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr std::int64_t kGroups = 15;  ///< groups of sequences beside the longest one
constexpr int kNewtonSteps = 100;
constexpr double kNearTokens = 1e-2;
constexpr double kSteepest = 1e4;

/// Sequences of one group, and the share of all others up to its middle.
struct Group {
  std::int64_t count = 0;
  double share = 0;
};

std::vector<Group> groups_of(std::int64_t others) {
  const std::int64_t count = std::min(kGroups, others);
  std::vector<Group> groups;
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t size = others / count + (i < others % count ? 1 : 0);
    const double middle = static_cast<double>(before) + static_cast<double>(size) / 2;
    groups.push_back({size, middle / static_cast<double>(others)});
    before += size;
  }
  return groups;
}

/// The exponent at which the groups have that many tokens, to a hundredth of one. By Newton's steps
/// from 0 up: tokens fall with the exponent along a convex curve, so that no step goes too far.
double exponent_of(const std::vector<Group>& groups, double longest, double tokens) {
  double exponent = 0;
  for (int step = 0; step < kNewtonSteps && exponent < kSteepest; ++step) {
    double excess = -tokens, slope = 0;
    for (const Group& group : groups) {
      const double logarithm = std::log(group.share);
      const double of_group =
          static_cast<double>(group.count) * longest * std::exp(exponent * logarithm);
      excess += of_group;
      slope += of_group * logarithm;
    }
    if (excess <= kNearTokens) break;
    exponent -= excess / slope;
  }
  return exponent;
}

}  // namespace

std::vector<DecodeGroup> summarised_decodes(std::int64_t sequences, std::int64_t longest,
                                            std::int64_t context) {
  if (sequences == 0) return {};
  if (sequences == 1 || longest * sequences <= context) return {{context / sequences, sequences}};
  const std::vector<Group> groups = groups_of(sequences - 1);
  const auto most = static_cast<double>(longest);
  const double rest = static_cast<double>(std::max<std::int64_t>(0, context - longest));
  const double exponent = exponent_of(groups, most, rest);
  std::vector<DecodeGroup> decodes;
  const std::size_t count = groups.size();
  for (std::size_t i = 0; i < count; ++i) {
    // Strides of 7 visit all of up to 15 groups but where 7 divides their number.
    const std::size_t stride = count % 7 == 0 ? 1 : 7;
    const Group& group = groups[(i * stride) % count];
    if (i == count / 2) decodes.push_back({longest, 1});
    decodes.push_back({std::llround(most * std::pow(group.share, exponent)), group.count});
  }
  return decodes;
}

}  // namespace orrery
