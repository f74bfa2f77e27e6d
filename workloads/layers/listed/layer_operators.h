// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "workloads/layers/listed/layer_graph.h"

namespace orrery {

// Operations that several kinds of layers are made of. Each adds itself to a graph and returns its
// result; mistakes are config::KeyErrors with the key of the layer that is wrong.

/// Which biases a convolution adds.
enum class ConvolutionBias : std::uint8_t {
  kNone,
  kChannel,  ///< one a channel of results
  kUnit,     ///< one at every position of every channel
};

struct ConvolutionShape {
  std::int64_t channels = 0;  ///< channels of results
  std::int64_t size = 1;      ///< rows and columns of the filter
  std::int64_t stride = 1;
  std::int64_t padding = -1;  ///< -1: half of the filter
  std::int64_t groups = 1;
  /// Channels that one of the results sees, where its filter skips some; 0: all of its group.
  std::int64_t fan_in = 0;
  ConvolutionBias bias = ConvolutionBias::kNone;
};
std::size_t convolve(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                     const ConvolutionShape& shape);

struct DenseShape {
  std::int64_t channels = 0;  ///< channels of results, at each position
  bool flat = false;          ///< a sample is one position, with all of its values
  bool bias = true;
  bool tied = false;  ///< whether its weights are those of another layer
};
std::size_t multiply(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                     const DenseShape& shape);

enum class NormMethod : std::uint8_t {
  kNone,
  kBatch,  ///< statistics of a channel over all samples; a scale and a shift in inference
  kLayer,  ///< statistics of each position
  kGroup,  ///< statistics of some channels of a sample
  kRms,
  kLocal,  ///< squares of neighbouring channels (AlexNet)
};
/// @param weights whether it has a scale and a shift of each channel
std::size_t normalize(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                      NormMethod method, bool weights = true);

enum class ActivationFunction : std::uint8_t {
  kNone,
  kRelu,
  kRelu6,
  kGelu,
  kSilu,
  kSigmoid,
  kTanh,
  kSoftmax,
};
std::size_t activate(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                     ActivationFunction function);

/// What follows a convolution.
struct NormedBy {
  NormMethod norm = NormMethod::kBatch;
  ActivationFunction activation = ActivationFunction::kNone;
};

enum class PoolMethod : std::uint8_t {
  kMaximum,
  kAverage,
  kGlobal,  ///< the mean of all positions
  kFirst,   ///< the first position alone: a class token
};
struct PoolShape {
  PoolMethod method = PoolMethod::kMaximum;
  std::int64_t size = 2, stride = 2, padding = 0;
};
std::size_t pool(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                 const PoolShape& shape);

/// A convolution with what follows it: a norm and a function.
std::size_t convolve_normed(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                            const ConvolutionShape& shape, NormedBy normed_by);

/// Sum of two tensors of one extent, or of one and a value for each of its channels.
std::size_t add_tensors(LayerGraphBuilder& graph, const std::string& name, std::size_t first,
                        std::size_t second);
/// Each channel of `input` times a value that a condition gives it, and plus another where it gives
/// two (`used`). `vectors` has those of a whole block side by side.
std::size_t modulate(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                     std::size_t vectors, std::int64_t used);

struct AttentionSizes {
  std::int64_t heads = 1;
  bool causal = false;
};
/// Queries, keys and values of all heads lie side by side in `input`.
std::size_t attend(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                   AttentionSizes sizes);

template <>
struct config::EnumNames<ConvolutionBias> {
  static constexpr std::pair<ConvolutionBias, const char*> values[] = {
      {ConvolutionBias::kNone, "none"},
      {ConvolutionBias::kChannel, "channel"},
      {ConvolutionBias::kUnit, "unit"}};
};

template <>
struct config::EnumNames<NormMethod> {
  static constexpr std::pair<NormMethod, const char*> values[] = {
      {NormMethod::kNone, "none"},   {NormMethod::kBatch, "batch"}, {NormMethod::kLayer, "layer"},
      {NormMethod::kGroup, "group"}, {NormMethod::kRms, "rms"},     {NormMethod::kLocal, "local"}};
};

template <>
struct config::EnumNames<PoolMethod> {
  static constexpr std::pair<PoolMethod, const char*> values[] = {{PoolMethod::kMaximum, "maximum"},
                                                                  {PoolMethod::kAverage, "average"},
                                                                  {PoolMethod::kGlobal, "global"},
                                                                  {PoolMethod::kFirst, "first"}};
};

template <>
struct config::EnumNames<ActivationFunction> {
  static constexpr std::pair<ActivationFunction, const char*> values[] = {
      {ActivationFunction::kNone, "none"},   {ActivationFunction::kRelu, "relu"},
      {ActivationFunction::kRelu6, "relu6"}, {ActivationFunction::kGelu, "gelu"},
      {ActivationFunction::kSilu, "silu"},   {ActivationFunction::kSigmoid, "sigmoid"},
      {ActivationFunction::kTanh, "tanh"},   {ActivationFunction::kSoftmax, "softmax"}};
};

}  // namespace orrery
