// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/config/byte_source.h"

namespace orrery::onnx {

/// Types of elements, by their numbers in TensorProto.DataType
/// (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto): those that have a name here, and
/// others (see bits_of()).
enum class DataType : std::uint8_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kBfloat16 = 16,
};

using Dims = std::vector<std::int64_t>;

/// A tensor that stands in the file. Its values are kept where they are few: shapes, axes, scales.
struct TensorData {
  std::string name;
  DataType type = DataType::kUndefined;
  Dims dims;
  std::vector<double> values;  ///< all of them, or none
};

/// How many values a tensor may have to be kept.
inline constexpr std::size_t kMostValues = 1024;

struct Graph;

struct Attribute {
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::string refers;  ///< attribute of the function whose body it stands in; empty: none
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  std::shared_ptr<const TensorData> tensor;
  std::shared_ptr<const Graph> graph;
};
using Attributes = std::map<std::string, Attribute>;

struct Node {
  std::string op;      ///< type of the operator: "Conv"
  std::string domain;  ///< "com.microsoft"; empty: ONNX's own
  std::string name;
  std::vector<std::string> inputs, outputs;  ///< empty: left out
  Attributes attributes;
  std::uint64_t offset = 0;  ///< where it begins in the file
};

/// One dimension of a shape: its size, or the name that stands for it.
struct Dimension {
  std::int64_t size = -1;  ///< -1: not said
  std::string name;
};

struct ValueInfo {
  std::string name;
  DataType type = DataType::kUndefined;
  bool shaped = false;  ///< the file says how many dimensions it has
  std::vector<Dimension> dims;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<TensorData> weights;  ///< tensors that stand in the file: initializers
  std::vector<ValueInfo> inputs, outputs, between;
};

/// An operator that the file describes by others.
struct Function {
  std::string domain, name;
  std::vector<std::string> inputs, outputs;
  Attributes defaults;
  std::vector<Node> nodes;
};

struct Model {
  std::int64_t ir_version = 0;
  std::map<std::string, std::int64_t> opsets;  ///< version by domain
  Graph graph;
  std::vector<Function> functions;
};

/// Reads a ModelProto while it streams by: what weights hold is passed over, so that memory grows
/// with the operators alone. Fields that are unknown are skipped.
/// @throws config::ConfigError with the file and the offset
Model read_model(ByteSource& source);

}  // namespace orrery::onnx
