// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "workloads/formats/onnx/lowering.h"
#include "workloads/formats/onnx/operation.h"

namespace orrery::onnx {

/// Values by name; subgraphs see those of the graph that they stand in.
struct Scope {
  std::map<std::string, ValueId> names;
  const Scope* outer = nullptr;
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

  /// @param caller attributes of the call of a function whose body they are
  void run(const std::vector<Node>& nodes, Scope& scope, const Attributes& caller, int depth);
  /// What has been met that no rule knows goes to the notes.
  void note_unmapped();

 private:
  using Ids = std::vector<ValueId>;

  void run(const Node& node, Scope& scope, const Attributes& caller, int depth);
  bool run_control(const Node& node, const Attributes& attributes, const Ids& inputs, Scope& scope,
                   const Attributes& caller, int depth);
  void run_if(const Node& node, const Attributes& attributes, const Ids& inputs, Scope& scope,
              const Attributes& caller, int depth);
  void run_loop(const Node& node, const Attributes& attributes, const Ids& inputs, Scope& scope,
                const Attributes& caller, int depth);
  void run_scan(const Node& node, const Attributes& attributes, const Ids& inputs, Scope& scope,
                const Attributes& caller, int depth);
  /// Runs a subgraph; the values of its outputs.
  Ids run_graph(const Graph& graph, const Ids& inputs, const Scope& scope, const Attributes& caller,
                int depth);
  void run_function(const Function& function, const Node& node, const Attributes& attributes,
                    const Ids& inputs, Scope& scope, int depth);
  void apply(const Node& node, Operation& op, Rule rule, Scope& scope);
  bool apply_rule(const Node& node, Operation& op, Rule rule) const;
  void apply_told(const Node& node, Operation& op);
  void apply_unmapped(const Node& node, Operation& op);
  Ids bind_results(const Node& node, Operation& op, bool constant, Scope& scope);
  void add_kernels(const Node& node, Operation& op, const Ids& results);
  void bind(const Node& node, std::size_t output, ValueId id, Scope& scope);
  std::int64_t opset(const std::string& domain) const;
  const Function* function(const Node& node) const;
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
