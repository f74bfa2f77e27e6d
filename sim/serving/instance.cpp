// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/instance.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace orrery {
namespace {

std::string text_of(const Request& request) {
  return "request " + std::to_string(request.id) + " of " + std::to_string(request.prompt) + " + " +
         std::to_string(request.output) + " tokens";
}

}  // namespace

Instance::Instance(const SchedulerConfig& engine, const KvRules& kv, int ranks,
                   IterationPricer& pricer)
    : host_(engine.host), pricer_(pricer), request_delay_(to_picoseconds(engine.host.request)) {
  ranks_.reserve(static_cast<std::size_t>(ranks));
  for (int i = 0; i < ranks; ++i) ranks_.emplace_back(engine, kv);
}

void Instance::add(Request request) {
  const auto load = [](const Rank& rank) {
    return 4 * rank.queue.waiting.size() + rank.queue.running.size();
  };
  Rank& least = *std::min_element(ranks_.begin(), ranks_.end(),
                                  [&](const Rank& a, const Rank& b) { return load(a) < load(b); });
  if (!least.pool.fits_alone(request)) {
    throw std::overflow_error(text_of(request) + " does not fit in a cache of " +
                              std::to_string(least.pool.blocks() * least.pool.block_tokens()) +
                              " tokens");
  }
  least.queue.waiting.push_back({.request = std::move(request)});
  ++view_.waiting;
}

Picoseconds Instance::begin(Picoseconds now) {
  Picoseconds device = 0;
  std::size_t most = 0;
  const Rank* stuck = nullptr;
  for (Rank& rank : ranks_) {
    rank.scheduler->admit(rank.queue, rank.pool, rank.batch);
    if (rank.batch.shares.empty()) {
      if (!rank.queue.waiting.empty()) stuck = &rank;
      continue;
    }
    most = std::max(most, rank.batch.shares.size());
    device = std::max(device, pricer_.time(rank.batch.shape(rank.queue)));
  }
  look();
  if (most == 0) {
    if (stuck == nullptr) return 0;
    throw std::overflow_error(text_of(stuck->queue.waiting.front().request) +
                              " never gets into an iteration of this engine");
  }
  const bool follows = iterations_ > 0 && last_end_ == now;
  begin_ = now;
  end_ = checked_add(now, host_.iteration_time(device, most, follows));
  return end_;
}

void Instance::end(Rank& rank, ServingLog& log, std::vector<RequestState>& finished) {
  if (rank.batch.shares.empty()) return;
  rank.batch.ran(rank.queue);
  std::int64_t steady = 0;  // tokens that follow one of the iteration before
  for (const Batch::Share& share : rank.batch.shares) {
    RequestState& p = rank.queue.running[share.running];
    if (p.started == kNotYet) {
      p.started = begin_;
      p.found = p.cached - share.tokens;
    }
    if (!share.samples) continue;
    if (p.produced == 1) {
      p.first_token = end_;
    } else if (p.last_token == begin_) {
      ++steady;
    } else {
      log.add_gap(end_ - p.last_token, 1);
    }
    p.last_token = end_;
  }
  log.add_gap(end_ - begin_, steady);
  auto& running = rank.queue.running;
  const auto live = std::stable_partition(running.begin(), running.end(),
                                          [](const RequestState& p) { return !p.done(); });
  for (auto p = live; p != running.end(); ++p) {
    rank.pool.release(*p);
    finished.push_back(std::move(*p));
  }
  running.erase(live, running.end());
}

void Instance::end(ServingLog& log, std::vector<RequestState>& finished) {
  for (Rank& rank : ranks_) end(rank, log, finished);
  ++iterations_;
  busy_time_ += end_ - begin_;
  last_end_ = end_;
  end_ = 0;
  look();
}

void Instance::look() {
  view_ = {};
  for (const Rank& rank : ranks_) {
    view_.waiting += static_cast<std::int64_t>(rank.queue.waiting.size());
    view_.running += static_cast<std::int64_t>(rank.queue.running.size());
  }
}

std::int64_t Instance::used_blocks() const {
  std::int64_t sum = 0;
  for (const Rank& rank : ranks_) sum += rank.pool.used();
  return sum;
}

}  // namespace orrery
