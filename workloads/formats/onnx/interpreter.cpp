// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/onnx/interpreter.h"

#include <algorithm>

#include "sim/config/diagnostics.h"

namespace orrery::onnx {
namespace {

constexpr std::size_t kMostOperations = 1'000'000;
constexpr int kMostDepth = 64;  // of functions and subgraphs

std::string full_name(const Node& node) {
  return node.domain.empty() ? node.op : node.domain + ":" + node.op;
}

/// Attributes of a node; those that refer to attributes of the function that it stands in are
/// looked up at its call.
Attributes resolved(const Node& node, const Attributes& caller) {
  Attributes attributes;
  for (const auto& [name, attribute] : node.attributes) {
    if (attribute.refers.empty()) {
      attributes[name] = attribute;
      continue;
    }
    const auto given = caller.find(attribute.refers);
    if (given != caller.end()) attributes[name] = given->second;
  }
  return attributes;
}

}  // namespace

std::string name_of(const Node& node) {
  const std::string& name =
      !node.name.empty() || node.outputs.empty() ? node.name : node.outputs.front();
  return "node '" + name + "' (" + full_name(node) + ")";
}

Interpreter::Interpreter(const Model& model, const LoweringOptions& options,
                         std::map<std::string, Value> told, LoweredModel& lowered)
    : model_(model), options_(options), told_(std::move(told)), lowered_(lowered) {
  for (const Function& function : model.functions)
    functions_[{function.domain, function.name}] = &function;
}

void Interpreter::refuse(const Node& node, const std::string& what) const {
  throw config::ConfigError(options_.file + ": " + name_of(node) + " at offset " +
                            std::to_string(node.offset) + ": " + what);
}

void Interpreter::note_once(const std::string& text) {
  if (noted_.insert(text).second) lowered_.notes.push_back(text);
}

ValueId Interpreter::add_value(Value value, const std::string& what) {
  if (const std::string mistake = mistake_of(value.dims); !mistake.empty())
    throw config::ConfigError(options_.file + ": " + what + " has " + mistake);
  const auto id = static_cast<ValueId>(lowered_.values.size());
  if (value.storage == kNoValue) value.storage = id;
  lowered_.values.push_back(std::move(value));
  return id;
}

ValueId Interpreter::add_constant(const TensorData& tensor) {
  Value value;
  value.dims = tensor.dims;
  value.type = tensor.type;
  value.constant = true;
  value.values = tensor.values;
  const ValueId id = add_value(std::move(value), "weight '" + tensor.name + "'");
  Value& added = lowered_.values[id];
  added.known = !added.values.empty() || elements_of(added.dims) == 0;
  return id;
}

ValueId Interpreter::named(const std::string& name, const Scope& scope) const {
  for (const Scope* s = &scope; s != nullptr; s = s->outer)
    if (const auto found = s->names.find(name); found != s->names.end()) return found->second;
  throw config::ConfigError(options_.file + ": nothing before makes '" + name + "'");
}

std::int64_t Interpreter::opset(const std::string& domain) const {
  constexpr std::int64_t kNewest = 23;
  const auto found = model_.opsets.find(domain);
  return found == model_.opsets.end() ? kNewest : found->second;
}

const Function* Interpreter::function(const Node& node) const {
  const auto found = functions_.find({node.domain, node.op});
  return found == functions_.end() ? nullptr : found->second;
}

void Interpreter::run(const std::vector<Node>& nodes, Scope& scope, const Attributes& caller,
                      int depth) {
  for (const Node& node : nodes) run(node, scope, caller, depth);
}

void Interpreter::run(const Node& node, Scope& scope, const Attributes& caller, int depth) {
  if (++operations_ > kMostOperations || lowered_.kernels.size() > kMostOperations)
    refuse(node, "the model runs more than a million operators");
  if (depth > kMostDepth) refuse(node, "functions and subgraphs are nested more than 64 deep");
  Ids inputs;
  for (const std::string& input : node.inputs) {
    if (input.empty()) {
      inputs.push_back(kNoValue);
      continue;
    }
    try {
      inputs.push_back(named(input, scope));
    } catch (const config::ConfigError&) {
      refuse(node, "nothing before it makes its input '" + input + "'");
    }
  }
  const Attributes attributes = resolved(node, caller);
  if (run_control(node, attributes, inputs, scope, caller, depth)) return;
  const auto rule = RuleRegistry::items().find(full_name(node));
  if (rule == RuleRegistry::items().end()) {
    if (const Function* body = function(node); body != nullptr) {
      run_function(*body, node, attributes, inputs, scope, depth);
      return;
    }
  }
  Operation op(node, attributes, opset(node.domain), inputs, lowered_.values, options_.format);
  apply(node, op, rule == RuleRegistry::items().end() ? nullptr : rule->second.entry, scope);
}

void Interpreter::apply(const Node& node, Operation& op, Rule rule, Scope& scope) {
  if (node.outputs.empty()) return;
  try {
    if (rule == nullptr) {
      apply_unmapped(node, op);
    } else if (!apply_rule(node, op, rule)) {
      apply_told(node, op);
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
bool Interpreter::apply_rule(const Node& node, Operation& op, Rule rule) const {
  try {
    rule(op);
  } catch (const UnknownShape&) {
    for (const std::string& output : node.outputs)
      if (!output.empty() && told_.count(output) == 0) throw;
    return false;
  }
  return true;
}

/// Its results are as the file tells; it is priced as a copy.
void Interpreter::apply_told(const Node& node, Operation& op) {
  op.kernels.clear();
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const auto found = told_.find(node.outputs[i]);
    if (found != told_.end()) op.result(i, found->second.dims, found->second.type);
  }
  op.stream(KernelClass::kElementwise, Fusing::kAlone, 0);
  note_once("shapes that only a run can tell are those that the file tells");
}

/// Its results are as the file tells, or as its first input.
void Interpreter::apply_unmapped(const Node& node, Operation& op) {
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
  op.stream(KernelClass::kElementwise, Fusing::kAlone, 0).mapped = false;
  ++unmapped_[full_name(node)];
}

Interpreter::Ids Interpreter::bind_results(const Node& node, Operation& op, bool constant,
                                           Scope& scope) {
  Ids ids;
  for (std::size_t i = 0; i < std::max(node.outputs.size(), op.results.size()); ++i) {
    Value value;
    if (i < op.results.size() && op.results[i].made) value = std::move(op.results[i].value);
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
    lowered.kernel.name = node.name.empty() ? node.op + " " + node.outputs.front() : node.name;
    lowered_.kernels.push_back(std::move(lowered));
  }
}

void Interpreter::run_function(const Function& function, const Node& node,
                               const Attributes& attributes, const Ids& inputs, Scope& scope,
                               int depth) {
  Scope inside;
  for (std::size_t i = 0; i < function.inputs.size(); ++i)
    if (i < inputs.size() && inputs[i] != kNoValue) inside.names[function.inputs[i]] = inputs[i];
  Attributes given = function.defaults;
  for (const auto& [name, attribute] : attributes) given[name] = attribute;
  // A body may pass an input on that has been left out.
  std::vector<Node> nodes = function.nodes;
  for (Node& inner : nodes)
    for (std::string& input : inner.inputs) {
      const auto place = std::find(function.inputs.begin(), function.inputs.end(), input);
      if (place != function.inputs.end() && inside.names.count(input) == 0) input.clear();
    }
  run(nodes, inside, given, depth + 1);
  for (std::size_t i = 0; i < node.outputs.size() && i < function.outputs.size(); ++i)
    bind(node, i, named(function.outputs[i], inside), scope);
}

void Interpreter::note_unmapped() {
  if (unmapped_.empty()) return;
  std::string list;
  for (const auto& [name, count] : unmapped_) {
    if (!list.empty()) list += ", ";
    list += name + " (" + std::to_string(count) + ")";
  }
  lowered_.notes.push_back(
      "operators without a rule, priced by the memory that they read and "
      "write: " +
      list);
}

}  // namespace orrery::onnx
