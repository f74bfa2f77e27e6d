// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/config/registry.h"
#include "workloads/formats/onnx/lowered.h"

namespace orrery::onnx {

/// Only a run can tell a shape.
class UnknownShape : public config::ConfigError {
 public:
  using config::ConfigError::ConfigError;
};

/// One operator of a model while a rule says what it makes and runs. Inputs, results and attributes
/// are those of the operator's description (https://onnx.ai/onnx/operators).
class Operation {
 public:
  /// @param inputs kNoValue: left out
  Operation(const Node& node, const Attributes& attributes, std::int64_t opset,
            std::vector<ValueId> inputs, std::vector<Value>& values, const NumberFormat& format)
      : results(node.outputs.size()),
        node_(node),
        attributes_(attributes),
        opset_(opset),
        inputs_(std::move(inputs)),
        values_(values),
        format_(format) {}

  // What it is given.
  const Node& node() const { return node_; }
  std::int64_t opset() const { return opset_; }  ///< version of its domain
  std::size_t inputs() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i] != kNoValue; }
  /// @throws config::ConfigError where it has been left out
  const Value& in(std::size_t i) const;
  ValueId id(std::size_t i) const { return inputs_[i]; }
  std::int64_t rank(std::size_t i) const { return static_cast<std::int64_t>(in(i).dims.size()); }
  /// Values of an input that a shape needs.
  /// @throws config::ConfigError where they do not follow from the file
  Dims integers_of(std::size_t i) const;
  bool knows(std::size_t i) const { return has(i) && in(i).known; }

  const Attribute* find(const std::string& attribute) const {
    const auto found = attributes_.find(attribute);
    return found == attributes_.end() ? nullptr : &found->second;
  }
  bool given(const std::string& attribute) const { return find(attribute) != nullptr; }
  std::int64_t integer(const std::string& attribute, std::int64_t otherwise = 0) const {
    return value_of(attribute, &Attribute::integer, otherwise);
  }
  std::string text(const std::string& attribute, const std::string& otherwise) const {
    return value_of(attribute, &Attribute::text, otherwise);
  }
  Dims integers(const std::string& attribute) const {
    return value_of(attribute, &Attribute::integers, Dims());
  }
  /// Axes as attribute `axes`, or as input `i` where newer versions have them; from 0 to rank - 1.
  Dims axes(std::size_t i, std::int64_t rank) const;
  /// An axis that may count from behind.
  std::int64_t axis(std::int64_t axis, std::int64_t rank) const;

  // What it makes.
  /// Result `i`. Shapes are checked: below 2^53 elements in all.
  Value& result(std::size_t i, Dims dims, DataType type);
  /// Result 0 is input 0 in another shape, in the same memory.
  Value& view(Dims dims);
  /// It costs nothing while the model runs: shapes, and what follows from them.
  void free() { free_ = true; }

  // What it runs.
  /// A kernel that reads all inputs and writes all results, unless the rule says otherwise.
  Lowered& kernel(KernelClass kind) {
    Lowered& lowered = kernels.emplace_back();
    lowered.kernel.kind = kind;
    return lowered;
  }
  /// A kernel that streams: FLOPs for each element of result 0.
  Lowered& stream(KernelClass kind, Fusing fusing, double flops);
  /// An elementwise kernel alone: FLOPs for each element of input 0.
  Lowered& stream_input(double flops);
  /// Bytes of an input; of what it was widened from, where `narrow`.
  ValueUse use(std::size_t i, bool narrow = false) const;
  /// The type that DequantizeLinear has widened an input from.
  DataType narrow_type(std::size_t i) const { return values_[in(i).narrow].type; }
  /// Results have no number yet: kNoValue - 1 - i stands for it.
  ValueUse use_of_result(std::size_t i) const {
    return {static_cast<ValueId>(kNoValue - 1 - i), bytes(*results[i])};
  }
  Bytes bytes(const Value& value) const { return format_.bytes(value, value.constant); }
  Precision precision(DataType type) const { return format_.of(type); }

  [[noreturn]] void refuse(const std::string& what) const { throw config::ConfigError(what); }
  /// A shape that only a run can tell: where the file tells those of all results, they count.
  [[noreturn]] void unknown(const std::string& what) const { throw UnknownShape(what); }

  // For who called the rule.
  std::vector<std::optional<Value>> results;
  std::vector<Lowered> kernels;
  bool is_free() const { return free_; }

 private:
  template <class T>
  T value_of(const std::string& attribute, T Attribute::*member, const T& otherwise) const {
    const Attribute* found = find(attribute);
    return found == nullptr ? otherwise : found->*member;
  }

  const Node& node_;
  const Attributes& attributes_;
  std::int64_t opset_;
  std::vector<ValueId> inputs_;
  std::vector<Value>& values_;
  const NumberFormat& format_;
  bool free_ = false;
};

/// Says what an operator makes and runs.
using Rule = std::function<void(Operation&)>;
/// Rules by type, "Conv", and "com.microsoft:Attention" for other domains.
using RuleRegistry = Registry<Rule>;

/// A rule, and the operators that follow it.
struct RuleOf {
  Rule rule;
  std::vector<const char*> operators;
};
/// Registers the rules of a family of operators.
struct RegisterRules {
  RegisterRules(const char* family, const std::vector<RuleOf>& rules) {
    for (const auto& [rule, operators] : rules)
      for (const char* name : operators)
        const RuleRegistry::Register registered(name, family, rule);
  }
};

/// The rule of operators whose result is shaped as input 0: one kernel that streams, with `flops`
/// for each element.
Rule as_input(KernelClass kind, Fusing fusing, double flops);

/// Shapes of two operands brought together as NumPy does.
Dims broadcast(const Operation& op, const Dims& a, const Dims& b);

}  // namespace orrery::onnx
