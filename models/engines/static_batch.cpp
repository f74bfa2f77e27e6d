// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/serving/scheduler.h"

namespace orrery {
namespace {

/// Whole prompts in one iteration, then a token each until all answers have ended; nobody joins in
/// between.
class StaticScheduler final : public Scheduler {
 public:
  explicit StaticScheduler(std::int64_t most) : most_(static_cast<std::size_t>(most)) {}

  void admit(Queue& queue, Batch& out) override {
    if (queue.running.empty()) {
      const std::size_t count = std::min(most_, queue.waiting.size());
      for (std::size_t i = 0; i < count; ++i) {
        queue.running.push_back(queue.waiting.front());
        queue.waiting.pop_front();
      }
    }
    out.shares.clear();
    for (std::size_t i = 0; i < queue.running.size(); ++i) {
      const Progress& progress = queue.running[i];
      out.shares.push_back({i, progress.decodes() ? 1 : progress.request.prompt});
    }
  }

 private:
  std::size_t most_;
};

struct StaticBatch final : SchedulerConfig {
  StaticBatch() { kind = "static"; }

  std::unique_ptr<Scheduler> make() const override {
    return std::make_unique<StaticScheduler>(max_num_seqs);
  }

  std::int64_t max_num_seqs = 8;

  static const config::Schema<StaticBatch>& schema() {
    static const config::Schema<StaticBatch> schema =
        config::Schema<StaticBatch>("static", "batches that are filled once and run to their end")
            .optional("kind", static_cast<std::string StaticBatch::*>(&SchedulerConfig::kind),
                      "which engine")
            .optional("max_num_seqs", &StaticBatch::max_num_seqs, "sequences of a batch at most",
                      config::between(1, 1e6));
    return schema;
  }
};

const config::Registered<SchedulerConfig>::Add<StaticBatch> added_static_batch(
    "static", "batches that are filled once and run to their end");

}  // namespace
}  // namespace orrery
