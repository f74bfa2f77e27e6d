// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {

/// How many equally likely machines an interval is made of.
inline constexpr std::size_t kDraws = 128;

/// Standard normal values of one uncertain quantity, one per draw. The quantity is named by `key`:
/// the same seed and key give the same values in every command and process, so that results of two
/// runs differ by what differs between them, not by luck. Stratified (McKay et al., Technometrics
/// 21(2), 1979): the values of a key are the kDraws mid-quantiles of the normal distribution in an
/// order drawn from the key, so that a sum of few quantities already has the right spread.
std::vector<double> normal_draws(std::int64_t seed, std::string_view key);

/// p10 and p90 of the values: linear interpolation between order statistics.
std::pair<double, double> p10_p90(std::vector<double> values);

}  // namespace orrery
