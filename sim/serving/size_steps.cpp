// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/size_steps.h"

#include <algorithm>

#include "sim/config/schema.h"

namespace orrery {

const config::Schema<SizeStep>& SizeStep::schema() {
  static const auto schema =
      config::Schema<SizeStep>("size_step", "sizes up to `to` tokens are multiples of `step`")
          .optional("to", &SizeStep::to, "most tokens of these sizes; 0: no limit",
                    config::between(0, 1e7))
          .required("step", &SizeStep::step, "tokens from one size to the next",
                    config::between(1, 1e6));
  return schema;
}

std::int64_t next_size(const std::vector<SizeStep>& steps, std::int64_t tokens) {
  const auto row = std::find_if(steps.begin(), steps.end(),
                                [&](const SizeStep& s) { return s.to == 0 || tokens <= s.to; });
  if (row == steps.end()) return tokens;
  return (tokens + row->step - 1) / row->step * row->step;
}

bool ascends(const std::vector<SizeStep>& steps) {
  return std::adjacent_find(steps.begin(), steps.end(), [](const SizeStep& a, const SizeStep& b) {
           return a.to == 0 || (b.to != 0 && b.to <= a.to);
         }) == steps.end();
}

}  // namespace orrery
