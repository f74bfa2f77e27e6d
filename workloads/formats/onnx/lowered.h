// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/formats/onnx/model.h"
#include "workloads/ops/fusion.h"

namespace orrery::onnx {

using ValueId = std::uint32_t;
inline constexpr ValueId kNoValue = ~ValueId{0};

/// A tensor of a run: every size is known, values where shapes follow from them.
struct Value {
  Dims dims;
  DataType type = DataType::kUndefined;
  /// It follows from the file and from shapes alone: it is there before a run begins.
  bool constant = false;
  bool known = false;          ///< `values` are all of it
  std::vector<double> values;  ///< integers are exact up to 2^53
  ValueId storage =
      kNoValue;               ///< whose memory it lies in: its own, or that of what it is a view of
  ValueId narrow = kNoValue;  ///< what it was widened from, by DequantizeLinear

  void know(std::vector<double> all) {
    known = true;
    values = std::move(all);
  }
};

/// A tensor of the file.
Value value_of(const TensorData& tensor);

/// How an operator can be made part of a kernel with others.
enum class Fusing : std::uint8_t {
  kAlone,     ///< not at all, or as an operand of attention
  kElements,  ///< each element of its result follows from one of each input
  kRows,      ///< elements follow from theirs and from sums over the last dimension
  kMoves,     ///< elements come to other places
};

struct ValueUse {
  ValueId value;
  Bytes bytes;
};

/// A kernel that an operator runs, with the values that it reads and writes.
struct Lowered {
  Kernel kernel;
  std::vector<ValueUse> reads, writes;
  std::string op;  ///< type of the operator: "Conv"
  Fusing fusing = Fusing::kAlone;
  std::int64_t elements = 0;  ///< elements that it goes over
  std::int64_t width = 0;     ///< elements of a row that it sums over; 0: it sums over none
  std::optional<MaskedScores> scores;
  bool mapped = true;  ///< false: nobody has told what it computes
};

/// A model as it runs.
struct LoweredModel {
  std::vector<Value> values;
  std::vector<Lowered> kernels;  ///< kernels in an order in which they can run
  std::vector<ValueId> outputs;

  /// Whose memory result `i` of the model lies in: the number by which kernels know it.
  ValueId output(std::size_t i) const { return values[outputs[i]].storage; }
  double parameters = 0;  ///< weights of the model, statistics of batch norms left out
  std::vector<std::string> notes;
};

/// The number of elements. Sizes have been checked: it fits.
std::int64_t elements_of(const Dims& dims);

/// Whether values of such a tensor are kept.
inline bool are_few(const Dims& dims) {
  return elements_of(dims) <= static_cast<std::int64_t>(kMostValues);
}

/// Elements that a tensor may have: counts of them stay exact as real numbers.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 53U;
/// What is wrong with a shape: "a dimension of -3"; empty: nothing.
std::string mistake_of(const Dims& dims);

/// "2x3x224x224"; a scalar: "scalar".
std::string text_of(const Dims& dims);

/// Bits of an element in memory.
int bits_of(DataType type);
bool is_integer(DataType type);
bool is_wide_float(DataType type);  ///< floating-point numbers of 16 bits or more

/// What floating-point numbers of the model are run in, where that is not what the file says.
struct NumberFormat {
  std::optional<Precision> precision = {};

  /// @param weight whether it is one, which is as wide as operands of products
  Bytes bytes(const Value& value, bool weight) const;
  Precision of(DataType type) const;
};

struct LoweringOptions {
  std::string file;                                ///< name of the file, for messages
  std::map<std::string, std::int64_t> dimensions;  ///< sizes of symbolic dimensions
  NumberFormat format;
};

/// Goes through a model as it runs: shapes of all tensors, kernels of all operators. Branches of If
/// are chosen where the condition follows from shapes, else the first is taken; loops run as often
/// as they say, once where only a run can tell; results whose size depends on values are as large
/// as they can be.
/// @throws config::ConfigError with the file and the operator
LoweredModel lower(const Model& model, const LoweringOptions& options);

}  // namespace orrery::onnx
