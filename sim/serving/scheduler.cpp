// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/scheduler.h"

#include <algorithm>
#include <utility>

namespace orrery {

BatchShape Batch::shape(const Queue& queue, std::int64_t draft_tokens) {
  BatchShape shape;
  shape.queries = 1 + draft_tokens;
  chunks.clear();
  adapters.clear();
  for (const Share& share : shares) {
    const RequestState& progress = queue.running[share.running];
    adapters.add(progress.request.adapter);
    if (progress.decodes()) {
      ++shape.sequences;
      shape.context += progress.cached;
      shape.longest = std::max(shape.longest, progress.cached);
    } else {
      chunks.push_back({share.tokens, progress.cached, share.tokens == progress.missing()});
    }
  }
  shape.chunks = chunks;
  shape.adapters = adapters.size();
  return shape;
}

void Batch::put_off_prompts(const Queue& queue) {
  std::erase_if(shares, [&](const Share& s) { return !queue.running[s.running].decodes(); });
}

void Batch::ran(Queue& queue) {
  for (Share& share : shares) {
    RequestState& progress = queue.running[share.running];
    share.decodes = progress.decodes();
    progress.cached += share.tokens;
    share.samples = progress.missing() == 0;
    if (share.samples) ++progress.produced;
  }
}

void preempt_last(Queue& queue, KvPool& pool) {
  RequestState last = std::move(queue.running.back());
  queue.running.pop_back();
  pool.release(last);
  ++last.preemptions;
  queue.waiting.push_front(std::move(last));
}

bool goes_before(const Request& a, const Request& b) {
  if (a.priority != b.priority) return a.priority < b.priority;
  return a.arrival != b.arrival ? a.arrival < b.arrival : a.id < b.id;
}

Picoseconds HostCosts::iteration_time(Picoseconds device, std::size_t sequences, double kernels,
                                      bool follows) const {
  const Picoseconds host = to_picoseconds(iteration + sequence * static_cast<double>(sequences));
  const Picoseconds launches = to_picoseconds(launch * kernels);
  return to_picoseconds(gap) + (overlapped && follows ? std::max(device, host + launches)
                                                      : host + std::max(device, launches));
}

std::int64_t SchedulerConfig::captured_graphs() const {
  constexpr std::int64_t kMost = 1000;
  std::int64_t count = 0;
  const std::int64_t most = memory().most_sampled;
  for (std::int64_t size = padded(1, true); count < kMost && size <= most && runs_graph(size, true);
       size = padded(size + 1, true))
    ++count;
  return count;
}

const config::Schema<HostCosts>& HostCosts::schema() {
  static const auto schema =
      config::Schema<HostCosts>("host", "work of the host that devices wait for")
          .optional("iteration", &HostCosts::iteration,
                    "time of each iteration: scheduling, inputs, sampling, output",
                    config::at_least(0))
          .optional("sequence", &HostCosts::sequence, "time for each sequence of an iteration",
                    config::at_least(0))
          .optional("gap", &HostCosts::gap,
                    "time between iterations that devices wait even where the host prepares the "
                    "next one beside them: tokens taken back, inputs laid out, the next launch",
                    config::at_least(0))
          .optional("request", &HostCosts::request,
                    "time of a request before it waits: parsing, tokens, queues of processes",
                    config::at_least(0))
          .optional(
              "launch", &HostCosts::launch,
              "time to launch a kernel of an iteration that does not run as a captured graph, "
              "as none with prompts does; devices wait where all launches take longer",
              config::at_least(0));
  return schema;
}

}  // namespace orrery
