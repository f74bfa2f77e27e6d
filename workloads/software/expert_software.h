// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "sim/config/declared.h"
#include "sim/config/fact.h"
#include "sim/config/type.h"

namespace orrery {

/// How training sends tokens to their experts, and which kernels put them into the rows of experts.
enum class TokenDispatcher : std::uint8_t {
  /// Rows are made first, then each token goes once to a rank, as inference has it.
  kExchange,
  /// NCCL's all-to-all of all copies (Megatron-Core): a permutation before it, sorted by the
  /// experts of the rank behind it, and all back.
  kAllToAll,
  /// Each token goes once to a rank, where a permutation makes the rows of its experts (DeepEP and
  /// HybridEP below Megatron-Core's flex dispatcher).
  kFlex,
  /// Every rank gathers the tokens of all, with what their routers chose, and takes the rows of its
  /// experts from them; sums of all ranks' results are reduced and scattered (Megatron-Core).
  kAllGather,
};

/// Format in which tokens go to experts.
enum class DispatchFormat : std::uint8_t { kProducts, kSixteenBit };

/// What multiplies by the weights of gates: the sum of results, whose backward pass needs them, or
/// the function of the experts.
enum class GateWeights : std::uint8_t { kResults, kFunctions };

/// Who launches the products of experts: one launch for all, or one an expert on several streams.
enum class ExpertLaunches : std::uint8_t { kGrouped, kPerExpert };

/// Which kernels compute the function between the matrices of experts, and make narrow operands.
enum class ExpertFunctions : std::uint8_t {
  kFused,     ///< the function writes narrow operands; what is sent is narrow already
  kApart,     ///< casts of their own in front of all products, as TrainingSoftware::fp8_scaling
  kProducts,  ///< products apply the function and write narrow operands (grouped MLP in one kernel)
};

/// When weight gradients of experts run.
enum class ExpertGradients : std::uint8_t {
  kBehindExchange,  ///< issued behind the exchange of token gradients (delay_wgrad_compute)
  kWithProducts,    ///< before it
};

/// When shared experts run.
enum class SharedExperts : std::uint8_t { kBesideDispatch, kBeforeDispatch };

/// How the software of a training run does mixtures of experts: `experts` of its file. What a file
/// does not say is the least that any software needs.
struct ExpertSoftware {
  Fact<TokenDispatcher> dispatcher{
      TokenDispatcher::kExchange,
      "DeepSeek-V3, arXiv 2412.19437, section 3.2.2: a token crosses to a node once"};
  Fact<DispatchFormat> dispatch_format{
      DispatchFormat::kProducts, "DeepSeek-V3, arXiv 2412.19437, section 3.3.3: dispatch in fp8"};
  Fact<GateWeights> gate_weights{
      GateWeights::kResults,
      "DeepSeek-V3, arXiv 2412.19437, equation 12: the results are weighted"};
  Fact<ExpertLaunches> launches{ExpertLaunches::kGrouped,
                                "DeepGEMM, as DeepSeek-V3: one kernel for all experts of a rank"};
  Fact<ExpertFunctions> functions{
      ExpertFunctions::kFused,
      "estimate: SwiGLU writes fp8, which DeepSeek-V3 keeps (arXiv 2412.19437, section 3.3.3)"};
  Fact<ExpertGradients> weight_gradients{
      ExpertGradients::kBehindExchange,
      "DeepSeek-V3, arXiv 2412.19437, section 3.2.1: weight gradients fill in for exchanges"};
  Fact<SharedExperts> shared_experts{
      SharedExperts::kBesideDispatch,
      "recalled: Megatron-Core transformer/moe/shared_experts.py with shared_expert_overlap"};
  /// Forward passes run beside the backward passes that follow them in the order of the schedule,
  /// so that what one exchanges runs beside kernels of the other.
  Fact<bool> batch_overlap{
      false, "Megatron-Core 0.14 model_parallel_config.py: overlap_moe_expert_parallel_comm False"};
  Fact<std::int64_t> router_kernels{
      1, "estimate: one kernel chooses experts, as serving engines have it"};
  Fact<std::int64_t> row_multiple{1, "none: products of any number of rows"};
  Fact<bool> filling_apart{false, "estimate: filled while rows are made"};
  Fact<bool> biases_apart{false, "estimate: added by products and functions"};
  Fact<bool> stash{false, "buffers of what was routed"};
  Fact<bool> host_waits{false, "buffers of fixed size: the host need not know the rows"};
  /// Standard deviation of log(step time over that of its graph) that models with experts have
  /// beside what all have (TrainingSoftware::unmodelled).
  Fact<double> unmodelled{0.28,
                          "published steps of models with experts, "
                          "validation/published/megatron_bridge/megatron_bridge_moe.yaml and "
                          "megatron_bridge_hybrids.yaml: the median over releases of the root mean "
                          "square of log(measured / predicted) is 0.29, 0.28 to 0.30 without one "
                          "of them (orrery validate published)"};

  static const config::Schema<ExpertSoftware>& schema();
};

template <>
struct config::EnumNames<TokenDispatcher> {
  static constexpr std::pair<TokenDispatcher, const char*> values[] = {
      {TokenDispatcher::kExchange, "exchange"},
      {TokenDispatcher::kAllToAll, "alltoall"},
      {TokenDispatcher::kFlex, "flex"},
      {TokenDispatcher::kAllGather, "allgather"}};
};

template <>
struct config::EnumNames<DispatchFormat> {
  static constexpr std::pair<DispatchFormat, const char*> values[] = {
      {DispatchFormat::kProducts, "products"}, {DispatchFormat::kSixteenBit, "sixteen_bit"}};
};

template <>
struct config::EnumNames<GateWeights> {
  static constexpr std::pair<GateWeights, const char*> values[] = {
      {GateWeights::kResults, "results"}, {GateWeights::kFunctions, "functions"}};
};

template <>
struct config::EnumNames<ExpertLaunches> {
  static constexpr std::pair<ExpertLaunches, const char*> values[] = {
      {ExpertLaunches::kGrouped, "grouped"}, {ExpertLaunches::kPerExpert, "per_expert"}};
};

template <>
struct config::EnumNames<ExpertFunctions> {
  static constexpr std::pair<ExpertFunctions, const char*> values[] = {
      {ExpertFunctions::kFused, "fused"},
      {ExpertFunctions::kApart, "apart"},
      {ExpertFunctions::kProducts, "products"}};
};

template <>
struct config::EnumNames<ExpertGradients> {
  static constexpr std::pair<ExpertGradients, const char*> values[] = {
      {ExpertGradients::kBehindExchange, "behind_exchange"},
      {ExpertGradients::kWithProducts, "with_products"}};
};

template <>
struct config::EnumNames<SharedExperts> {
  static constexpr std::pair<SharedExperts, const char*> values[] = {
      {SharedExperts::kBesideDispatch, "beside_dispatch"},
      {SharedExperts::kBeforeDispatch, "before_dispatch"}};
};

}  // namespace orrery
