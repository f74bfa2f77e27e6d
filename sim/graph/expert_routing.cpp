// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/expert_routing.h"

namespace orrery {

Bytes token_bytes(Precision precision, std::int64_t hidden) {
  const auto elements = static_cast<double>(hidden);
  const double payload = elements * element_bytes(precision);
  switch (precision) {
    case Precision::kFp8:
    case Precision::kFp8Block:
      return Bytes(payload + elements * 4 / 128);
    case Precision::kNvfp4:
      return Bytes(payload + elements / 16);
    case Precision::kInt8:
      return Bytes(payload + 4);
    case Precision::kFp32:
    case Precision::kTf32:
    case Precision::kBf16:
    case Precision::kFp16:
      break;
  }
  return Bytes(payload);
}

}  // namespace orrery
