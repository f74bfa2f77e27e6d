// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "validation/checks/serving_rows.h"

namespace orrery::test {

/// A measured run of vLLM on one H100: 128 prompt tokens, 8 output tokens, both times 1 ms.
inline ServingRow row_of(const std::string& model, std::int64_t clients) {
  ServingRow row;
  row.id = model + "/" + std::to_string(clients);
  row.model = model;
  row.system = "h100_sxm";
  row.backend = "vllm";
  row.version = "0.18.0";
  row.image = "image=vllm/vllm-openai:v0.18.0";
  row.precision = "bf16";
  row.isl = 128;
  row.osl = 8;
  row.concurrency = clients;
  row.gpus = 1;
  row.ttft_ms = row.tpot_ms = 1;
  return row;
}

}  // namespace orrery::test
