// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/instance.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
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
                   IterationPricer& pricer, InstanceRole role, const Speculation& speculation,
                   const std::optional<HostCosts>& host)
    : engine_(engine),
      host_(host.value_or(engine.host)),
      pricer_(pricer),
      request_delay_(to_picoseconds(host_.request)),
      role_(role),
      speculation_(speculation) {
  ranks_.reserve(static_cast<std::size_t>(ranks));
  for (int i = 0; i < ranks; ++i) ranks_.emplace_back(engine, kv);
}

void Instance::require_room(const Request& request) const {
  const KvPool& pool = ranks_.front().pool;
  if (pool.fits_alone(request)) return;
  throw std::overflow_error(text_of(request) + " does not fit in a cache of " +
                            std::to_string(pool.blocks() * pool.block_tokens()) + " tokens");
}

/// Ranks, those with the fewest requests first.
std::vector<std::size_t> Instance::by_load() const {
  const auto load = [this](std::size_t rank) {
    const Queue& queue = ranks_[rank].queue;
    return 4 * (queue.waiting.size() + ranks_[rank].expected) + queue.running.size();
  };
  std::vector<std::size_t> ranks(ranks_.size());
  std::iota(ranks.begin(), ranks.end(), std::size_t{0});
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](std::size_t a, std::size_t b) { return load(a) < load(b); });
  return ranks;
}

void Instance::add(Request request) {
  RequestState state{.request = std::move(request)};
  if (role_ == InstanceRole::kPrefill) state.rest = std::exchange(state.request.output, 1) - 1;
  require_room(state.request);
  tokens_ += state.request.prompt;
  const std::size_t least = ranks_.size() == 1 ? 0 : by_load().front();
  ranks_[least].queue.waiting.push_back(std::move(state));
  look();
}

void Instance::expect(const Request& request) {
  ++expected_;
  tokens_ += request.prompt;
  look();
}

/// With the block of the token that comes next: it is taken into an iteration in any case.
std::optional<std::size_t> Instance::make_room(RequestState& state) {
  require_room(state.request);
  for (const std::size_t rank : by_load()) {
    KvPool& pool = ranks_[rank].pool;
    pool.find_prefix(state);
    if (pool.grow(state, state.request.prompt + 1 + pool.guesses() - state.cached)) {
      ++ranks_[rank].expected;
      return rank;
    }
    pool.release(state);
  }
  return std::nullopt;
}

void Instance::receive(RequestState state, std::size_t rank, Picoseconds now) {
  --expected_;
  --ranks_[rank].expected;
  state.cached = state.moved = state.request.prompt;
  state.moved_at = now;
  ranks_[rank].queue.waiting.push_back(std::move(state));
  look();
}

void Instance::let_go(Leaving& left) {
  ranks_[left.rank].pool.release(left.state);
  --held_;
}

std::int64_t Instance::kept(const Request& request) const {
  std::int64_t most = 0;
  for (const Rank& rank : ranks_) most = std::max(most, rank.pool.kept(request));
  return most;
}

/// Caches that came from other instances may hold all blocks, and none be left for those that run:
/// the last that came is dropped then, and computed again.
void Instance::admit(Rank& rank) {
  rank.scheduler->admit(rank.queue, rank.pool, rank.batch);
  while (rank.batch.shares.empty()) {
    auto& waiting = rank.queue.waiting;
    const auto last = std::find_if(waiting.rbegin(), waiting.rend(),
                                   [](const RequestState& p) { return p.moved > 0; });
    if (last == waiting.rend()) return;
    rank.pool.release(*last);
    ++last->preemptions;
    rank.scheduler->admit(rank.queue, rank.pool, rank.batch);
  }
}

Picoseconds Instance::begin(Picoseconds now) {
  Picoseconds device = 0;
  std::size_t most = 0;
  const Rank* stuck = nullptr;
  for (Rank& rank : ranks_) {
    admit(rank);
    if (rank.batch.shares.empty()) {
      if (!rank.queue.waiting.empty()) stuck = &rank;
      continue;
    }
    most = std::max(most, rank.batch.shares.size());
    BatchShape shape = rank.batch.shape(rank.queue, speculation_.guesses());
    const std::int64_t tokens = shape.tokens();
    shape.padding = engine_.padded(tokens, shape.chunks.empty()) - tokens;
    const IterationPrice price = pricer_.price(shape);
    device = std::max(device, price.time);
    energy_ += price.energy;
  }
  look();
  if (most == 0) {
    if (stuck == nullptr || expected_ > 0 || held_ > 0) return 0;
    throw std::overflow_error(text_of(stuck->queue.waiting.front().request) +
                              " never gets into an iteration of this engine");
  }
  const bool follows = iterations_ > 0 && last_end_ == now;
  begin_ = now;
  end_ = checked_add(now, host_.iteration_time(device, most, follows));
  return end_;
}

void Instance::end(Rank& rank, ServingLog& log, std::vector<RequestState>& finished,
                   std::vector<Leaving>& leaving) {
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
    if (share.decodes) speculation_.accept(p);
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
    tokens_ -= p->request.prompt;
    if (p->rest > 0) {
      p->request.output += std::exchange(p->rest, 0);
      ++held_;
      leaving.push_back({std::move(*p), static_cast<std::size_t>(&rank - ranks_.data())});
      continue;
    }
    rank.pool.release(*p);
    finished.push_back(std::move(*p));
  }
  running.erase(live, running.end());
}

void Instance::end(ServingLog& log, std::vector<RequestState>& finished,
                   std::vector<Leaving>& leaving) {
  for (Rank& rank : ranks_) end(rank, log, finished, leaving);
  ++iterations_;
  busy_time_ += end_ - begin_;
  last_end_ = end_;
  end_ = 0;
  look();
}

void Instance::look() {
  view_ = {.waiting = expected_, .tokens = tokens_, .prefixes = this};
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
