// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <initializer_list>

#include "sim/graph/costs.h"
#include "sim/graph/imported_graph.h"
#include "sim/graph/precision.h"
#include "sim/graph/tensors.h"
#include "sim/graph/topology.h"
#include "sim/graph/transfer.h"

namespace orrery {
namespace {

/// The name of an enumerator, "?" for one without; `names` in the order of the enumerators.
template <typename Enum>
const char* name_of(Enum value, std::initializer_list<const char*> names) {
  const auto index = static_cast<std::size_t>(value);
  return index < names.size() ? names.begin()[index] : "?";
}

}  // namespace

const char* to_string(Bound bound) {
  return name_of(bound, {"tensor", "vector", "L2", "HBM", "host", "copy engine", "latency"});
}

const char* to_string(Fidelity fidelity) { return name_of(fidelity, {"auto", "closed", "tile"}); }

const char* to_string(Provenance provenance) {
  return name_of(provenance, {"measured", "calibrated", "analytic", "extrapolated"});
}

const char* to_string(TransferKind kind) {
  return name_of(kind,
                 {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce",
                  "gather", "scatter", "barrier", "send_receive", "dispatch", "combine"});
}

const char* to_string(NodeKind kind) {
  return name_of(kind, {"marker", "host", "kernel", "collective", "send", "receive"});
}

const char* to_string(TensorRole role) {
  return name_of(role, {"activations", "working", "logits", "gradients"});
}

const char* to_string(Precision precision) {
  return name_of(precision, {"fp32", "tf32", "bf16", "fp16", "fp8", "fp8_block", "nvfp4", "int8"});
}

const char* to_string(LinkKind kind) {
  return name_of(kind, {"on_package", "scale_up", "scale_out", "host"});
}

}  // namespace orrery
