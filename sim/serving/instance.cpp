// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/instance.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace orrery {
namespace {

std::string text_of(const Request& request) {
  return fmt::format("request {} of {} + {} tokens", request.id, request.prompt, request.output);
}

/// The sum of a number of all parts.
template <class Part>
std::int64_t sum_of(const std::vector<Part>& parts, std::int64_t (Part::*number)() const) {
  std::int64_t sum = 0;
  for (const Part& part : parts) sum += (part.*number)();
  return sum;
}

}  // namespace

Instance::Instance(const SchedulerConfig& engine, IterationPricer& pricer,
                   const InstanceRules& rules)
    : engine_(engine),
      host_(rules.host.value_or(engine.host)),
      pricer_(pricer),
      request_delay_(to_picoseconds(host_.request)),
      role_(rules.role),
      speculation_(rules.speculation),
      slowness_(rules.slowness),
      flights_(static_cast<std::size_t>(rules.lanes)) {
  for (int i = 0; i < rules.ranks; ++i) pools_.emplace_back(rules.kv);
  for (int i = 0; i < rules.ranks; ++i) adapters_.emplace_back(rules.adapters);
  for (int i = 0; i < rules.ranks * rules.lanes; ++i) {
    slots_.emplace_back(engine);
    slots_.back().queue.max_loras = rules.adapters.slots;
  }
  for (Flight& flight : flights_) flight.policy = engine.ranks_policy();
}

void Instance::require_room(const Request& request) const {
  const KvPool& pool = pools_.front();
  if (pool.fits_alone(request)) return;
  throw std::overflow_error(fmt::format("{} does not fit in a cache of {} tokens", text_of(request),
                                        pool.blocks() * pool.block_tokens()));
}

/// Those with the fewest requests first.
std::vector<Instance::Slot> Instance::by_load() const {
  const auto load = [this](Slot slot) {
    const Place& place = slots_[slot];
    return 4 * (place.queue.waiting.size() + place.come.size() + place.expected) +
           place.queue.running.size();
  };
  std::vector<Slot> slots(slots_.size());
  std::iota(slots.begin(), slots.end(), Slot{0});
  std::stable_sort(slots.begin(), slots.end(), [&](Slot a, Slot b) { return load(a) < load(b); });
  return slots;
}

void Instance::add(Request request, Picoseconds now) {
  RequestState state{.request = std::move(request)};
  if (role_ == InstanceRole::kPrefill) state.rest = std::exchange(state.request.output, 1) - 1;
  require_room(state.request);
  --expected_;
  ++unanswered_;
  const Slot least = slots_.size() == 1 ? 0 : by_load().front();
  slots_[least].come.emplace_back(now, std::move(state));
  look();
}

void Instance::expect(const Request& request) {
  ++expected_;
  tokens_ += request.prompt;
  look();
}

/// With the block of the token that comes next: it is taken into an iteration in any case.
std::optional<Instance::Slot> Instance::make_room(RequestState& state) {
  require_room(state.request);
  for (const Slot slot : by_load()) {
    KvPool& pool = pool_of(slot);
    pool.find_prefix(state);
    if (pool.grow(state, state.request.prompt + 1 + pool.draft_tokens() - state.cached)) {
      ++slots_[slot].expected;
      return slot;
    }
    pool.release(state);
  }
  return std::nullopt;
}

void Instance::receive(RequestState state, Slot slot, Picoseconds now) {
  --expected_;
  --slots_[slot].expected;
  state.cached = state.moved = state.request.prompt;
  state.moved_at = now;
  slots_[slot].come.emplace_back(now, std::move(state));
  look();
}

void Instance::let_go(Leaving& left) {
  pool_of(left.slot).release(left.state);
  --held_;
}

std::int64_t Instance::kept(const Request& request) const {
  std::int64_t most = 0;
  for (const KvPool& pool : pools_) most = std::max(most, pool.kept(request));
  return most;
}

/// Caches that came from other instances may hold all blocks, and none be left for those that run:
/// the last that came is dropped then, and computed again.
void Instance::admit(Slot slot) {
  Place& place = slots_[slot];
  place.scheduler->admit(place.queue, pool_of(slot), place.batch);
  while (place.batch.shares.empty()) {
    auto& waiting = place.queue.waiting;
    const auto last = std::find_if(waiting.rbegin(), waiting.rend(),
                                   [](const RequestState& p) { return p.moved > 0; });
    if (last == waiting.rend()) return;
    pool_of(slot).release(*last);
    ++last->preemptions;
    place.scheduler->admit(place.queue, pool_of(slot), place.batch);
  }
}

/// Requests that have come until a time wait from now on.
void Instance::let_wait(std::size_t lane, Picoseconds until) {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    Place& place = slots_[slot(lane, rank)];
    while (!place.come.empty() && place.come.front().first <= until) {
      place.queue.waiting.push_back(std::move(place.come.front().second));
      place.come.pop_front();
    }
  }
}

bool Instance::has_come(std::size_t lane) const {
  for (std::size_t rank = 0; rank < ranks(); ++rank)
    if (!slots_[slot(lane, rank)].come.empty()) return true;
  return false;
}

BatchShape Instance::shape(Place& place) const {
  BatchShape shape = place.batch.shape(place.queue, speculation_.draft_tokens());
  const std::int64_t tokens = shape.tokens();
  shape.padding = engine_.padded(tokens, shape.chunks.empty()) - tokens;
  return shape;
}

/// Shapes of all ranks' batches, after what the engine decides for all of them.
void Instance::look_at_ranks(std::size_t lane) {
  shapes_.clear();
  for (std::size_t rank = 0; rank < ranks(); ++rank)
    shapes_.push_back(shape(slots_[slot(lane, rank)]));
  RanksPolicy* policy = flights_[lane].policy.get();
  if (policy == nullptr || !policy->puts_off_prompts(shapes_)) return;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    Place& place = slots_[slot(lane, rank)];
    place.batch.put_off_prompts(place.queue);
    shapes_[rank] = shape(place);
  }
}

/// Rounded up; 0 where there is one rank.
std::int64_t Instance::mean_tokens() const {
  if (ranks() == 1) return 0;
  std::int64_t tokens = 0;
  for (const BatchShape& shape : shapes_) tokens += shape.tokens() + shape.padding;
  const auto number = static_cast<std::int64_t>(ranks());
  return (tokens + number - 1) / number;
}

Instance::Work Instance::work(std::size_t lane) {
  Work work;
  for (std::size_t rank = 0; rank < ranks(); ++rank) admit(slot(lane, rank));
  look_at_ranks(lane);
  const std::int64_t mean = mean_tokens();
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    Place& place = slots_[slot(lane, rank)];
    if (place.batch.shares.empty()) {
      if (!place.queue.waiting.empty()) work.stuck = &place;
      continue;
    }
    work.sequences = std::max(work.sequences, place.batch.shares.size());
    shapes_[rank].mean_tokens = mean;
    const BatchShape& shape = shapes_[rank];
    const IterationPrice price = pricer_.price(shape);
    kinds_.of(shape).add(shape, price.time);
    const auto time = static_cast<Picoseconds>(
        std::llround(static_cast<double>(price.time) * slowness_.of(shape)));
    // What is brought back comes layer by layer, beside the computing.
    const Picoseconds load = to_picoseconds(pools_[rank].take_load_time());
    // Adapters are copied before the model runs (vllm/v1/worker, set_active_loras).
    const Picoseconds adapters = to_picoseconds(adapters_[rank].use(place.batch.adapters));
    work.device = std::max({work.device, time + adapters, load});
    if (!engine_.runs_graph(shape.tokens(), shape.chunks.empty()))
      work.kernels = std::max(work.kernels, price.kernels);
    energy_ += price.energy;
  }
  return work;
}

/// A batch enters the first stage when that has done its part of the one before, and leaves the
/// last stage a stage's time after it at least.
void Instance::fly(std::size_t lane, const Work& work, Picoseconds now) {
  Flight& flight = flights_[lane];
  const bool follows = flight.last_end == now && now > 0;
  const Picoseconds time = host_.iteration_time(work.device, work.sequences, work.kernels, follows);
  const Picoseconds stage = time / flights_.size();
  flight.asked = now;
  flight.begin = std::max(now, first_free_);
  flight.end = std::max(checked_add(flight.begin, time), last_out_ + stage);
  first_free_ = flights_.size() == 1 ? 0 : flight.begin + stage;
  last_out_ = flights_.size() == 1 ? 0 : flight.end;
  ++in_flight_;
}

std::optional<Instance::Begun> Instance::begin(Picoseconds now) {
  const Place* stuck = nullptr;
  for (std::size_t tried = 0; tried < flights_.size(); ++tried) {
    const std::size_t lane = (next_lane_ + tried) % flights_.size();
    if (flights_[lane].end > 0) continue;
    const Flight& flight = flights_[lane];
    const bool prepared = host_.overlapped && flight.last_end == now && now > 0;
    let_wait(lane, prepared ? flight.asked : now);
    Work chosen = work(lane);
    if (chosen.sequences == 0 && has_come(lane)) {  // nothing ran beside which to prepare another
      let_wait(lane, now);
      chosen = work(lane);
    }
    if (chosen.sequences == 0) {
      if (chosen.stuck != nullptr) stuck = chosen.stuck;
      continue;
    }
    fly(lane, chosen, now);
    next_lane_ = (lane + 1) % flights_.size();
    look();
    return Begun{lane, flights_[lane].begin, flights_[lane].end};
  }
  look();
  if (stuck != nullptr && expected_ == 0 && held_ == 0 && in_flight_ == 0)
    throw std::overflow_error(text_of(stuck->queue.waiting.front().request) +
                              " never gets into an iteration of this engine");
  return std::nullopt;
}

void Instance::end_slot(Slot slot, ServingLog& log, Ended& ended) {
  Place& place = slots_[slot];
  const Flight& flight = flights_[slot / ranks()];
  if (place.batch.shares.empty()) return;
  place.batch.ran(place.queue);
  std::int64_t steady = 0;  // tokens that follow one of the iteration before
  for (const Batch::Share& share : place.batch.shares) {
    RequestState& p = place.queue.running[share.running];
    if (p.started == kNotYet) {
      p.started = flight.begin;
      p.found = p.cached - share.tokens;
    }
    if (!share.samples) continue;
    if (share.decodes) speculation_.accept(p);
    if (p.produced == 1) {
      p.first_token = flight.end;
      --unanswered_;
      ended.prefilled.push_back(p.request);
    } else if (p.last_token == flight.asked) {
      ++steady;
    } else {
      log.add_gap(flight.end - p.last_token, 1);
    }
    p.last_token = flight.end;
  }
  log.add_gap(flight.end - flight.asked, steady);
  auto& running = place.queue.running;
  const auto live = std::stable_partition(running.begin(), running.end(),
                                          [](const RequestState& p) { return !p.done(); });
  for (auto p = live; p != running.end(); ++p) {
    tokens_ -= p->request.prompt;
    if (p->rest > 0) {
      p->request.output += std::exchange(p->rest, 0);
      ++held_;
      ended.leaving.push_back({std::move(*p), slot});
      continue;
    }
    pool_of(slot).release(*p);
    ended.finished.push_back(std::move(*p));
  }
  running.erase(live, running.end());
  place.batch.shares.clear();
}

void Instance::end(std::size_t lane, ServingLog& log, Ended& ended) {
  ended.prefilled.clear();
  ended.finished.clear();
  ended.leaving.clear();
  Flight& flight = flights_[lane];
  for (std::size_t rank = 0; rank < ranks(); ++rank) end_slot(slot(lane, rank), log, ended);
  ++iterations_;
  busy_time_ += flight.end - std::min(flight.end, std::max(flight.begin, busy_until_));
  busy_until_ = std::max(busy_until_, flight.end);
  flight.last_end = std::exchange(flight.end, 0);
  --in_flight_;
  look();
}

void Instance::look() {
  view_ = {.waiting = expected_, .tokens = tokens_, .prefixes = this};
  for (const Place& place : slots_) {
    const auto waiting = static_cast<std::int64_t>(place.queue.waiting.size() + place.come.size());
    view_.waiting += role_ == InstanceRole::kDecode ? waiting : 0;
    view_.running += static_cast<std::int64_t>(place.queue.running.size()) + waiting;
  }
  if (role_ != InstanceRole::kDecode) view_.waiting += unanswered_;
  view_.running -= view_.waiting - expected_;
}

std::int64_t Instance::used_blocks() const { return sum_of(pools_, &KvPool::used); }

std::int64_t Instance::adapter_loads() const { return sum_of(adapters_, &AdapterSlots::loads); }

std::int64_t Instance::loaded_tokens() const { return sum_of(pools_, &KvPool::loaded_tokens); }

}  // namespace orrery
