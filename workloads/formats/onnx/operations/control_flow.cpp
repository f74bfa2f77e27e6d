// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan: subgraphs that run once, several times, or not at all.
#include <fmt/core.h>

#include <algorithm>

#include "workloads/formats/onnx/interpreter.h"

namespace orrery::onnx {
namespace {

/// An attribute of a name; one without anything where it is not there.
const Attribute& attribute(const Attributes& attributes, const char* name) {
  static const Attribute none;
  const auto found = attributes.find(name);
  return found == attributes.end() ? none : found->second;
}

/// A number that shapes tell, or nothing.
const double* known_number(const std::vector<Value>& values, const Ids& ids, std::size_t i) {
  if (i >= ids.size() || ids[i] == kNoValue) return nullptr;
  const Value& value = values[ids[i]];
  return value.known && !value.values.empty() ? value.values.data() : nullptr;
}

Value known_scalar(DataType type, double number) {
  Value value;
  value.type = type;
  value.constant = value.known = true;
  value.values = {number};
  return value;
}

/// All results of a loop's body, one behind the other.
Value stacked(const Value& one, std::int64_t count, std::int64_t axis) {
  Value all;
  all.dims = one.dims;
  all.type = one.type;
  all.storage = one.storage;
  const auto rank = static_cast<std::int64_t>(one.dims.size());
  const auto place = std::clamp<std::int64_t>(axis < 0 ? axis + 1 + rank : axis, 0, rank);
  all.dims.insert(all.dims.begin() + place, count);
  return all;
}

}  // namespace

bool Interpreter::run_control(const Node& node, const Attributes& attributes, const Ids& inputs,
                              Scope& scope) {
  if (!node.domain.empty()) return false;
  const bool is_if = node.op == "If", is_loop = node.op == "Loop", is_scan = node.op == "Scan";
  if (!is_if && !is_loop && !is_scan) return false;
  const char* body = is_if ? "then_branch" : "body";
  if (!attribute(attributes, body).graph) refuse(node, fmt::format("it has no {}", body));
  if (is_if) run_if(node, attributes, inputs, scope);
  if (is_loop) run_loop(node, attributes, inputs, scope);
  if (is_scan) run_scan(node, attributes, inputs, scope);
  return true;
}

Ids Interpreter::run_graph(const Graph& graph, const Ids& inputs, const Scope& scope) {
  Scope inside{.outer = &scope, .depth = scope.depth + 1};
  for (const TensorData& tensor : graph.weights) inside.names[tensor.name] = add_constant(tensor);
  for (std::size_t i = 0; i < graph.inputs.size() && i < inputs.size(); ++i)
    inside.names[graph.inputs[i].name] = inputs[i];
  run(graph.nodes, inside);
  Ids outputs;
  outputs.reserve(graph.outputs.size());
  for (const ValueInfo& output : graph.outputs) outputs.push_back(named(output.name, inside));
  return outputs;
}

void Interpreter::run_if(const Node& node, const Attributes& attributes, const Ids& inputs,
                         Scope& scope) {
  const double* condition = known_number(lowered_.values, inputs, 0);
  if (condition == nullptr)
    note_once("branches whose condition only a run can tell: the first is taken");
  const Graph* branch = attribute(attributes, "then_branch").graph.get();
  const Graph* other = attribute(attributes, "else_branch").graph.get();
  if (condition != nullptr && *condition == 0 && other != nullptr) branch = other;
  const Ids outputs = run_graph(*branch, {}, scope);
  for (std::size_t i = 0; i < outputs.size(); ++i) bind(node, i, outputs[i], scope);
}

Ids Interpreter::run_turn(const Node& node, const Graph& body, const Ids& inputs,
                          const Scope& scope, Ids& state) {
  Ids outputs = run_graph(body, inputs, scope);
  if (outputs.size() < state.size()) refuse(node, "its body has too few outputs");
  std::copy_n(outputs.begin(), state.size(), state.begin());
  count_operation(node);
  return outputs;
}

void Interpreter::bind_turns(const Node& node, const Ids& state, const Ids& outputs,
                             std::int64_t turns, const Dims& axes, Scope& scope) {
  for (std::size_t i = 0; i < state.size(); ++i) bind(node, i, state[i], scope);
  for (std::size_t i = state.size(); i < node.outputs.size(); ++i) {
    Value all;  // of a loop that does not run: nothing
    all.dims = {0};
    const std::size_t place = i - state.size();
    if (i < outputs.size())
      all = stacked(lowered_.values[outputs[i]], turns, place < axes.size() ? axes[place] : 0);
    bind(node, i, add_value(std::move(all), name_of(node)), scope);
  }
}

/// The body's first output says whether it goes on.
void Interpreter::run_loop(const Node& node, const Attributes& attributes, const Ids& inputs,
                           Scope& scope) {
  const double* trips = known_number(lowered_.values, inputs, 0);
  if (trips == nullptr) note_once("loops whose length only a run can tell: they run once");
  constexpr double kMost = 1e9;
  const auto count =
      trips == nullptr ? 1 : static_cast<std::int64_t>(std::clamp(*trips, 0.0, kMost));
  Ids state = {kNoValue}, outputs;
  if (inputs.size() > 2) state.insert(state.end(), inputs.begin() + 2, inputs.end());
  std::int64_t turns = 0;
  for (bool goes_on = true; turns < count && goes_on; ++turns) {
    Ids given = {add_value(known_scalar(DataType::kInt64, static_cast<double>(turns)), "loop")};
    state.front() = add_value(known_scalar(DataType::kBool, 1), "loop");
    given.insert(given.end(), state.begin(), state.end());
    outputs = run_turn(node, *attribute(attributes, "body").graph, given, scope, state);
    const double* next = known_number(lowered_.values, state, 0);
    goes_on = next == nullptr || *next != 0;
  }
  state.erase(state.begin());
  if (!outputs.empty()) outputs.erase(outputs.begin());
  bind_turns(node, state, outputs, turns, {}, scope);
}

void Interpreter::run_scan(const Node& node, const Attributes& attributes, const Ids& inputs,
                           Scope& scope) {
  const std::int64_t scanned = attributes.count("num_scan_inputs") > 0
                                   ? attribute(attributes, "num_scan_inputs").integer
                                   : 1;
  if (scanned < 1 || scanned > static_cast<std::int64_t>(inputs.size()))
    refuse(node, "it scans no input");
  const Dims& axes = attribute(attributes, "scan_input_axes").integers;
  const auto first = inputs.end() - scanned;
  Ids state(inputs.begin(), first), slices, outputs;
  std::int64_t count = 1;
  for (auto id = first; id != inputs.end(); ++id) {
    if (*id == kNoValue) refuse(node, "it scans no input");
    Value slice = lowered_.values[*id];
    const auto rank = static_cast<std::int64_t>(slice.dims.size());
    const std::int64_t axis = slices.size() < axes.size() ? axes[slices.size()] : 0;
    const std::int64_t place = axis < 0 ? axis + rank : axis;
    if (place < 0 || place >= rank) refuse(node, "it scans a dimension that is not there");
    count = slice.dims[static_cast<std::size_t>(place)];
    slice.dims.erase(slice.dims.begin() + place);
    slice.known = false;
    slice.values.clear();
    slices.push_back(add_value(std::move(slice), name_of(node)));
  }
  for (std::int64_t turn = 0; turn < count; ++turn) {
    Ids given = state;
    given.insert(given.end(), slices.begin(), slices.end());
    outputs = run_turn(node, *attribute(attributes, "body").graph, given, scope, state);
  }
  bind_turns(node, state, outputs, count, attribute(attributes, "scan_output_axes").integers,
             scope);
}

}  // namespace orrery::onnx
