// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace orrery {

/// Exchanges of two batches in a layer of experts, in the order in which they are issued.
enum class TurnExchange : std::uint8_t {
  kFirstDispatch,
  kSecondDispatch,
  kFirstCombine,
  kSecondCombine
};
inline constexpr std::size_t kTurnExchanges = 4;

/// What kernels that follow each other take.
struct TurnWork {
  double alone = 0;
  std::array<double, kTurnExchanges> beside{};  ///< time of all beside an exchange that lasts
};

/// One of two batches in a layer of experts; times in any unit.
struct TurnLayer {
  TurnWork project, attend, route;  ///< before the dispatch
  TurnWork send;                    ///< puts tokens of decodes on the way
  TurnWork shared;                  ///< shared experts, which need no exchange
  TurnWork experts;                 ///< behind the dispatch, before the combine
  TurnWork add_up;                  ///< behind the combine
  double dispatch = 0, combine = 0;
};

/// The time of so many equal layers, in which the kernels of two batches take turns on one stream
/// and their exchanges on another: each batch up to its dispatch, then each up to its combine, and
/// what is behind that before what the next layer has to dispatch (SGLang's schedule of prompts).
double alternating_time(const std::array<TurnLayer, 2>& batches, std::int64_t layers);

/// The same where batches take turns by the five stages of a layer (next_turn() of
/// workloads/layers/parts/layer_parts.h), the second two stages behind the first (SGLang's of
/// decodes).
double staged_time(const std::array<TurnLayer, 2>& batches, std::int64_t layers);

}  // namespace orrery
