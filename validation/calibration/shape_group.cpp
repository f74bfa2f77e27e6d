// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/shape_group.h"

#include <initializer_list>

#include "sim/units/hash.h"
#include "validation/calibration/operator_kernels.h"

namespace orrery {
namespace {

std::string joined(std::string name, std::initializer_list<std::int64_t> numbers) {
  for (const std::int64_t number : numbers) name += "/" + std::to_string(number);
  return name;
}

}  // namespace

std::string shape_group(OperatorTableKind kind, const OperatorRow& row) {
  switch (kind) {
    case OperatorTableKind::kGemm:
      return joined("gemm", {row.n, row.k});
    case OperatorTableKind::kAttentionPrefill:
    case OperatorTableKind::kAttentionDecode:
      return joined("attention", {row.heads, row.kv_heads, row.head_dim});
    case OperatorTableKind::kMlaPrefill:
    case OperatorTableKind::kMlaDecode:
      return joined("mla", {row.batch, row.heads});
    case OperatorTableKind::kMoe:
      // Experts with narrow weights were timed for one model or two: each plan is a group.
      if (row_weights(row).bits > 0)
        return joined("moe",
                      {row.hidden, row.expert_ffn, row.top_k, row.experts, row.moe_tp, row.moe_ep});
      return joined("moe", {row.hidden, row.expert_ffn, row.top_k, row.experts});
    case OperatorTableKind::kHbmStream:
      return "hbm_stream/" + std::to_string(row.bytes);
    case OperatorTableKind::kRowKernels:
      return joined("row_kernels/" + row.kernel, {row.cols});
    case OperatorTableKind::kLaunch:
      return "launch/" + row.test + "/" + row.kernel;
    case OperatorTableKind::kRecurrent:
      return joined("recurrent/" + row.kernel,
                    {row.heads, row.groups, row.key_dim, row.value_dim, row.channels, row.taps});
    case OperatorTableKind::kSelection:
      return joined("selection", {row.scores, row.chosen});
  }
  return "";
}

bool is_held_out(const std::string& group) {
  // The salt was chosen by the sizes of the parts alone: with it, every table of seven or more
  // groups has 15 to 31 % of its rows held out.
  std::uint64_t state = stable_hash("9/" + group);
  return next_random(state) % 4 == 0;
}

}  // namespace orrery
