// SPDX-License-Identifier: Apache-2.0
#include "sim/config/diagnostics.h"
#include "workloads/models/sparsity.h"
#include "workloads/operators/operator.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// How weights are packed, where not as the precision of the product says.
enum class Packing { kAsPrecision, kInt8, kInt4 };

}  // namespace

template <>
struct config::EnumNames<Packing> {
  static constexpr std::pair<Packing, const char*> values[] = {
      {Packing::kAsPrecision, "as_precision"}, {Packing::kInt8, "int8"}, {Packing::kInt4, "int4"}};
};

namespace {

struct Gemm final : OperatorConfig {
  Gemm() { kind = "gemm"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    if (weights != Packing::kAsPrecision && element_bytes(precision) < 2)
      throw config::KeyError(std::vector<std::string>{"operator.weights", "precision"},
                             "weights are widened to 16 bits or more, so precision cannot be " +
                                 std::string(to_string(precision)));
    std::vector<Kernel> all;
    if (quantize && element_bytes(precision) < 2)
      all.push_back(orrery::quantize("quantize", precision, m * batch, k));
    all.push_back(gemm("gemm", precision, {m, n, k, batch}, format()));
    if (!tile.empty()) all.back().tile = {tile[0], tile[1]};
    all.back().cluster = cluster;
    return all;
  }

  WeightFormat format() const {
    const std::int64_t bits = weights == Packing::kInt8 ? 8 : weights == Packing::kInt4 ? 4 : 0;
    return {bits, sparsity == Sparsity::kTwoOfFour};
  }

  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;
  Packing weights = Packing::kAsPrecision;
  Sparsity sparsity = Sparsity::kDense;
  std::vector<std::int64_t> tile;
  std::int64_t cluster = 0;
  bool quantize = false;

  static const config::Schema<Gemm>& schema() {
    using config::between;
    static const config::Schema<Gemm> schema =
        operator_schema<Gemm>("gemm", "matrix product, (m x k) (k x n)")
            .required("m", &Gemm::m, "rows of the result", between(1, operator_limits::kRows))
            .required("n", &Gemm::n, "columns of the result", between(1, operator_limits::kRows))
            .required("k", &Gemm::k, "summed dimension", between(1, operator_limits::kRows))
            .optional("batch", &Gemm::batch, "independent products",
                      between(1, operator_limits::kSequences))
            .optional("weights", &Gemm::weights,
                      "format of the second operand; int8 and int4 are widened to the precision")
            .optional(
                "sparsity", &Gemm::sparsity,
                "structured zeros of the second operand; FLOPs are counted as if it were dense")
            .optional("tile", &Gemm::tile,
                      "rows and columns of a thread block; empty: the library's", between(8, 1024))
            .optional("cluster", &Gemm::cluster,
                      "thread blocks that are launched together within a group of units; 0: the "
                      "library's",
                      between(0, 64))
            .optional("quantize", &Gemm::quantize,
                      "quantisation of a 16-bit input before it, in formats of 8 bits and fewer")
            .check(
                "tile wants two sizes, such as [256, 128]",
                [](const Gemm& g) { return g.tile.empty() || g.tile.size() == 2; }, "tile");
    return schema;
  }
};

const RegisterOperator<Gemm> registered_gemm("gemm",
                                             "matrix product, dense or with packed weights");

}  // namespace
}  // namespace orrery
