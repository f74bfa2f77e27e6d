// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/onnx/model_reader.h"

#include <utility>

#include "workloads/formats/base/wire_reader.h"
#include "workloads/formats/onnx/tensor_reader.h"

namespace orrery::onnx {
namespace {

using Field = WireReader::Field;
constexpr int kDeepest = 32;  // subgraphs within subgraphs

/// Field numbers are those of onnx.proto.
class ModelReader {
 public:
  explicit ModelReader(ByteSource& source) : source_(source), wire_(source) {}

  Model model() {
    Model model;
    Field field;
    while (wire_.next(WireReader::kFile, field)) {
      switch (field.number) {
        case 1:
          model.ir_version = static_cast<std::int64_t>(number(field));
          break;
        case 2:
          model.producer = text(field);
          break;
        case 7:
          read_graph(message(field), model.graph, 0);
          break;
        case 8:
          read_opset(message(field), model);
          break;
        case 25:
          read_function(message(field), model.functions.emplace_back());
          break;
        default:
          wire_.skip(field);
      }
    }
    return model;
  }

 private:
  static constexpr std::size_t kMostText = std::size_t{1} << 16U;

  std::string text(const Field& field) { return wire_.text(field, kMostText); }
  std::uint64_t number(const Field& field) {
    if (field.wire != WireReader::Wire::kVarint)
      wire_.refuse("field " + std::to_string(field.number) + " should be a number");
    return field.value;
  }
  /// The offset where a message that is a field ends.
  std::uint64_t message(const Field& field) {
    if (field.wire != WireReader::Wire::kBytes)
      wire_.refuse("field " + std::to_string(field.number) + " should be a message");
    return field.end;
  }

  void read_opset(std::uint64_t end, Model& model) {
    std::string domain;
    std::int64_t version = 0;
    Field field;
    while (wire_.next(end, field)) {
      if (field.number == 1) {
        domain = text(field);
      } else if (field.number == 2) {
        version = static_cast<std::int64_t>(number(field));
      } else {
        wire_.skip(field);
      }
    }
    model.opsets[domain == "ai.onnx" ? "" : domain] = version;
  }

  void read_graph(std::uint64_t end, Graph& graph, int depth) {
    if (depth > kDeepest) wire_.refuse("subgraphs are nested more than 32 deep");
    Field field;
    while (wire_.next(end, field)) {
      switch (field.number) {
        case 1:
          read_node(message(field), graph.nodes.emplace_back(), depth);
          break;
        case 2:
          graph.name = text(field);
          break;
        case 5:
          read_tensor(wire_, message(field), graph.weights.emplace_back());
          break;
        case 11:
          read_value_info(message(field), graph.inputs.emplace_back());
          break;
        case 12:
          read_value_info(message(field), graph.outputs.emplace_back());
          break;
        case 13:
          read_value_info(message(field), graph.between.emplace_back());
          break;
        case 15:
          read_sparse(message(field), graph.weights.emplace_back());
          break;
        default:
          wire_.skip(field);
      }
    }
  }

  void read_node(std::uint64_t end, Node& node, int depth) {
    node.offset = source_.offset();
    Field field;
    while (wire_.next(end, field)) {
      switch (field.number) {
        case 1:
          node.inputs.push_back(text(field));
          break;
        case 2:
          node.outputs.push_back(text(field));
          break;
        case 3:
          node.name = text(field);
          break;
        case 4:
          node.op = text(field);
          break;
        case 5:
          read_attribute(message(field), node.attributes, depth);
          break;
        case 7:
          node.domain = text(field);
          if (node.domain == "ai.onnx") node.domain.clear();
          break;
        default:
          wire_.skip(field);
      }
    }
  }

  void read_attribute(std::uint64_t end, Attributes& attributes, int depth) {
    std::string name;
    Attribute attribute;
    Field field;
    while (wire_.next(end, field)) {
      switch (field.number) {
        case 1:
          name = text(field);
          break;
        case 2:
          attribute.real = float_of(field.value);
          break;
        case 3:
          attribute.integer = static_cast<std::int64_t>(number(field));
          break;
        case 4:
          if (message(field) - source_.offset() <= kMostText) {
            attribute.text = text(field);
          } else {
            wire_.skip(field);
          }
          break;
        case 5: {
          auto tensor = std::make_shared<TensorData>();
          read_tensor(wire_, message(field), *tensor);
          attribute.tensor = std::move(tensor);
          break;
        }
        case 6: {
          auto graph = std::make_shared<Graph>();
          read_graph(message(field), *graph, depth + 1);
          attribute.graph = std::move(graph);
          break;
        }
        case 7:
          read_reals(wire_, field, attribute.reals);
          break;
        case 8:
          read_integers(wire_, field, attribute.integers);
          break;
        case 21:
          attribute.refers = text(field);
          break;
        default:
          wire_.skip(field);
      }
    }
    attributes[name] = std::move(attribute);
  }

  void read_value_info(std::uint64_t end, ValueInfo& value) {
    Field field;
    while (wire_.next(end, field)) {
      if (field.number == 1) {
        value.name = text(field);
      } else if (field.number == 2) {
        read_type(message(field), value);
      } else {
        wire_.skip(field);
      }
    }
  }

  /// Sequences, maps and optional values have no shape.
  void read_type(std::uint64_t end, ValueInfo& value) {
    Field field;
    while (wire_.next(end, field)) {
      if (field.number != 1) {
        wire_.skip(field);
        continue;
      }
      const std::uint64_t tensor_end = message(field);
      Field part;
      while (wire_.next(tensor_end, part)) {
        if (part.number == 1) {
          value.type = static_cast<DataType>(number(part));
        } else if (part.number == 2) {
          value.shaped = true;
          read_shape(message(part), value);
        } else {
          wire_.skip(part);
        }
      }
    }
  }

  void read_shape(std::uint64_t end, ValueInfo& value) {
    Field field;
    while (wire_.next(end, field)) {
      if (field.number != 1) {
        wire_.skip(field);
        continue;
      }
      Dimension dimension;
      const std::uint64_t dimension_end = message(field);
      Field part;
      while (wire_.next(dimension_end, part)) {
        if (part.number == 1) {
          dimension.size = static_cast<std::int64_t>(number(part));
        } else if (part.number == 2) {
          dimension.name = text(part);
        } else {
          wire_.skip(part);
        }
      }
      value.dims.push_back(std::move(dimension));
    }
  }

  /// Its values are a tensor of their own; it counts with the values that are there.
  void read_sparse(std::uint64_t end, TensorData& tensor) {
    Field field;
    while (wire_.next(end, field)) {
      if (field.number == 1) {
        TensorData values;
        read_tensor(wire_, message(field), values);
        tensor.name = values.name;
        tensor.type = values.type;
      } else if (field.number == 3) {
        read_integers(wire_, field, tensor.dims);
      } else {
        wire_.skip(field);
      }
    }
  }

  void read_function(std::uint64_t end, Function& function) {
    Field field;
    while (wire_.next(end, field)) {
      switch (field.number) {
        case 1:
          function.name = text(field);
          break;
        case 4:
          function.inputs.push_back(text(field));
          break;
        case 5:
          function.outputs.push_back(text(field));
          break;
        case 7:
          read_node(message(field), function.nodes.emplace_back(), 0);
          break;
        case 10:
          function.domain = text(field);
          break;
        case 11:
          read_attribute(message(field), function.defaults, 0);
          break;
        default:
          wire_.skip(field);
      }
    }
  }

  ByteSource& source_;
  WireReader wire_;
};

}  // namespace

Model read_model(ByteSource& source) { return ModelReader(source).model(); }

}  // namespace orrery::onnx
