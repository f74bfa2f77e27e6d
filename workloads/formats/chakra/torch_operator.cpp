// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/chakra/torch_operator.h"

#include <algorithm>
#include <array>
#include <utility>

#include "workloads/formats/chakra/python_text.h"
#include "workloads/formats/kineto/names.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

constexpr std::int64_t kLargestTensor = std::int64_t{1} << 48U;

struct TorchTensor {
  std::int64_t storage = 0;
  std::int64_t elements = 0, element_bytes = 0;
  std::vector<std::int64_t> shape;
  std::string_view type;  ///< type of the tensor: "Tensor(float)"

  double bytes() const {
    return static_cast<double>(elements) * static_cast<double>(element_bytes);
  }
};

/// One argument: a tensor, or the text of something else.
struct Argument {
  std::optional<TorchTensor> tensor;
  std::string_view text;
};

/// [tensor, storage, offset, elements, bytes of an element, "device"].
std::optional<TorchTensor> tensor_of(const PythonValue& value) {
  constexpr std::size_t kParts = 6;
  if (!value.is_list || value.items.size() != kParts) return std::nullopt;
  TorchTensor tensor;
  tensor.storage = natural_number(value.items[1].text);
  tensor.elements = natural_number(value.items[3].text);
  tensor.element_bytes = natural_number(value.items[4].text);
  if (natural_number(value.items[0].text) < 0 || tensor.storage < 0 || tensor.elements < 0 ||
      tensor.elements > kLargestTensor || tensor.element_bytes < 0 || tensor.element_bytes > 16 ||
      value.items[5].is_list || natural_number(value.items[5].text) >= 0)
    return std::nullopt;
  return tensor;
}

const PythonValue* item_of(const std::optional<PythonValue>& list, std::size_t i) {
  return list && list->is_list && i < list->items.size() ? &list->items[i] : nullptr;
}

/// Arguments in their order; those of lists of tensors follow each other.
class Arguments {
 public:
  explicit Arguments(const TensorTexts& texts) {
    const auto values = python_value(texts.values);
    const auto shapes = python_value(texts.shapes), types = python_value(texts.types);
    if (!values || !values->is_list) return;
    for (std::size_t i = 0; i < values->items.size(); ++i)
      add(values->items[i], item_of(shapes, i), item_of(types, i));
  }
  const std::vector<Argument>& all() const { return arguments_; }
  bool has_tensor() const {
    return std::any_of(arguments_.begin(), arguments_.end(),
                       [](const Argument& one) { return one.tensor.has_value(); });
  }

 private:
  void add(const PythonValue& value, const PythonValue* shape, const PythonValue* type) {
    Argument argument;
    argument.tensor = tensor_of(value);
    argument.text = value.text;
    if (argument.tensor && shape != nullptr && shape->is_list)
      for (const PythonValue& size : shape->items)
        argument.tensor->shape.push_back(natural_number(size.text));
    if (argument.tensor && type != nullptr) argument.tensor->type = type->text;
    const bool tensors = !argument.tensor && value.is_list && !value.items.empty() &&
                         tensor_of(value.items.front()).has_value();
    if (!tensors) return arguments_.push_back(std::move(argument));
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const bool has = shape != nullptr && shape->is_list && i < shape->items.size();
      add(value.items[i], has ? &shape->items[i] : nullptr, nullptr);
    }
  }

  std::vector<Argument> arguments_;
};

kineto::Scalar scalar_of(std::string_view type) {
  using kineto::Scalar;
  static constexpr std::array<std::pair<std::string_view, Scalar>, 8> kTypes = {
      {{"Tensor(float)", Scalar::kFloat},
       {"Tensor(c10::Half)", Scalar::kHalf},
       {"Tensor(c10::BFloat16)", Scalar::kBfloat16},
       {"Tensor(c10::Float8_e4m3fn)", Scalar::kFloat8},
       {"Tensor(c10::Float8_e5m2)", Scalar::kFloat8},
       {"Tensor(signed char)", Scalar::kInt8},
       {"Tensor(double)", Scalar::kDouble},
       {"Tensor(long int)", Scalar::kWide}}};
  for (const auto& [name, scalar] : kTypes)
    if (name == type) return scalar;
  return Scalar::kOther;
}

/// Elementwise functions of ATen, by the vector FLOPs of an element of the result.
const std::pair<double, std::vector<std::string_view>> kElementwiseRules[] = {
    {0, {"copy", "_to_copy", "clone", "fill", "zero"}},
    {1, {"add",        "sub",       "rsub",        "mul",         "div",
         "neg",        "abs",       "pow",         "sqrt",        "rsqrt",
         "reciprocal", "exp",       "log",         "tanh",        "sigmoid",
         "relu",       "threshold", "clamp",       "clamp_min",   "clamp_max",
         "minimum",    "maximum",   "masked_fill", "where",       "hardtanh",
         "leaky_relu", "eq",        "ne",          "lt",          "le",
         "gt",         "ge",        "logical_not", "bitwise_not", "threshold_backward"}},
    {3, {"addcmul", "addcdiv", "lerp"}},
    {vector_cost::kSilu, {"silu"}},
    {vector_cost::kGelu, {"gelu"}},
    {vector_cost::kDropout, {"native_dropout"}},
};

/// The name without "aten::" and without the "_" of those that work in place.
std::string_view short_name(std::string_view name) {
  constexpr std::string_view kPrefix = "aten::";
  if (!name.starts_with(kPrefix)) return {};
  name.remove_prefix(kPrefix.size());
  if (name.ends_with("_")) name.remove_suffix(1);
  return name;
}

/// Overwrites its first argument and does not read it.
bool overwrites_first(std::string_view name) {
  return name == "copy" || name == "fill" || name == "zero";
}

/// Each memory once, with the largest part of it.
void use(std::vector<StorageUse>& uses, const TorchTensor& tensor) {
  if (tensor.bytes() == 0) return;
  for (StorageUse& known : uses) {
    if (known.storage != tensor.storage) continue;
    known.bytes = std::max(known.bytes, Bytes(tensor.bytes()));
    return;
  }
  uses.push_back({tensor.storage, Bytes(tensor.bytes())});
}

Bytes all_bytes(const std::vector<StorageUse>& uses) {
  Bytes bytes;
  for (const StorageUse& one : uses) bytes += one.bytes;
  return bytes;
}

/// A kernel that goes over the elements of its first result, rows of its last dimension.
std::optional<Kernel> streaming(KernelClass kind, std::string_view name, const Arguments& results,
                                double flops) {
  if (results.all().empty() || !results.all().front().tensor) return std::nullopt;
  const TorchTensor& result = *results.all().front().tensor;
  if (result.elements < 1) return std::nullopt;
  const std::int64_t last = result.shape.empty() ? 1 : result.shape.back();
  const std::int64_t width = last >= 1 && last <= result.elements ? last : 1;
  Kernel kernel = stream(std::string(name), kind, result.elements / width, width, {0, 0, flops});
  constexpr std::size_t kHeads = 4;  // sequences, heads, queries, keys
  if (kind == KernelClass::kSoftmax && result.shape.size() == kHeads &&
      std::min(result.shape[0], result.shape[1]) > 0) {
    kernel.attention.sequences = result.shape[0];
    kernel.attention.kv_heads = result.shape[1];
  }
  return kernel;
}

/// Operands of [.., m, k] by [.., k, n] as those of a product without or with one batch.
void flatten_batches(kineto::Operands& operands) {
  const auto rank = [&](std::size_t i) -> std::uint8_t& { return operands.ranks[i]; };
  if (rank(0) < 3 || rank(0) != rank(1) || rank(0) > kineto::Operands::kMostSizes) return;
  std::int64_t batch = 1;
  const std::size_t leading = rank(0) - std::size_t{2};
  for (std::size_t d = 0; d < leading; ++d) {
    if (operands.sizes[0][d] != operands.sizes[1][d] || operands.sizes[0][d] < 1 ||
        operands.sizes[0][d] > kLargestTensor / batch)
      return;
    batch *= operands.sizes[0][d];
  }
  for (auto& sizes : {&operands.sizes[0], &operands.sizes[1]})
    *sizes = {batch, (*sizes)[leading], (*sizes)[leading + 1]};
  rank(0) = rank(1) = 3;
}

/// The operator as Kineto would have recorded it.
kineto::Event event_of(std::string_view name, const Arguments& inputs) {
  kineto::Event event;
  event.name = name;
  kineto::Operands& operands = event.operands;
  for (const Argument& one : inputs.all()) {
    event.concrete.emplace_back(one.tensor ? std::string_view() : one.text);
    if (operands.count == kineto::Operands::kMost) continue;
    const std::size_t i = operands.count++;
    operands.types_count = operands.count;
    if (!one.tensor) continue;
    operands.types[i] = scalar_of(one.tensor->type);
    const std::vector<std::int64_t>& shape = one.tensor->shape;
    operands.ranks[i] = static_cast<std::uint8_t>(std::min<std::size_t>(shape.size(), 255));
    std::copy_n(shape.begin(), std::min(shape.size(), kineto::Operands::kMostSizes),
                operands.sizes[i].begin());
  }
  if (name == "aten::matmul" && operands.count >= 2) {
    flatten_batches(operands);
    event.name = "aten::mm";
  }
  constexpr std::size_t kCausal = 5, kCausalOfFlash = 4;
  if (name == "aten::scaled_dot_product_attention" && event.concrete.size() > kCausal) {
    event.name = "aten::_scaled_dot_product_flash_attention";
    event.concrete[kCausalOfFlash] = event.concrete[kCausal];
  }
  return event;
}

std::optional<Kernel> ruled_kernel(std::string_view name, const Arguments& inputs,
                                   const Arguments& results) {
  if (std::optional<Kernel> product = kineto::product_of(event_of(name, inputs))) return product;
  const std::string_view base = short_name(name);
  if (base == "softmax" || base == "_softmax") {
    auto kernel = streaming(KernelClass::kSoftmax, name, results, vector_cost::kSoftmax);
    if (kernel)
      kernel->exponentials = Flops(static_cast<double>(results.all().front().tensor->elements));
    return kernel;
  }
  if (base == "native_layer_norm" || base == "layer_norm")
    return streaming(KernelClass::kNormalization, name, results, vector_cost::kLayerNorm);
  for (const auto& [flops, names] : kElementwiseRules)
    if (std::find(names.begin(), names.end(), base) != names.end())
      return streaming(KernelClass::kElementwise, name, results, flops);
  return std::nullopt;
}

/// What addmm and baddbmm add is not read where its factor beta is 0.
bool adds_nothing(std::string_view name, const Arguments& inputs) {
  constexpr std::size_t kBeta = 3;
  if (name != "aten::addmm" && name != "aten::baddbmm") return false;
  return inputs.all().size() > kBeta &&
         (inputs.all()[kBeta].text == "0" || inputs.all()[kBeta].text == "0.0");
}

}  // namespace

std::string_view operator_of_schema(std::string_view schema) {
  const std::size_t open = schema.find('(');
  if (open == std::string_view::npos || schema.find("::") > open) return {};
  schema = schema.substr(0, open);
  return schema.substr(0, schema.find('.'));
}

std::optional<TorchOperator> torch_operator(std::string_view name, const TensorTexts& inputs,
                                            const TensorTexts& outputs) {
  const Arguments arguments(inputs), results(outputs);
  if (!arguments.has_tensor() && !results.has_tensor()) return std::nullopt;
  TorchOperator op;
  const bool skips_first = overwrites_first(short_name(name)) || adds_nothing(name, arguments);
  for (std::size_t i = skips_first ? 1 : 0; i < arguments.all().size(); ++i)
    if (arguments.all()[i].tensor) use(op.reads, *arguments.all()[i].tensor);
  for (const Argument& one : results.all())
    if (one.tensor) use(op.writes, *one.tensor);
  op.kernel = ruled_kernel(name, arguments, results);
  if (!op.kernel) return op;
  op.kernel->read = all_bytes(op.reads);
  op.kernel->written = all_bytes(op.writes);
  return op;
}

}  // namespace orrery
