// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "models/engines/whole_answers.h"

namespace orrery {
namespace {

/// Iteration-level scheduling (Yu et al. 2022, "Orca", algorithm 1): requests join and leave
/// between iterations, first come first served, with their prompts whole and with room for whole
/// answers.
class OrcaScheduler final : public Scheduler {
 public:
  explicit OrcaScheduler(std::int64_t most) : most_(static_cast<std::size_t>(most)) {}

  void admit(Queue& queue, KvPool& pool, Batch& out) override {
    out.shares.clear();
    while (queue.running.size() < most_ && join_for_good(queue, pool)) continue;
    for (std::size_t i = 0; i < queue.running.size(); ++i)
      out.shares.push_back({i, queue.running[i].missing()});
  }

 private:
  std::size_t most_;
};

struct Orca final : WholeAnswers {
  Orca() : WholeAnswers("orca", 128) {}

  std::unique_ptr<Scheduler> make() const override {
    return std::make_unique<OrcaScheduler>(max_num_seqs);
  }

  static const config::Schema<Orca>& schema() {
    static const config::Schema<Orca> schema = whole_answers_schema<Orca>(
        "orca", "iteration-level batching with whole prompts and room for whole answers");
    return schema;
  }
};

const config::Registered<SchedulerConfig>::Add<Orca> added_orca(
    "orca", "iteration-level batching with whole prompts and room for whole answers");

}  // namespace
}  // namespace orrery
