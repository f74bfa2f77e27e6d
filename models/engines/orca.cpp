// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "models/engines/whole_answers.h"

namespace orrery {
namespace {

struct Orca final : WholeAnswers {
  Orca() : WholeAnswers("orca", 128) {}

  static const config::Schema<Orca>& schema() {
    static const config::Schema<Orca> schema = whole_answers_schema<Orca>(
        "orca", "iteration-level batching with whole prompts and room for all output tokens");
    return schema;
  }
};

const config::Registered<SchedulerConfig>::Add<Orca> added_orca(
    "orca", "iteration-level batching with whole prompts and room for all output tokens");

}  // namespace
}  // namespace orrery
