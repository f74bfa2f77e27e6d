// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/onnx/lowering.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sim/config/diagnostics.h"
#include "sim/units/comma_separated.h"
#include "workloads/formats/onnx/interpreter.h"

namespace orrery::onnx {
namespace {

bool counts_as_weight(const TensorData& tensor) {
  constexpr DataType kOthers[] = {DataType::kInt64, DataType::kInt32, DataType::kBool,
                                  DataType::kString, DataType::kUndefined};
  return std::find(std::begin(kOthers), std::end(kOthers), tensor.type) == std::end(kOthers);
}

/// Weights, without the running statistics of batch norms.
double parameters_of(const Graph& graph) {
  std::set<std::string> statistics;
  for (const Node& node : graph.nodes) {
    if (node.op != "BatchNormalization") continue;
    for (std::size_t i = 3; i < node.inputs.size() && i < 5; ++i) statistics.insert(node.inputs[i]);
  }
  double sum = 0;
  for (const TensorData& tensor : graph.weights)
    if (counts_as_weight(tensor) && statistics.count(tensor.name) == 0)
      sum += static_cast<double>(elements_of(tensor.dims));
  return sum;
}

/// Sizes of symbolic dimensions, and who wants one that has not been given.
class Symbols {
 public:
  explicit Symbols(const LoweringOptions& options) : options_(options) {}

  Dims sizes(const ValueInfo& value) {
    Dims dims;
    for (std::size_t i = 0; i < value.dims.size(); ++i) {
      const Dimension& dimension = value.dims[i];
      if (dimension.size > 0 || (dimension.size == 0 && dimension.name.empty())) {
        dims.push_back(dimension.size);
        continue;
      }
      const std::string name =
          !dimension.name.empty() ? dimension.name : fmt::format("{}_{}", value.name, i);
      const auto given = options_.dimensions.find(name);
      known_.insert(name);
      if (given != options_.dimensions.end()) {
        dims.push_back(given->second);
      } else {
        wanted_[name].insert(value.name);
        dims.push_back(1);
      }
    }
    return dims;
  }

  /// @throws config::ConfigError for dimensions that have no size, and for sizes of none
  void check() const {
    std::string text;
    for (const auto& [name, inputs] : wanted_)
      text += fmt::format("\n  '{0}' of {1}: --set graph.dimensions.{0}=1", name,
                          comma_joined(inputs, [](const auto& one) { return "'" + one + "'"; }));
    if (!text.empty())
      throw config::ConfigError(options_.file + ": dimensions that have no size yet:" + text);
    for (const auto& [name, size] : options_.dimensions) {
      if (size < 0)
        throw config::ConfigError(
            fmt::format("{}: dimension '{}' has a size of {}", options_.file, name, size));
      if (known_.count(name) > 0) continue;
      throw config::ConfigError(
          fmt::format("{}: no input has a dimension '{}'{}{}", options_.file, name,
                      known_.empty() ? "" : "; there are: ", comma_joined(known_)));
    }
  }

 private:
  const LoweringOptions& options_;
  std::map<std::string, std::set<std::string>> wanted_;
  std::set<std::string> known_;
};

/// Shapes that the file tells of values inside, where they need no unknown dimension.
std::map<std::string, Value> told_shapes(const Graph& graph, const LoweringOptions& options) {
  std::map<std::string, Value> told;
  for (const std::vector<ValueInfo>* list : {&graph.between, &graph.outputs}) {
    for (const ValueInfo& info : *list) {
      Value value;
      value.type = info.type;
      bool whole = info.shaped;
      for (const Dimension& dimension : info.dims) {
        const auto given = options.dimensions.find(dimension.name);
        const bool symbol = !dimension.name.empty() && given != options.dimensions.end();
        whole = whole && (dimension.size > 0 || symbol);
        value.dims.push_back(symbol ? given->second : dimension.size);
      }
      if (whole) told[info.name] = std::move(value);
    }
  }
  return told;
}

void note_versions(const Model& model, std::vector<std::string>& notes) {
  const auto found = model.opsets.find("");
  const std::int64_t version = found == model.opsets.end() ? 0 : found->second;
  constexpr std::int64_t kFirst = 7, kLast = 23;
  if (version != 0 && (version < kFirst || version > kLast))
    notes.push_back(
        fmt::format("opset {}: operators are read as those of opsets 7 to 23", version));
}

}  // namespace

LoweredModel lower(const Model& model, const LoweringOptions& options) {
  LoweredModel lowered;
  note_versions(model, lowered.notes);
  Interpreter interpreter(model, options, told_shapes(model.graph, options), lowered);
  Scope scope;
  for (const TensorData& tensor : model.graph.weights)
    scope.names[tensor.name] = interpreter.add_constant(tensor);
  Symbols symbols(options);
  for (const ValueInfo& input : model.graph.inputs) {
    if (scope.names.count(input.name) > 0) continue;  // IR versions up to 3 list weights too
    Value value;
    value.dims = symbols.sizes(input);
    value.type = input.type;
    scope.names[input.name] =
        interpreter.add_value(std::move(value), fmt::format("input '{}'", input.name));
  }
  symbols.check();
  interpreter.run(model.graph.nodes, scope);
  for (const ValueInfo& output : model.graph.outputs)
    lowered.outputs.push_back(interpreter.named(output.name, scope));
  lowered.parameters = parameters_of(model.graph);
  interpreter.note_unmapped();
  return lowered;
}

}  // namespace orrery::onnx
