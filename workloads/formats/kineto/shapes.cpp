// SPDX-License-Identifier: Apache-2.0
// What operators of PyTorch compute and copies move, by sizes that the trace has recorded.
#include <charconv>
#include <span>
#include <string>

#include "workloads/formats/kineto/names.h"
#include "workloads/layers/parts/attention_kernels.h"
#include "workloads/ops/kernels.h"

namespace orrery::kineto {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 40U;

std::span<const std::int64_t> sizes(const Operands& operands, std::size_t operand) {
  const std::size_t rank = operand < operands.count ? operands.ranks[operand] : 0;
  if (rank == 0 || rank > Operands::kMostSizes) return {};
  const std::span<const std::int64_t> all(operands.sizes[operand].data(), rank);
  for (const std::int64_t size : all)
    if (size < 1 || size > kMostSize) return {};
  return all;
}

std::optional<Precision> precision_of(const Operands& operands, std::size_t operand) {
  if (operand >= operands.types_count) return std::nullopt;
  static constexpr std::pair<Scalar, Precision> kPrecisions[] = {
      {Scalar::kFloat, Precision::kFp32},    {Scalar::kHalf, Precision::kFp16},
      {Scalar::kBfloat16, Precision::kBf16}, {Scalar::kFloat8, Precision::kFp8},
      {Scalar::kInt8, Precision::kInt8},
  };
  for (const auto& [scalar, precision] : kPrecisions)
    if (operands.types[operand] == scalar) return precision;
  return std::nullopt;  // double, say, which no model here prices
}

/// [.., m, k] by [.., k, n]; `turned`: the second is [n, k].
std::optional<Kernel> product(const Event& event, std::size_t first, bool turned = false) {
  const auto a = sizes(event.operands, first);
  const auto b = sizes(event.operands, first + 1);
  const auto precision = precision_of(event.operands, first);
  if (a.size() < 2 || b.size() < 2 || !precision) return std::nullopt;
  GemmShape shape{1, b[b.size() - (turned ? 2 : 1)], a.back(), 1};
  if (b[b.size() - (turned ? 1 : 2)] != shape.k) return std::nullopt;
  // Rows of a batch that has one second operand are rows of one product.
  double rows = 1;
  for (const std::int64_t size : a.first(a.size() - 1)) rows *= static_cast<double>(size);
  if (rows > static_cast<double>(kMostSize)) return std::nullopt;
  shape.m = static_cast<std::int64_t>(rows);
  if (b.size() > 2) {
    if (a.size() != 3 || b.size() != 3 || a[0] != b[0]) return std::nullopt;
    shape.batch = a[0];
    shape.m = a[1];
  }
  return gemm("product", *precision, shape);
}

double count(std::span<const std::int64_t> sizes) {
  double product = 1;
  for (const std::int64_t size : sizes) product *= static_cast<double>(size);
  return product;
}

/// "[1, 1]": its first number; -1: there is none.
std::int64_t first_number(const Event& event, std::size_t input) {
  if (input >= event.concrete.size()) return -1;
  const std::string& text = event.concrete[input];
  const std::size_t at = text.find_first_of("0123456789");
  std::int64_t value = -1;
  if (at != std::string::npos) std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

/// @param results positions of a result times samples
std::optional<Kernel> convolution(const Event& event, std::span<const std::int64_t> input,
                                  std::span<const std::int64_t> weight, double positions) {
  const auto precision = precision_of(event.operands, 0);
  if (!precision || positions < 1 || positions > static_cast<double>(kMostSize))
    return std::nullopt;
  const double element = element_bytes(*precision);
  Kernel kernel;
  kernel.name = "convolution";
  kernel.kind = KernelClass::kConvolution;
  kernel.precision = *precision;
  kernel.m = static_cast<std::int64_t>(positions);
  kernel.n = weight[0];
  const double depth = count(weight.subspan(1));
  if (depth > static_cast<double>(kMostSize)) return std::nullopt;
  kernel.k = static_cast<std::int64_t>(depth);
  kernel.matrix_flops = Flops(2 * positions * static_cast<double>(kernel.n) * depth);
  kernel.read = Bytes(element * (count(input) + count(weight)));
  kernel.written = Bytes(element * positions * static_cast<double>(kernel.n));
  return kernel;
}

/// convolution(input, weight, bias, stride, padding, dilation, ..) or, of cuDNN and MIOpen,
/// (input, weight, padding, stride, dilation, ..).
std::optional<Kernel> forward_convolution(const Event& event, std::size_t padding_at,
                                          std::size_t stride_at, std::size_t dilation_at) {
  const auto input = sizes(event.operands, 0);
  const auto weight = sizes(event.operands, 1);
  if (input.size() < 3 || weight.size() != input.size()) return std::nullopt;
  const std::int64_t padding = first_number(event, padding_at);
  const std::int64_t stride = first_number(event, stride_at);
  const std::int64_t dilation = first_number(event, dilation_at);
  if (padding < 0 || padding > kMostSize || stride < 1 || dilation < 1 || dilation > 1024)
    return std::nullopt;
  auto positions = static_cast<double>(input[0]);
  for (std::size_t i = 2; i < input.size(); ++i) {
    const double free = static_cast<double>(input[i]) + 2 * static_cast<double>(padding) -
                        static_cast<double>(dilation) * static_cast<double>(weight[i] - 1) - 1;
    if (free < 0) return std::nullopt;
    const std::int64_t windows = static_cast<std::int64_t>(free) / stride + 1;
    positions *= static_cast<double>(windows);
  }
  return convolution(event, input, weight, positions);
}

/// convolution_backward(gradient, input, weight, ..): either product has the forward one's size.
std::optional<Kernel> backward_convolution(const Event& event) {
  const auto gradient = sizes(event.operands, 0);
  const auto input = sizes(event.operands, 1);
  const auto weight = sizes(event.operands, 2);
  if (gradient.size() < 3 || weight.size() != gradient.size() || input.size() != gradient.size())
    return std::nullopt;
  return convolution(event, input, weight, count(gradient) / static_cast<double>(gradient[1]));
}

/// scaled_dot_product_*(query, key, value, ..), each [sequences, heads, tokens, columns].
/// @param causal_at the argument that says whether tokens see later ones
std::optional<Kernel> attention(const Event& event, std::size_t causal_at) {
  const auto query = sizes(event.operands, 0), key = sizes(event.operands, 1),
             value = sizes(event.operands, 2);
  const auto precision = precision_of(event.operands, 0);
  if (query.size() != 4 || key.size() != 4 || value.size() != 4 || !precision ||
      causal_at >= event.concrete.size() || query[0] != key[0] || query[1] % key[1] != 0)
    return std::nullopt;
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 24U;
  for (const auto operand : {query, key, value})
    for (const std::int64_t size : operand)
      if (size > kMostTokens) return std::nullopt;
  const bool is_causal = event.concrete[causal_at] == "True";
  if (!is_causal && event.concrete[causal_at] != "False") return std::nullopt;
  // PyTorch's mask is that of a square: the first token sees one key.
  if (is_causal && query[2] != key[2]) return std::nullopt;
  AttentionCore core;
  core.precision = *precision;
  core.sequences = query[0];
  core.heads = query[1];
  core.kv_heads = key[1];
  core.query = query[2];
  core.context = key[2];
  core.causal = is_causal;
  core.qk_dim = query[3];
  core.v_dim = value[3];
  core.new_bytes = core.cache_bytes = element_bytes(*precision);
  return flash_attention("attention", core);
}

}  // namespace

std::optional<Kernel> product_of(const Event& event) {
  const std::string& name = event.name;
  if (event.operands.count < 2 || !name.starts_with("aten::")) return std::nullopt;
  if (name == "aten::mm" || name == "aten::bmm" || name == "aten::_scaled_mm" ||
      name == "aten::_int_mm")
    return product(event, 0);
  if (name == "aten::addmm" || name == "aten::baddbmm" || name == "aten::_addmm_activation")
    return product(event, 1);
  if (name == "aten::linear") return product(event, 0, true);
  if (name == "aten::convolution" || name == "aten::_convolution")
    return forward_convolution(event, 4, 3, 5);
  if (name == "aten::cudnn_convolution" || name == "aten::miopen_convolution")
    return forward_convolution(event, 2, 3, 4);
  if (name == "aten::convolution_backward") return backward_convolution(event);
  if (name == "aten::_scaled_dot_product_flash_attention") return attention(event, 4);
  if (name == "aten::_scaled_dot_product_efficient_attention" ||
      name == "aten::_scaled_dot_product_cudnn_attention")
    return attention(event, 6);
  return std::nullopt;
}

Kernel copy_of(std::string_view name, std::int64_t bytes) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  const Bytes all(static_cast<double>(bytes));
  Kernel kernel;
  kernel.name = "copy";
  kernel.kind = KernelClass::kCopy;
  const bool from_host = has("HtoD") || has("HostToDevice");
  const bool to_host = has("DtoH") || has("DeviceToHost");
  if (!from_host && !has("Memset")) kernel.read = all;
  if (!to_host) kernel.written = all;
  if (from_host || to_host) kernel.host = all;
  return kernel;
}

}  // namespace orrery::kineto
