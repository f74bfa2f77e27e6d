// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/expert_routing.h"

namespace orrery {

Bytes token_bytes(Precision precision, std::int64_t hidden) {
  const auto elements = static_cast<double>(hidden);
  const double payload = elements * element_bytes(precision);
  if (precision == Precision::kFp8 || precision == Precision::kFp8Block)
    return Bytes(payload + elements * 4 / 128);
  if (precision == Precision::kNvfp4) return Bytes(payload + elements / 16);
  return Bytes(precision == Precision::kInt8 ? payload + 4 : payload);
}

}  // namespace orrery
