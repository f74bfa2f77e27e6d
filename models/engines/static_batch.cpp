// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "models/engines/whole_answers.h"

namespace orrery {
namespace {

/// Whole prompts in one iteration, then a token each until all answers have ended; nobody joins in
/// between.
class StaticScheduler final : public Scheduler {
 public:
  explicit StaticScheduler(std::int64_t most) : most_(static_cast<std::size_t>(most)) {}

  void admit(Queue& queue, KvPool& pool, Batch& out) override {
    out.shares.clear();
    if (queue.running.empty()) {
      while (queue.running.size() < most_ && join_for_good(queue, pool)) continue;
    }
    for (std::size_t i = 0; i < queue.running.size(); ++i)
      out.shares.push_back({i, queue.running[i].missing()});
  }

 private:
  std::size_t most_;
};

struct StaticBatch final : WholeAnswers {
  StaticBatch() : WholeAnswers("static", 8) {}

  std::unique_ptr<Scheduler> make() const override {
    return std::make_unique<StaticScheduler>(max_num_seqs);
  }

  static const config::Schema<StaticBatch>& schema() {
    static const config::Schema<StaticBatch> schema = whole_answers_schema<StaticBatch>(
        "static", "batches that are filled once and run to their end");
    return schema;
  }
};

const config::Registered<SchedulerConfig>::Add<StaticBatch> added_static_batch(
    "static", "batches that are filled once and run to their end");

}  // namespace
}  // namespace orrery
