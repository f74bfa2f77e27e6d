// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sim/config/registered.h"
#include "sim/serving/iteration.h"
#include "sim/serving/request.h"

namespace orrery {

/// Requests of one instance: those that wait, as they came, and those that it works on.
struct Queue {
  std::deque<Progress> waiting;
  std::vector<Progress> running;
};

/// What an instance does in its next iteration: new tokens of each running request.
struct Batch {
  struct Share {
    std::size_t running = 0;  ///< place in Queue::running
    std::int64_t tokens = 1;
  };
  std::vector<Share> shares;
  std::vector<Chunk> chunks;  ///< chunks of shape(), kept for the next one

  /// As a pricer sees it. Valid until the next call.
  BatchShape shape(const Queue& queue);
  /// The iteration has run: caches grow, and who has all of a prompt gets a token. Requests that
  /// are done leave `queue.running`, in order, for `finished`.
  void ran(Queue& queue, std::vector<Progress>& finished) const;
};

/// The policy of an engine: which requests share the next iteration. State is that of the instance.
class Scheduler {
 public:
  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;

  /// Takes requests from `queue.waiting` into `queue.running` and fills `out` with what runs next;
  /// empty where nothing can.
  virtual void admit(Queue& queue, Batch& out) = 0;
};

/// Keys of an engine, chosen by `kind`. A file adds one with an object
/// `const config::Registered<SchedulerConfig>::Add<StaticBatch>`.
struct SchedulerConfig {
  virtual ~SchedulerConfig() = default;
  virtual std::unique_ptr<Scheduler> make() const = 0;

  std::string kind;  ///< "static": the name that it is registered by

  static const config::Choices& choices() {
    return config::Registered<SchedulerConfig>::choices("kind", "static");
  }
  static const SchedulerConfig* view(const std::string& name, void* object) {
    return config::Registered<SchedulerConfig>::view(name, object);
  }
};

}  // namespace orrery
