// SPDX-License-Identifier: Apache-2.0
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
class Convolution final : public LayerOperator {
 public:
  Convolution(ConvolutionShape shape, Extent in, Extent out) : shape_(shape), in_(in), out_(out) {}

  std::int64_t parameters() const override { return weights() + biases(); }
  std::int64_t multiply_adds() const override {
    return out_.elements() * fan_in() * shape_.size * shape_.size;
  }
  bool is_product() const override { return true; }
  bool keeps_inputs() const override { return true; }

  std::vector<Kernel> forward(const PassContext& pass) const override {
    Kernel kernel = product(pass, "convolution", pass.samples * out_.positions(),
                            out_.channels / shape_.groups, fan_in() * shape_.size * shape_.size);
    kernel.read = pass.bytes(in_.elements()) + weight_bytes(pass);
    kernel.written = pass.bytes(out_.elements());
    return {kernel};
  }

  std::vector<Kernel> backward(const PassContext& pass, bool to_inputs) const override {
    std::vector<Kernel> kernels;
    const std::int64_t filter = shape_.size * shape_.size;
    const std::int64_t columns = out_.channels / shape_.groups;
    if (to_inputs) {
      Kernel data = product(pass, "convolution dgrad", pass.samples * in_.positions(),
                            in_.channels / shape_.groups, columns * filter);
      data.read = pass.bytes(out_.elements()) + weight_bytes(pass);
      data.written = pass.bytes(in_.elements());
      kernels.push_back(std::move(data));
    }
    Kernel weight = product(pass, "convolution wgrad", columns, fan_in() * filter,
                            pass.samples * out_.positions());
    weight.read = pass.bytes(in_.elements()) + pass.bytes(out_.elements());
    weight.written = Bytes(real(weights()) * kWeightGradientBytes);
    kernels.push_back(std::move(weight));
    if (biases() > 0)
      kernels.push_back(stream(pass, "bias gradient", KernelClass::kElementwise, out_, {1, 0, 1}));
    return kernels;
  }

 private:
  std::int64_t fan_in() const {
    return shape_.fan_in > 0 ? shape_.fan_in : in_.channels / shape_.groups;
  }
  std::int64_t weights() const { return out_.channels * fan_in() * shape_.size * shape_.size; }
  std::int64_t biases() const {
    if (shape_.bias == ConvolutionBias::kNone) return 0;
    return shape_.bias == ConvolutionBias::kUnit ? out_.elements() : out_.channels;
  }
  Bytes weight_bytes(const PassContext& pass) const {
    return Bytes(real(parameters()) * pass.element());
  }

  Kernel product(const PassContext& pass, std::string name, std::int64_t m, std::int64_t n,
                 std::int64_t k) const {
    Kernel kernel;
    kernel.name = std::move(name);
    kernel.kind = KernelClass::kConvolution;
    kernel.precision = pass.precision;
    kernel.batch = shape_.groups;
    kernel.m = m;
    kernel.n = n;
    kernel.k = k;
    const Flops flops(2 * real(pass.samples) * real(multiply_adds()));
    const bool depthwise = shape_.channels == shape_.groups;
    (depthwise ? kernel.vector_flops : kernel.matrix_flops) = flops;
    return kernel;
  }

  ConvolutionShape shape_;
  Extent in_, out_;
};

std::int64_t positions_after(std::int64_t positions, const ConvolutionShape& shape) {
  return (positions + 2 * shape.padding - shape.size) / shape.stride + 1;
}

}  // namespace

std::size_t convolve(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                     const ConvolutionShape& given) {
  ConvolutionShape shape = given;
  if (shape.padding < 0) shape.padding = (shape.size - 1) / 2;
  const Extent in = graph.extent(input);
  if (in.channels % shape.groups != 0 || shape.channels % shape.groups != 0)
    throw config::KeyError("groups", std::to_string(shape.groups) + " groups divide neither " +
                                         std::to_string(in.channels) + " channels of its input " +
                                         "nor " + std::to_string(shape.channels) +
                                         " of its result");
  if (shape.fan_in > in.channels / shape.groups)
    throw config::KeyError("fan_in", "a filter sees at most the " +
                                         std::to_string(in.channels / shape.groups) +
                                         " channels of its group");
  const Extent out{shape.channels, positions_after(in.rows, shape),
                   positions_after(in.columns, shape)};
  if (in.rows + 2 * shape.padding < shape.size || in.columns + 2 * shape.padding < shape.size)
    throw config::KeyError("size", "a filter of " + std::to_string(shape.size) +
                                       " is larger than its input of " + to_string(in));
  return graph.add(name, {input}, out, std::make_shared<Convolution>(shape, in, out));
}

std::size_t convolve_normed(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                            const ConvolutionShape& shape, NormedBy normed_by) {
  std::size_t value = convolve(graph, name, input, shape);
  value = normalize(graph, name + " norm", value, normed_by.norm);
  return activate(graph, name + " activation", value, normed_by.activation);
}

namespace {

/// With the norm and the function that usually follow.
struct ConvolutionLayer final : ListedLayer, ConvolutionShape {
  ConvolutionLayer() { kind = "convolution"; }

  std::size_t build(LayerGraphBuilder& graph, const std::vector<std::size_t>& inputs,
                    int) const override {
    return convolve_normed(graph, "convolution", inputs.front(), *this, {norm, activation});
  }

  NormMethod norm = NormMethod::kNone;
  ActivationFunction activation = ActivationFunction::kNone;
  static const config::Schema<ConvolutionLayer>& schema();
};

const config::Schema<ConvolutionLayer>& ConvolutionLayer::schema() {
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
          .optional("groups", of_shape(&ConvolutionShape::groups),
                    "groups of channels that do not see each other; as many as channels: depthwise",
                    between(1, kMostChannels))
          .optional("fan_in", of_shape(&ConvolutionShape::fan_in),
                    "channels that one channel of the result sees, where it skips some; 0: all of "
                    "its group",
                    between(0, kMostChannels))
          .optional("bias", static_cast<ConvolutionBias L::*>(&ConvolutionShape::bias),
                    "none, one a channel, or one a unit: at every position of every channel")
          .optional("norm", &L::norm, "what normalises its result")
          .optional("activation", &L::activation, "the function behind that");
  return schema;
}

const config::Registered<ListedLayer>::Add<ConvolutionLayer> added_convolution(
    "convolution", "filters over neighbouring positions, with norm and activation");

}  // namespace
}  // namespace orrery
