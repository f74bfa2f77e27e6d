// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/onnx/interpreter.h"

#include <fmt/core.h>

#include <algorithm>

#include "sim/config/diagnostics.h"
#include "sim/units/comma_separated.h"

namespace orrery::onnx {
namespace {

constexpr std::size_t kMostOperations = 1'000'000;
constexpr int kMostDepth = 64;  // of functions and subgraphs

std::string full_name(const Node& node) {
  return node.domain.empty() ? node.op : fmt::format("{}:{}", node.domain, node.op);
}

/// Attributes of a node; those that refer to attributes of the function that it stands in are
/// looked up at its call.
Attributes resolved(const Node& node, const Scope& scope) {
  const Scope* body = &scope;
  while (body->outer != nullptr) body = body->outer;
  Attributes attributes;
  for (const auto& [name, attribute] : node.attributes) {
    if (attribute.refers.empty()) {
      attributes[name] = attribute;
      continue;
    }
    const auto given = body->caller.find(attribute.refers);
    if (given != body->caller.end()) attributes[name] = given->second;
  }
  return attributes;
}

}  // namespace

std::string name_of(const Node& node) {
  const std::string& name =
      !node.name.empty() || node.outputs.empty() ? node.name : node.outputs.front();
  return fmt::format("node '{}' ({})", name, full_name(node));
}

Interpreter::Interpreter(const Model& model, const LoweringOptions& options,
                         std::map<std::string, Value> told, LoweredModel& lowered)
    : model_(model), options_(options), told_(std::move(told)), lowered_(lowered) {
  for (const Function& function : model.functions)
    functions_[{function.domain, function.name}] = &function;
}

void Interpreter::refuse(const Node& node, const std::string& what) const {
  throw config::ConfigError(
      fmt::format("{}: {} at offset {}: {}", options_.file, name_of(node), node.offset, what));
}

void Interpreter::note_once(const std::string& text) {
  if (noted_.insert(text).second) lowered_.notes.push_back(text);
}

ValueId Interpreter::add_value(Value value, const std::string& what) {
  if (const std::string mistake = mistake_of(value.dims); !mistake.empty())
    throw config::ConfigError(fmt::format("{}: {} has {}", options_.file, what, mistake));
  const auto id = static_cast<ValueId>(lowered_.values.size());
  if (value.storage == kNoValue) value.storage = id;
  lowered_.values.push_back(std::move(value));
  return id;
}

ValueId Interpreter::add_constant(const TensorData& tensor) {
  Value value = value_of(tensor);
  value.constant = true;
  return add_value(std::move(value), fmt::format("weight '{}'", tensor.name));
}

ValueId Interpreter::named(const std::string& name, const Scope& scope) const {
  for (const Scope* s = &scope; s != nullptr; s = s->outer)
    if (const auto found = s->names.find(name); found != s->names.end()) return found->second;
  throw config::ConfigError(fmt::format("{}: nothing before makes '{}'", options_.file, name));
}

void Interpreter::count_operation(const Node& node) {
  if (++operations_ > kMostOperations || lowered_.kernels.size() > kMostOperations)
    refuse(node, "the model runs more than a million operators");
}

void Interpreter::run(const std::vector<Node>& nodes, Scope& scope) {
  for (const Node& node : nodes) run(node, scope);
}

void Interpreter::run(const Node& node, Scope& scope) {
  count_operation(node);
  if (scope.depth > kMostDepth)
    refuse(node, "functions and subgraphs are nested more than 64 deep");
  Ids inputs;
  for (const std::string& input : node.inputs) {
    try {
      inputs.push_back(input.empty() ? kNoValue : named(input, scope));
    } catch (const config::ConfigError&) {
      refuse(node, fmt::format("nothing before it makes its input '{}'", input));
    }
  }
  const Attributes attributes = resolved(node, scope);
  if (run_control(node, attributes, inputs, scope)) return;
  const Rule* rule = RuleRegistry::find(full_name(node));
  const auto body = functions_.find({node.domain, node.op});
  if (rule == nullptr && body != functions_.end())
    return run_function(*body->second, node, attributes, inputs, scope);
  constexpr std::int64_t kNewest = 23;
  const auto opset = model_.opsets.find(node.domain);
  Operation op(node, attributes, opset == model_.opsets.end() ? kNewest : opset->second, inputs,
               lowered_.values, options_.format);
  apply(node, op, rule, scope);
}

void Interpreter::apply(const Node& node, Operation& op, const Rule* rule, Scope& scope) {
  if (node.outputs.empty()) return;
  try {
    if (rule == nullptr) {
      apply_told(node, op).mapped = false;
      ++unmapped_[full_name(node)];
    } else if (!apply_rule(node, op, *rule)) {
      apply_told(node, op);
      note_once("shapes that only a run can tell are those that the file tells");
    }
  } catch (const config::ConfigError& error) {
    refuse(node, error.what());
  }
  bool constant = rule != nullptr;
  for (std::size_t i = 0; i < op.inputs(); ++i)
    constant = constant && (!op.has(i) || op.in(i).constant);
  constant = constant || op.is_free();
  const Ids results = bind_results(node, op, constant, scope);
  if (!constant) add_kernels(node, op, results);
}

/// Whether the rule could say its shapes, or nobody else can.
bool Interpreter::apply_rule(const Node& node, Operation& op, const Rule& rule) const {
  try {
    rule(op);
  } catch (const UnknownShape&) {
    for (const std::string& output : node.outputs)
      if (!output.empty() && told_.count(output) == 0) throw;
    return false;
  }
  return true;
}

/// Its results are as the file tells, or as its first input; it is priced as a copy.
Lowered& Interpreter::apply_told(const Node& node, Operation& op) {
  op.kernels.clear();
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const auto found = told_.find(node.outputs[i]);
    if (found != told_.end()) {
      op.result(i, found->second.dims, found->second.type);
    } else if (op.has(0)) {
      op.result(i, op.in(0).dims, op.in(0).type);
    } else {
      op.result(i, {}, DataType::kFloat);
    }
  }
  return op.stream(KernelClass::kElementwise, Fusing::kAlone, 0);
}

Ids Interpreter::bind_results(const Node& node, Operation& op, bool constant, Scope& scope) {
  Ids ids;
  for (std::size_t i = 0; i < std::max(node.outputs.size(), op.results.size()); ++i) {
    Value value;
    if (i < op.results.size() && op.results[i]) value = std::move(*op.results[i]);
    value.constant = value.constant || constant;
    ids.push_back(add_value(std::move(value), name_of(node)));
    bind(node, i, ids.back(), scope);
  }
  return ids;
}

void Interpreter::bind(const Node& node, std::size_t output, ValueId id, Scope& scope) {
  if (output < node.outputs.size() && !node.outputs[output].empty())
    scope.names[node.outputs[output]] = id;
}

void Interpreter::add_kernels(const Node& node, Operation& op, const Ids& results) {
  const auto place = [&](ValueUse use) {
    const auto result = static_cast<std::size_t>(kNoValue - 1 - use.value);
    const ValueId id = result < results.size() ? results[result] : use.value;
    return ValueUse{lowered_.values[id].storage, use.bytes};
  };
  for (Lowered& lowered : op.kernels) {
    if (lowered.reads.empty())
      for (std::size_t i = 0; i < op.inputs(); ++i)
        if (op.has(i)) lowered.reads.push_back(op.use(i));
    if (lowered.writes.empty())
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        if (!node.outputs[i].empty()) {
          const Value& value = lowered_.values[results[i]];
          lowered.writes.push_back({results[i], options_.format.bytes(value, false)});
        }
    for (ValueUse& use : lowered.reads) use = place(use);
    for (ValueUse& use : lowered.writes) use = place(use);
    lowered.op = full_name(node);
    lowered.kernel.name =
        node.name.empty() ? fmt::format("{} {}", node.op, node.outputs.front()) : node.name;
    lowered_.kernels.push_back(std::move(lowered));
  }
}

void Interpreter::run_function(const Function& function, const Node& node,
                               const Attributes& attributes, const Ids& inputs, Scope& scope) {
  Scope inside{.depth = scope.depth + 1, .caller = function.defaults};
  for (std::size_t i = 0; i < function.inputs.size(); ++i)
    if (i < inputs.size() && inputs[i] != kNoValue) inside.names[function.inputs[i]] = inputs[i];
  for (const auto& [name, attribute] : attributes) inside.caller[name] = attribute;
  // A body may pass an input on that has been left out.
  std::vector<Node> nodes = function.nodes;
  for (Node& inner : nodes)
    for (std::string& input : inner.inputs) {
      const auto place = std::find(function.inputs.begin(), function.inputs.end(), input);
      if (place != function.inputs.end() && inside.names.count(input) == 0) input.clear();
    }
  run(nodes, inside);
  for (std::size_t i = 0; i < node.outputs.size() && i < function.outputs.size(); ++i)
    bind(node, i, named(function.outputs[i], inside), scope);
}

void Interpreter::note_unmapped() {
  if (unmapped_.empty()) return;
  const auto counted = [](const auto& one) {
    return fmt::format("{} ({})", one.first, one.second);
  };
  lowered_.notes.push_back(
      "operators without a rule, priced by the memory that they read and write: " +
      comma_joined(unmapped_, counted));
}

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
