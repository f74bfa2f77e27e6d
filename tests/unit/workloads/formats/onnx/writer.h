// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

namespace orrery::onnx {

/// Messages of protocol buffers, put together by hand.
class Message {
 public:
  Message& varint(std::uint32_t field, std::uint64_t value) {
    put(field << 3U);
    put(value);
    return *this;
  }
  Message& bytes(std::uint32_t field, const std::string& text) {
    put(field << 3U | 2U);
    put(text.size());
    text_ += text;
    return *this;
  }
  Message& fixed32(std::uint32_t field, float value);
  const std::string& text() const { return text_; }

 private:
  void put(std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7U) text_ += static_cast<char>((value & 0x7fU) | 0x80U);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

using Size =
    std::variant<int, std::string>;  ///< size of a dimension, or the name that stands for it
using Sizes = std::vector<Size>;
using Names = std::vector<std::string>;
using Integers = std::vector<std::int64_t>;

/// An attribute, written.
struct Attr {
  std::string text;
};
inline constexpr int kFloat = 1, kInt8 = 3, kInt64 = 7, kBool = 9, kHalf = 10;

inline Message& Message::fixed32(std::uint32_t field, float value) {
  put(field << 3U | 5U);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  for (unsigned shift = 0; shift < 32; shift += 8)
    text_ += static_cast<char>(bits >> shift & 0xffU);
  return *this;
}

inline Attr integer(const std::string& name, std::int64_t value) {
  return {
      Message().bytes(1, name).varint(3, static_cast<std::uint64_t>(value)).varint(20, 2).text()};
}
inline Attr integers(const std::string& name, const Integers& values) {
  Message attribute;
  attribute.bytes(1, name);
  for (const std::int64_t value : values) attribute.varint(8, static_cast<std::uint64_t>(value));
  return {attribute.varint(20, 7).text()};
}
inline Attr real(const std::string& name, float value) {
  return {Message().bytes(1, name).fixed32(2, value).varint(20, 1).text()};
}
inline Attr word(const std::string& name, const std::string& value) {
  return {Message().bytes(1, name).bytes(4, value).varint(20, 3).text()};
}
inline Attr tensor(const std::string& name, const std::string& tensor_proto) {
  return {Message().bytes(1, name).bytes(5, tensor_proto).varint(20, 4).text()};
}
inline Attr graph(const std::string& name, const std::string& graph_proto) {
  return {Message().bytes(1, name).bytes(6, graph_proto).varint(20, 5).text()};
}
/// An attribute of the function that the node stands in.
inline Attr reference(const std::string& name, const std::string& outer) {
  return {Message().bytes(1, name).bytes(21, outer).text()};
}

/// A TensorProto with 64-bit integers.
inline std::string integer_tensor(const std::string& name, const Integers& dims,
                                  const Integers& values) {
  Message tensor;
  for (const std::int64_t size : dims) tensor.varint(1, static_cast<std::uint64_t>(size));
  tensor.varint(2, kInt64).bytes(8, name);
  std::string raw;
  for (const std::int64_t value : values)
    for (unsigned shift = 0; shift < 64; shift += 8)
      raw += static_cast<char>(static_cast<std::uint64_t>(value) >> shift & 0xffU);
  return tensor.bytes(9, raw).text();
}

/// A NodeProto.
inline std::string node(const std::string& op, const Names& inputs, const Names& outputs,
                        const std::vector<Attr>& attributes = {}, const std::string& domain = {}) {
  Message node;
  for (const std::string& input : inputs) node.bytes(1, input);
  for (const std::string& output : outputs) node.bytes(2, output);
  node.bytes(4, op);
  for (const Attr& attribute : attributes) node.bytes(5, attribute.text);
  if (!domain.empty()) node.bytes(7, domain);
  return node.text();
}

/// A ValueInfoProto.
inline std::string value_info(const std::string& name, const Sizes& sizes, int type,
                              bool shaped = true) {
  Message shape;
  for (const Size& size : sizes) {
    Message dimension;
    if (const int* number = std::get_if<int>(&size)) {
      dimension.varint(1, static_cast<std::uint64_t>(*number));
    } else {
      dimension.bytes(2, std::get<std::string>(size));
    }
    shape.bytes(1, dimension.text());
  }
  Message tensor;
  tensor.varint(1, static_cast<std::uint64_t>(type));
  if (shaped) tensor.bytes(2, shape.text());
  return Message().bytes(1, name).bytes(2, Message().bytes(1, tensor.text()).text()).text();
}

/// Writes a GraphProto: weights have shapes and no values, which lie in another file.
class GraphWriter {
 public:
  std::string input(const std::string& name, const Sizes& sizes, int type = kFloat) {
    graph_.bytes(11, value_info(name, sizes, type));
    return name;
  }
  std::string weight(const std::string& name, const Integers& dims, int type = kFloat) {
    Message tensor;
    for (const std::int64_t size : dims) tensor.varint(1, static_cast<std::uint64_t>(size));
    tensor.varint(2, static_cast<std::uint64_t>(type)).bytes(8, name);
    tensor.bytes(13, Message().bytes(1, "location").bytes(2, "weights.bin").text()).varint(14, 1);
    graph_.bytes(5, tensor.text());
    return name;
  }
  /// A small constant of one dimension.
  std::string constant(const Integers& values) {
    const std::string name = "constant" + std::to_string(count_++);
    graph_.bytes(5, integer_tensor(name, {static_cast<std::int64_t>(values.size())}, values));
    return name;
  }
  std::string scalar(std::int64_t value) {
    const std::string name = "constant" + std::to_string(count_++);
    graph_.bytes(5, integer_tensor(name, {}, {value}));
    return name;
  }
  /// A node; the name of its first result.
  std::string add(const std::string& op, const Names& inputs,
                  const std::vector<Attr>& attributes = {}, int outputs = 1,
                  const std::string& domain = {}) {
    last_ = op + std::to_string(count_++);
    Names names;
    for (int i = 0; i < outputs; ++i) names.push_back(result(i));
    graph_.bytes(1, node(op, inputs, names, attributes, domain));
    return last_;
  }
  /// @param sizes empty: the file does not tell them
  void output(const std::string& name, const Sizes& sizes = {}, int type = kFloat) {
    graph_.bytes(12, value_info(name, sizes, type, !sizes.empty()));
  }
  /// The name of result `i` of the node that was added last.
  std::string result(int i) const { return i == 0 ? last_ : last_ + "." + std::to_string(i); }

  const std::string& text() const { return graph_.text(); }

 private:
  Message graph_;
  int count_ = 0;
  std::string last_;
};

/// A FunctionProto.
inline std::string function(const std::string& domain, const std::string& name, const Names& inputs,
                            const Names& outputs, const std::vector<std::string>& nodes,
                            const Names& attributes = {}) {
  Message function;
  function.bytes(1, name);
  for (const std::string& input : inputs) function.bytes(4, input);
  for (const std::string& output : outputs) function.bytes(5, output);
  for (const std::string& attribute : attributes) function.bytes(6, attribute);
  for (const std::string& inner : nodes) function.bytes(7, inner);
  return function.bytes(10, domain).text();
}

/// A ModelProto.
inline std::string model(const GraphWriter& graph, std::int64_t opset = 17,
                         const std::vector<std::string>& functions = {}) {
  Message model;
  model.varint(1, 8).bytes(2, "orrery tests").bytes(7, graph.text());
  model.bytes(8, Message().bytes(1, "").varint(2, static_cast<std::uint64_t>(opset)).text());
  model.bytes(8, Message().bytes(1, "com.microsoft").varint(2, 1).text());
  for (const std::string& one : functions) model.bytes(25, one);
  return model.text();
}

}  // namespace orrery::onnx
