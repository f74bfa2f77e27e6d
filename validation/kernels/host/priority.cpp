// SPDX-License-Identifier: Apache-2.0
#include "host/priority.h"

#include <algorithm>
#include <stdexcept>

namespace orrery::measure {

const std::vector<PriorityPart>& priority_parts() {
  static const std::vector<PriorityPart> parts = {
      // GEMMs and attention of the models
      {"gemm", 150},
      {"grouped_gemm", 50},
      {"batched_gemm", 8},
      {"attention_prefill", 85},
      {"attention_decode", 95},
      // gaps between launches, from the host and in graphs
      {"launch", 15},
      // clocks and power
      {"power", 36},
      {"sustained_decode", 12},
      {"sustained_prefill", 12},
      // copies between host and device
      {"copies", 20}};
  return parts;
}

double priority_budget_s(const std::string& name) {
  for (const PriorityPart& part : priority_parts()) {
    if (name == part.name) return part.budget_s;
  }
  return 0;
}

std::vector<const Measurement*> prioritised(const std::vector<Measurement>& all) {
  std::vector<const Measurement*> result;
  for (const PriorityPart& part : priority_parts()) {
    const auto found = std::find_if(
        all.begin(), all.end(),
        [&part](const Measurement& measurement) { return measurement.name == part.name; });
    if (found == all.end()) {
      throw std::logic_error("--priority: there is no measurement '" + std::string(part.name) +
                             "'");
    }
    result.push_back(&*found);
  }
  return result;
}

std::string priority_listing(const std::vector<Measurement>& all) {
  std::string text;
  for (const Measurement* measurement : prioritised(all)) {
    text += (text.empty() ? "--priority measures, in this order: " : ", ") + measurement->name;
  }
  return text + '\n';
}

}  // namespace orrery::measure
