// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/onnx/model.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <concepts>
#include <memory>
#include <string_view>
#include <utility>

#include "workloads/formats/base/wire_reader.h"
#include "workloads/formats/onnx/lowered.h"

namespace orrery::onnx {
namespace {

using Field = WireReader::Field;
using Wire = WireReader::Wire;

constexpr int kDeepest = 32;                                 // subgraphs within subgraphs
constexpr std::size_t kMostText = std::size_t{1} << 16U;     // bytes
constexpr std::size_t kMostNumbers = std::size_t{1} << 16U;  // of attributes and shapes

double float_of(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

/// IEEE 754 half precision.
double half(std::uint64_t bits) {
  const auto exponent = static_cast<int>(bits >> 10U & 0x1fU);
  const auto fraction = static_cast<double>(bits & 0x3ffU);
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  constexpr int kBias = 15, kFractionBits = 10;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - kBias - kFractionBits);
  return sign * std::ldexp(1024 + fraction, exponent - kBias - kFractionBits);
}

double number_of(DataType type, std::uint64_t bits) {
  switch (type) {
    case DataType::kFloat:
      return float_of(bits);
    case DataType::kDouble:
      return std::bit_cast<double>(bits);
    case DataType::kFloat16:
      return half(bits);
    case DataType::kBfloat16:
      return float_of(bits << 16U);
    case DataType::kInt8:
      return static_cast<std::int8_t>(bits);
    case DataType::kInt16:
      return static_cast<std::int16_t>(bits);
    case DataType::kInt32:
      return static_cast<std::int32_t>(bits);
    case DataType::kInt64:
      return static_cast<double>(static_cast<std::int64_t>(bits));
    default:
      return static_cast<double>(bits);
  }
}

/// Values of raw_data; none of types that take no whole bytes, or are neither integers nor plain
/// floating-point numbers.
std::vector<double> unpacked(DataType type, std::string_view raw) {
  constexpr unsigned kBits = 8;
  std::vector<double> values;
  if (bits_of(type) < static_cast<int>(kBits) || !(is_integer(type) || is_wide_float(type)))
    return values;
  const std::size_t size = static_cast<unsigned>(bits_of(type)) / kBits;
  values.reserve(raw.size() / size);
  for (std::size_t at = 0; at + size <= raw.size(); at += size) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < size; ++i)
      bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(raw[at + i])) << (kBits * i);
    values.push_back(number_of(type, bits));
  }
  return values;
}

/// A field of a message: its number in onnx.proto, and where its value goes.
template <class Place>
struct To {
  std::uint32_t number;
  Place&& place;
};
template <class Place>
To(std::uint32_t, Place&&) -> To<Place>;

class ModelReader {
 public:
  explicit ModelReader(ByteSource& source) : source_(source), wire_(source) {}

  Model model() {
    Model model;
    fields(WireReader::kFile, To{1, model.ir_version}, To{7, model.graph}, To{8, model.opsets},
           To{25, model.functions});
    return model;
  }

 private:
  /// Reads the fields of a message that ends at an offset; those that are not named are skipped.
  template <class... Places>
  void fields(std::uint64_t end, const To<Places>&... all) {
    Field field;
    while (wire_.next(end, field)) {
      bool taken = false;
      const auto offer = [&](const auto& to) {
        if (to.number != field.number) return;
        take(field, to.place);
        taken = true;
      };
      (offer(all), ...);
      if (!taken) wire_.skip(field);
    }
  }

  std::uint64_t number(const Field& field) {
    if (field.wire != Wire::kVarint)
      wire_.refuse(fmt::format("field {} should be a number", field.number));
    return field.value;
  }
  /// The offset where a message that is a field ends.
  std::uint64_t message(const Field& field) {
    if (field.wire != Wire::kBytes)
      wire_.refuse(fmt::format("field {} should be a message", field.number));
    return field.end;
  }

  template <std::invocable<const Field&> Read>
  void take(const Field& field, const Read& read) {
    read(field);
  }
  void take(const Field& field, std::string& text) { text = wire_.text(field, kMostText); }
  void take(const Field& field, double& real) { real = float_of(field.value); }
  void take(const Field& field, DataType& type) { type = static_cast<DataType>(number(field)); }
  void take(const Field& field, std::int64_t& integer) {
    integer = static_cast<std::int64_t>(number(field));
  }
  /// The bits of numbers that stand one by one, or packed.
  /// @param bytes of each; 0: varints
  template <class Visit>
  void each_number(const Field& field, std::size_t bytes, const Visit& visit) {
    if (field.wire != Wire::kBytes) return visit(field.value);
    while (wire_.before(field.end))
      visit(bytes == 0 ? wire_.varint(field.end) : wire_.fixed(bytes, field.end));
  }
  template <class Number>
  void add(std::vector<Number>& list, Number number) {
    if (list.size() == kMostNumbers) wire_.refuse("a list has more than 65,536 numbers");
    list.push_back(number);
  }
  void take(const Field& field, std::vector<std::int64_t>& integers) {
    each_number(field, 0, [&](auto bits) { add(integers, static_cast<std::int64_t>(bits)); });
  }
  void take(const Field& field, std::vector<double>& reals) {
    each_number(field, 4, [&](auto bits) { add(reals, float_of(bits)); });
  }

  template <class Part>
  void take(const Field& field, std::vector<Part>& parts) {
    take(field, parts.emplace_back());
  }
  template <class Part>
  void take(const Field& field, std::shared_ptr<const Part>& part) {
    const auto read = std::make_shared<Part>();
    take(field, *read);
    part = read;
  }

  void take(const Field& field, std::map<std::string, std::int64_t>& opsets) {
    std::string domain;
    std::int64_t version = 0;
    fields(message(field), To{1, domain}, To{2, version});
    opsets[domain == "ai.onnx" ? "" : domain] = version;
  }

  void take(const Field& field, Graph& graph) {
    if (depth_++ > kDeepest) wire_.refuse("subgraphs are nested more than 32 deep");
    const auto sparse = [&](const Field& one) { take_sparse(one, graph.weights.emplace_back()); };
    fields(message(field), To{1, graph.nodes}, To{5, graph.weights}, To{11, graph.inputs},
           To{12, graph.outputs}, To{13, graph.between}, To{15, sparse});
    --depth_;
  }

  void take(const Field& field, Node& node) {
    node.offset = source_.offset();
    fields(message(field), To{1, node.inputs}, To{2, node.outputs}, To{3, node.name},
           To{4, node.op}, To{5, node.attributes}, To{7, node.domain});
    if (node.domain == "ai.onnx") node.domain.clear();
  }

  void take(const Field& field, Attributes& attributes) {
    std::string name;
    Attribute one;
    const auto short_text = [&](const Field& text) {
      if (message(text) - source_.offset() > kMostText) return wire_.skip(text);
      take(text, one.text);
    };
    fields(message(field), To{1, name}, To{2, one.real}, To{3, one.integer}, To{4, short_text},
           To{5, one.tensor}, To{6, one.graph}, To{7, one.reals}, To{8, one.integers},
           To{21, one.refers});
    attributes[name] = std::move(one);
  }

  /// Sequences, maps and optional values have no shape.
  void take(const Field& field, ValueInfo& value) {
    const auto shape = [&](const Field& of) {
      value.shaped = true;
      fields(message(of), To{1, value.dims});
    };
    const auto tensor = [&](const Field& of) {
      fields(message(of), To{1, value.type}, To{2, shape});
    };
    const auto type = [&](const Field& of) { fields(message(of), To{1, tensor}); };
    fields(message(field), To{1, value.name}, To{2, type});
  }
  void take(const Field& field, Dimension& dimension) {
    fields(message(field), To{1, dimension.size}, To{2, dimension.name});
  }

  void take(const Field& field, Function& function) {
    fields(message(field), To{1, function.name}, To{4, function.inputs}, To{5, function.outputs},
           To{7, function.nodes}, To{10, function.domain}, To{11, function.defaults});
  }

  /// Name, type and shape of a tensor, and its values where there are few.
  void take(const Field& field, TensorData& tensor) {
    std::string raw;
    const auto values = [&](const Field& some) { take_values(some, tensor); };
    const auto bytes = [&](const Field& all) {
      if (all.wire != Wire::kBytes) wire_.refuse("a tensor's values should be bytes");
      if (!is_small(all)) return wire_.skip(all);
      take(all, raw);
    };
    fields(message(field), To{1, tensor.dims}, To{2, tensor.type}, To{4, values}, To{5, values},
           To{7, values}, To{8, tensor.name}, To{9, bytes}, To{10, values}, To{11, values});
    if (!raw.empty()) tensor.values = unpacked(tensor.type, raw);
    if (tensor.values.size() > kMostValues || !mistake_of(tensor.dims).empty() ||
        static_cast<std::int64_t>(tensor.values.size()) != elements_of(tensor.dims))
      tensor.values.clear();
  }

  static bool is_small(const Field& field) { return field.value <= kMostValues * sizeof(double); }

  /// Values that stand one by one, or packed. Types of 16 bits have their bits in int32_data.
  void take_values(const Field& field, TensorData& tensor) {
    if (tensor.values.size() > kMostValues || (field.wire == Wire::kBytes && !is_small(field))) {
      tensor.values.assign(kMostValues + 1, 0);  // too many; dropped at the end
      return wire_.skip(field);
    }
    constexpr std::uint32_t kFloats = 4, kInt32s = 5, kDoubles = 10;
    const bool halves = tensor.type == DataType::kFloat16 || tensor.type == DataType::kBfloat16;
    const DataType stored = field.number == kFloats             ? DataType::kFloat
                            : field.number == kDoubles          ? DataType::kDouble
                            : field.number == kInt32s && halves ? tensor.type
                                                                : DataType::kInt64;
    const std::size_t bytes = field.number == kFloats ? 4 : field.number == kDoubles ? 8 : 0;
    each_number(field, bytes, [&](auto bits) { tensor.values.push_back(number_of(stored, bits)); });
  }

  /// Its values are a tensor of their own; it counts with the values that are there.
  void take_sparse(const Field& field, TensorData& tensor) {
    TensorData values;
    fields(message(field), To{1, values}, To{3, tensor.dims});
    tensor.name = values.name;
    tensor.type = values.type;
  }

  ByteSource& source_;
  WireReader wire_;
  int depth_ = 0;  ///< graphs around what is read
};

}  // namespace

Model read_model(ByteSource& source) { return ModelReader(source).model(); }

}  // namespace orrery::onnx
