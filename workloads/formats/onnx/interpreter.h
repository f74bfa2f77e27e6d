// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "workloads/formats/onnx/operation.h"

namespace orrery::onnx {

using Ids = std::vector<ValueId>;

/// Values by name; subgraphs see those of the graph that they stand in.
struct Scope {
  std::map<std::string, ValueId> names = {};
  const Scope* outer = nullptr;
  int depth = 0;           ///< functions and subgraphs around it
  Attributes caller = {};  ///< attributes of the call of the function whose body it is
};

/// Runs the operators of graphs, functions and subgraphs one after the other, and writes their
/// values and kernels into a LoweredModel.
class Interpreter {
 public:
  /// @param told shapes of values that the file tells, for operators without a rule
  Interpreter(const Model& model, const LoweringOptions& options, std::map<std::string, Value> told,
              LoweredModel& lowered);

  ValueId add_constant(const TensorData& tensor);
  /// @param what is added, for messages
  ValueId add_value(Value value, const std::string& what);
  ValueId named(const std::string& name, const Scope& scope) const;
  void run(const std::vector<Node>& nodes, Scope& scope);
  /// What has been met that no rule knows goes to the notes.
  void note_unmapped();

 private:
  void run(const Node& node, Scope& scope);
  void count_operation(const Node& node);
  bool run_control(const Node& node, const Attributes& attributes, const Ids& inputs, Scope& scope);
  void run_if(const Node& node, const Attributes& attributes, const Ids& inputs, Scope& scope);
  void run_loop(const Node& node, const Attributes& attributes, const Ids& inputs, Scope& scope);
  void run_scan(const Node& node, const Attributes& attributes, const Ids& inputs, Scope& scope);
  /// Runs a subgraph; the values of its outputs.
  Ids run_graph(const Graph& graph, const Ids& inputs, const Scope& scope);
  /// Runs the body of a loop once; its first outputs become the state.
  Ids run_turn(const Node& node, const Graph& body, const Ids& inputs, const Scope& scope,
               Ids& state);
  /// The state after the last of so many turns, and what all of them have made, along `axes`.
  void bind_turns(const Node& node, const Ids& state, const Ids& outputs, std::int64_t turns,
                  const Dims& axes, Scope& scope);
  void run_function(const Function& function, const Node& node, const Attributes& attributes,
                    const Ids& inputs, Scope& scope);
  void apply(const Node& node, Operation& op, const Rule* rule, Scope& scope);
  bool apply_rule(const Node& node, Operation& op, const Rule& rule) const;
  Lowered& apply_told(const Node& node, Operation& op);
  Ids bind_results(const Node& node, Operation& op, bool constant, Scope& scope);
  void add_kernels(const Node& node, Operation& op, const Ids& results);
  void bind(const Node& node, std::size_t output, ValueId id, Scope& scope);
  void note_once(const std::string& text);
  [[noreturn]] void refuse(const Node& node, const std::string& what) const;

  const Model& model_;
  const LoweringOptions& options_;
  std::map<std::string, Value> told_;  ///< shapes of values of the model's own graph
  LoweredModel& lowered_;
  std::map<std::pair<std::string, std::string>, const Function*> functions_;
  std::map<std::string, std::size_t> unmapped_;
  std::set<std::string> noted_;
  std::size_t operations_ = 0;
};

/// "node 'conv1' (Conv)".
std::string name_of(const Node& node);

}  // namespace orrery::onnx
