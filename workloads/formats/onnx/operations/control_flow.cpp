// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan: subgraphs that run once, several times, or not at all.
#include <algorithm>

#include "sim/config/diagnostics.h"
#include "workloads/formats/onnx/interpreter.h"

namespace orrery::onnx {
namespace {

const Graph& graph_of(const Attributes& attributes, const char* name) {
  const auto found = attributes.find(name);
  if (found == attributes.end() || !found->second.graph)
    throw config::ConfigError(std::string("it has no ") + name);
  return *found->second.graph;
}

/// A number that shapes tell, or nothing.
const double* known_number(const std::vector<Value>& values, ValueId id) {
  if (id == kNoValue || !values[id].known || values[id].values.empty()) return nullptr;
  return values[id].values.data();
}

/// All results of a loop's body, one behind the other.
Value stacked(const Value& one, std::int64_t count, std::int64_t axis) {
  Value all;
  all.dims = one.dims;
  all.type = one.type;
  all.storage = one.storage;
  const auto place = std::clamp<std::int64_t>(
      axis < 0 ? axis + 1 + static_cast<std::int64_t>(one.dims.size()) : axis, 0,
      static_cast<std::int64_t>(one.dims.size()));
  all.dims.insert(all.dims.begin() + static_cast<std::ptrdiff_t>(place), count);
  return all;
}

std::int64_t entry(const Attributes& attributes, const char* name, std::size_t i) {
  const auto found = attributes.find(name);
  if (found == attributes.end() || i >= found->second.integers.size()) return 0;
  return found->second.integers[i];
}

}  // namespace

bool Interpreter::run_control(const Node& node, const Attributes& attributes, const Ids& inputs,
                              Scope& scope, const Attributes& caller, int depth) {
  if (!node.domain.empty()) return false;
  const bool is_if = node.op == "If", is_loop = node.op == "Loop", is_scan = node.op == "Scan";
  if (!is_if && !is_loop && !is_scan) return false;
  const char* body = is_if ? "then_branch" : "body";
  const auto found = attributes.find(body);
  if (found == attributes.end() || !found->second.graph)
    refuse(node, std::string("it has no ") + body);
  if (is_if) run_if(node, attributes, inputs, scope, caller, depth);
  if (is_loop) run_loop(node, attributes, inputs, scope, caller, depth);
  if (is_scan) run_scan(node, attributes, inputs, scope, caller, depth);
  return true;
}

Interpreter::Ids Interpreter::run_graph(const Graph& graph, const Ids& inputs, const Scope& scope,
                                        const Attributes& caller, int depth) {
  Scope inside;
  inside.outer = &scope;
  for (const TensorData& tensor : graph.weights) inside.names[tensor.name] = add_constant(tensor);
  for (std::size_t i = 0; i < graph.inputs.size() && i < inputs.size(); ++i)
    inside.names[graph.inputs[i].name] = inputs[i];
  run(graph.nodes, inside, caller, depth + 1);
  Ids outputs;
  outputs.reserve(graph.outputs.size());
  for (const ValueInfo& output : graph.outputs) outputs.push_back(named(output.name, inside));
  return outputs;
}

void Interpreter::run_if(const Node& node, const Attributes& attributes, const Ids& inputs,
                         Scope& scope, const Attributes& caller, int depth) {
  const double* condition = inputs.empty() ? nullptr : known_number(lowered_.values, inputs[0]);
  if (condition == nullptr)
    note_once("branches whose condition only a run can tell: the first is taken");
  const auto other = attributes.find("else_branch");
  const bool second =
      condition != nullptr && *condition == 0 && other != attributes.end() && other->second.graph;
  const Graph& branch = second ? *other->second.graph : graph_of(attributes, "then_branch");
  const Ids outputs = run_graph(branch, {}, scope, caller, depth);
  for (std::size_t i = 0; i < outputs.size(); ++i) bind(node, i, outputs[i], scope);
}

void Interpreter::run_loop(const Node& node, const Attributes& attributes, const Ids& inputs,
                           Scope& scope, const Attributes& caller, int depth) {
  const Graph& body = graph_of(attributes, "body");
  const double* trips = inputs.empty() ? nullptr : known_number(lowered_.values, inputs[0]);
  if (trips == nullptr) note_once("loops whose length only a run can tell: they run once");
  constexpr double kMost = 1e9;
  const auto count =
      trips == nullptr ? 1 : static_cast<std::int64_t>(std::clamp(*trips, 0.0, kMost));
  Ids carried(inputs.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, inputs.size())),
              inputs.end());
  Ids outputs;
  std::int64_t run_times = 0;
  bool goes_on = true;
  while (run_times < count && goes_on) {
    Value turn, condition;
    turn.type = DataType::kInt64;
    turn.constant = turn.known = condition.constant = condition.known = true;
    turn.values = {static_cast<double>(run_times)};
    condition.type = DataType::kBool;
    condition.values = {1};
    Ids given = {add_value(turn, "loop"), add_value(condition, "loop")};
    given.insert(given.end(), carried.begin(), carried.end());
    outputs = run_graph(body, given, scope, caller, depth);
    if (outputs.size() < carried.size() + 1) refuse(node, "its body has too few outputs");
    std::copy_n(outputs.begin() + 1, carried.size(), carried.begin());
    ++run_times;
    ++operations_;
    if (operations_ > 1'000'000) refuse(node, "the model runs more than a million operators");
    const double* next = known_number(lowered_.values, outputs.front());
    goes_on = next == nullptr || *next != 0;
  }
  for (std::size_t i = 0; i < carried.size(); ++i) bind(node, i, carried[i], scope);
  for (std::size_t i = carried.size(); i < node.outputs.size(); ++i) {
    Value all;  // of a loop that does not run: nothing
    all.dims = {0};
    if (i + 1 < outputs.size()) all = stacked(lowered_.values[outputs[i + 1]], run_times, 0);
    bind(node, i, add_value(std::move(all), name_of(node)), scope);
  }
}

void Interpreter::run_scan(const Node& node, const Attributes& attributes, const Ids& inputs,
                           Scope& scope, const Attributes& caller, int depth) {
  const Graph& body = graph_of(attributes, "body");
  const auto scanned_attribute = attributes.find("num_scan_inputs");
  const std::int64_t asked =
      scanned_attribute == attributes.end() ? 1 : scanned_attribute->second.integer;
  if (asked < 1 || asked > static_cast<std::int64_t>(inputs.size()))
    refuse(node, "it scans no input");
  const auto scanned = static_cast<std::size_t>(asked);
  const std::size_t states = inputs.size() - scanned;
  Ids state(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(states)), slices;
  std::int64_t count = 1;
  for (std::size_t i = 0; i < scanned; ++i) {
    const ValueId id = inputs[states + i];
    if (id == kNoValue) refuse(node, "it scans no input");
    Value slice = lowered_.values[id];
    const auto rank = static_cast<std::int64_t>(slice.dims.size());
    const std::int64_t axis = entry(attributes, "scan_input_axes", i);
    const std::int64_t place = axis < 0 ? axis + rank : axis;
    if (place < 0 || place >= rank) refuse(node, "it scans a dimension that is not there");
    count = slice.dims[static_cast<std::size_t>(place)];
    slice.dims.erase(slice.dims.begin() + static_cast<std::ptrdiff_t>(place));
    slice.known = false;
    slice.values.clear();
    slices.push_back(add_value(std::move(slice), name_of(node)));
  }
  Ids outputs;
  for (std::int64_t turn = 0; turn < count; ++turn) {
    Ids given = state;
    given.insert(given.end(), slices.begin(), slices.end());
    outputs = run_graph(body, given, scope, caller, depth);
    if (outputs.size() < states) refuse(node, "its body has too few outputs");
    std::copy_n(outputs.begin(), states, state.begin());
    if (++operations_ > 1'000'000) refuse(node, "the model runs more than a million operators");
  }
  for (std::size_t i = 0; i < states; ++i) bind(node, i, state[i], scope);
  for (std::size_t i = states; i < node.outputs.size(); ++i) {
    Value all;
    all.dims = {0};
    if (i < outputs.size())
      all = stacked(lowered_.values[outputs[i]], count,
                    entry(attributes, "scan_output_axes", i - states));
    bind(node, i, add_value(std::move(all), name_of(node)), scope);
  }
}

}  // namespace orrery::onnx
