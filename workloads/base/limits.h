// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The largest sizes that a model may be given, several times those of any known model. They are
/// chosen so that counts stay exact: the largest product, the experts of a whole model, is
/// 3 x 2^17 hidden x 2^20 intermediate x 2^12 experts x 2^11 layers = 3 x 2^60 < 2^63.
namespace orrery::llm_limits {

inline constexpr std::int64_t kHidden = std::int64_t{1} << 17;
inline constexpr std::int64_t kLayers = std::int64_t{1} << 11;
inline constexpr std::int64_t kHeads = std::int64_t{1} << 12;
inline constexpr std::int64_t kHeadDim = std::int64_t{1} << 13;
inline constexpr std::int64_t kIntermediate = std::int64_t{1} << 20;
inline constexpr std::int64_t kExperts = std::int64_t{1} << 12;
inline constexpr std::int64_t kSharedExperts = std::int64_t{1} << 8;
inline constexpr std::int64_t kVocabulary = std::int64_t{1} << 24;
inline constexpr std::int64_t kTokens = std::int64_t{1} << 30;  ///< windows and positions

}  // namespace orrery::llm_limits
