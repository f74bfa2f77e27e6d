// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <string>
#include <utility>

#include "sim/config/diagnostics.h"
#include "workloads/base/real.h"
#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// An implicit product: rows are positions of all samples, columns channels of results, and the
/// filter is summed over. A group with one column shares no operand between results and runs on
/// vector lanes.
struct Convolution {
  const PassContext& pass;
  const ConvolutionShape& shape;
  Extent in, out;

  std::int64_t filter() const { return shape.size * shape.size; }
  std::int64_t fan_in() const {
    return shape.fan_in > 0 ? shape.fan_in : in.channels / shape.groups;
  }
  std::int64_t columns() const { return out.channels / shape.groups; }
  std::int64_t weights() const { return out.channels * fan_in() * filter(); }
  std::int64_t biases() const {
    if (shape.bias == ConvolutionBias::kNone) return 0;
    return shape.bias == ConvolutionBias::kUnit ? out.elements() : out.channels;
  }
  std::int64_t parameters() const { return weights() + biases(); }
  std::int64_t multiply_adds() const { return out.elements() * fan_in() * filter(); }

  Kernel forward() const {
    Kernel kernel =
        product("convolution", {pass.samples * out.positions(), columns(), fan_in() * filter()});
    kernel.read = pass.bytes(in.elements()) + weight_bytes();
    kernel.written = pass.bytes(out.elements());
    return kernel;
  }
  Kernel data_gradient() const {
    Kernel kernel =
        product("convolution dgrad",
                {pass.samples * in.positions(), in.channels / shape.groups, columns() * filter()});
    kernel.read = pass.bytes(out.elements()) + weight_bytes();
    kernel.written = pass.bytes(in.elements());
    return kernel;
  }
  Kernel weight_gradient() const {
    Kernel kernel = product("convolution wgrad",
                            {columns(), fan_in() * filter(), pass.samples * out.positions()});
    kernel.read = pass.bytes(in.elements()) + pass.bytes(out.elements());
    kernel.written = Bytes(real(weights()) * kWeightGradientBytes);
    return kernel;
  }

 private:
  Bytes weight_bytes() const { return Bytes(real(parameters()) * pass.element()); }

  Kernel product(std::string name, const GemmShape& size) const {
    Kernel kernel = matrix_kernel(std::move(name), KernelClass::kConvolution, pass.precision,
                                  {size.m, size.n, size.k, shape.groups});
    const Flops flops(2 * real(pass.samples) * real(multiply_adds()));
    const bool depthwise = shape.channels == shape.groups;
    (depthwise ? kernel.vector_flops : kernel.matrix_flops) = flops;
    return kernel;
  }
};

std::int64_t positions_after(std::int64_t positions, const ConvolutionShape& shape) {
  return (positions + 2 * shape.padding - shape.size) / shape.stride + 1;
}

/// With the norm and the function that usually follow.
struct ConvolutionLayer final : ListedLayer, ConvolutionShape {
  ConvolutionLayer() { kind = "convolution"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int) const override {
    return convolve_normed(graph, "convolution", inputs.front(), *this, {norm, activation});
  }

  NormMethod norm = NormMethod::kNone;
  ActivationFunction activation = ActivationFunction::kNone;
  static const config::Schema<ConvolutionLayer>& schema() {
    using L = ConvolutionLayer;
    using config::between;
    constexpr double kMostSize = 1024;
    const auto of_shape = [](std::int64_t ConvolutionShape::*member) {
      return static_cast<std::int64_t L::*>(member);
    };
    static const config::Schema<L> schema =
        listed_layer_schema<L>("convolution", "filters over neighbouring positions")
            .required("channels", of_shape(&ConvolutionShape::channels), "channels of its result",
                      between(1, kMostChannels))
            .optional("size", of_shape(&ConvolutionShape::size), "rows and columns of a filter",
                      between(1, kMostSize))
            .optional("stride", of_shape(&ConvolutionShape::stride),
                      "positions from one result to the next", between(1, kMostSize))
            .optional("padding", of_shape(&ConvolutionShape::padding),
                      "zeros around the input; -1: half of the filter", between(-1, kMostSize))
            .optional(
                "groups", of_shape(&ConvolutionShape::groups),
                "groups of channels that do not see each other; as many as channels: depthwise",
                between(1, kMostChannels))
            .optional("fan_in", of_shape(&ConvolutionShape::fan_in),
                      "channels that one channel of the result sees, where it skips some; 0: all "
                      "of its group",
                      between(0, kMostChannels))
            .optional("bias", static_cast<ConvolutionBias L::*>(&ConvolutionShape::bias),
                      "none, one a channel, or one a unit: at every position of every channel")
            .optional("norm", &L::norm, "what normalises its result")
            .optional("activation", &L::activation, "the function behind that");
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<ConvolutionLayer> added_convolution(
    "convolution", "filters over neighbouring positions, with norm and activation");

}  // namespace

std::size_t convolve(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                     const ConvolutionShape& given) {
  ConvolutionShape shape = given;
  if (shape.padding < 0) shape.padding = (shape.size - 1) / 2;
  const Extent in = graph.extent(input);
  if (in.channels % shape.groups != 0 || shape.channels % shape.groups != 0)
    throw config::KeyError(
        "groups",
        fmt::format("{} groups divide neither {} channels of its input nor {} of its result",
                    shape.groups, in.channels, shape.channels));
  if (shape.fan_in > in.channels / shape.groups)
    throw config::KeyError("fan_in", "a filter sees at most the " +
                                         std::to_string(in.channels / shape.groups) +
                                         " channels of its group");
  const Extent out{shape.channels, positions_after(in.rows, shape),
                   positions_after(in.columns, shape)};
  if (in.rows + 2 * shape.padding < shape.size || in.columns + 2 * shape.padding < shape.size)
    throw config::KeyError("size", fmt::format("a filter of {} is larger than its input of {}",
                                               shape.size, to_string(in)));
  const Convolution filters{graph.pass(), shape, in, out};
  ListedOp op{.name = name,
              .inputs = {input},
              .result = out,
              .parameters = filters.parameters(),
              .multiply_adds = filters.multiply_adds(),
              .forward = {filters.forward()},
              .keeps_inputs = true};
  if (graph.tensor(input).trained) op.gradient.push_back(filters.data_gradient());
  op.gradient.push_back(filters.weight_gradient());
  if (filters.biases() > 0)
    op.gradient.push_back(
        stream(graph.pass(), "bias gradient", KernelClass::kElementwise, out, {1, 0, 1}));
  return graph.add(std::move(op));
}

std::size_t convolve_normed(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                            const ConvolutionShape& shape, NormedBy normed_by) {
  std::size_t value = convolve(graph, name, input, shape);
  value = normalize(graph, name + " norm", value, normed_by.norm);
  return activate(graph, name + " activation", value, normed_by.activation);
}

}  // namespace orrery
