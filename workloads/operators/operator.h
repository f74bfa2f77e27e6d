// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/config/registered.h"
#include "sim/config/schema.h"
#include "sim/graph/kernel.h"
#include "workloads/base/limits.h"

namespace orrery {

/// One operator of a language model on one rank, as an experiment names it: keys and the kernels
/// that they stand for. The kernels are those of a model's layer and of a measured row.
struct OperatorConfig {
  virtual ~OperatorConfig() = default;

  /// In issue order.
  /// @param precision of the matrix operands
  /// @throws config::ConfigError when the operator does not exist in that precision.
  virtual std::vector<Kernel> kernels(Precision precision) const = 0;
  /// The same with every intermediate result in memory: what fusion is compared with.
  virtual std::vector<Kernel> unfused_kernels(Precision precision) const {
    return kernels(precision);
  }

  std::string kind;  ///< "gemm": the name that it is registered by, which its constructor gives it

  /// For config::OneOf: the operators by their `kind`; without one it is a GEMM.
  static const config::Choices& choices() {
    return config::Registered<OperatorConfig>::choices("kind", "gemm");
  }
  static const OperatorConfig* view(const std::string& kind, void* object) {
    return config::Registered<OperatorConfig>::view(kind, object);
  }

 protected:
  OperatorConfig() = default;
};

/// A file adds an operator with one such object: `const RegisterOperator<Gemm> registered("gemm",
/// "one line of help");`. `T` derives from OperatorConfig and has `static const config::Schema<T>&
/// schema()`, begun with operator_schema().
template <class T>
using RegisterOperator = config::Registered<OperatorConfig>::Add<T>;

template <class T>
config::Schema<T> operator_schema(const std::string& kind, const std::string& help) {
  config::Schema<T> schema(kind, help);
  schema.optional("kind", static_cast<std::string T::*>(&OperatorConfig::kind), "which operator");
  return schema;
}

/// Limits of sizes, within which FLOPs and bytes are exact or nearly so.
namespace operator_limits {
inline constexpr double kRows = 1e9;       ///< rows, columns, tokens
inline constexpr double kSequences = 1e6;  ///< batches of attention
inline constexpr double kTokens = 1e8;     ///< most tokens of one sequence
}  // namespace operator_limits

}  // namespace orrery
