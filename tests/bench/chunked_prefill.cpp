// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/chunked_prefill.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <deque>
#include <numbers>
#include <vector>

#include "tests/bench/contest.h"

namespace orrery::bench {
namespace {

constexpr std::int64_t kBudget = 8192;
constexpr std::size_t kSequences = 256;

struct Turn {
  double arrival = 0;  ///< arrival in seconds
  std::int64_t prompt = 0, output = 0;
  std::int64_t context = 0;  ///< tokens in the cache
  std::int64_t taken = 0;    ///< tokens of the prompt that this iteration takes
};

double share(Random& random) {
  return (static_cast<double>(random(std::uint64_t{1} << 32)) + 0.5) * 0x1p-32;
}

/// Lognormal, by Box and Muller.
std::int64_t length(Random& random, double median, double spread) {
  const double radius = std::sqrt(-2 * std::log(share(random)));
  const double normal = radius * std::cos(2 * std::numbers::pi * share(random));
  return std::clamp<std::int64_t>(std::llround(median * std::exp(spread * normal)), 1, 30'000);
}

std::deque<Turn> trace(const TraceLoad& load) {
  Random random(load.seed);
  std::deque<Turn> all;
  double now = 0;
  for (int i = 0; i < load.requests; ++i) {
    now -= std::log(share(random)) / load.per_second;
    const std::int64_t prompt = length(random, load.prompt, load.prompt_spread);
    all.push_back({now, prompt, length(random, load.output, load.output_spread)});
  }
  return all;
}

class Instance {
 public:
  explicit Instance(std::deque<Turn> waiting) : waiting_(std::move(waiting)) {}

  bool done() const { return waiting_.empty() && running_.empty(); }
  BatchShape schedule() {
    if (running_.empty()) now_ = std::max(now_, waiting_.front().arrival);
    BatchShape shape;
    chunks_.clear();
    std::int64_t budget = kBudget;
    for (const Turn& turn : running_) {
      if (turn.context < turn.prompt) continue;
      ++shape.sequences;
      shape.context += turn.context;
      shape.longest = std::max(shape.longest, turn.context);
    }
    budget -= shape.sequences;
    for (Turn& turn : running_)
      if (turn.context < turn.prompt) take(turn, budget);
    while (budget > 0 && running_.size() < kSequences && !waiting_.empty() &&
           waiting_.front().arrival <= now_) {
      running_.push_back(waiting_.front());
      waiting_.pop_front();
      take(running_.back(), budget);
    }
    shape.chunks = chunks_;
    return shape;
  }
  void ran(Picoseconds time) {
    now_ += static_cast<double>(time) * 1e-12;
    for (Turn& turn : running_) {
      const bool decoded = turn.context >= turn.prompt;
      turn.context += decoded ? 1 : turn.taken;
      if (turn.context >= turn.prompt) --turn.output;
      turn.taken = 0;
    }
    std::erase_if(running_, [](const Turn& turn) { return turn.output <= 0; });
  }

 private:
  void take(Turn& turn, std::int64_t& budget) {
    turn.taken = std::min(budget, turn.prompt - turn.context);
    if (turn.taken <= 0) return;
    budget -= turn.taken;
    chunks_.push_back({turn.taken, turn.context, turn.context + turn.taken == turn.prompt});
  }

  std::deque<Turn> waiting_;
  std::vector<Turn> running_;
  std::vector<Chunk> chunks_;
  double now_ = 0;
};

}  // namespace

std::int64_t run_chunked_prefill(const TraceLoad& load,
                                 const std::function<Picoseconds(const BatchShape&)>& time) {
  Instance instance(trace(load));
  std::int64_t iterations = 0;
  for (; !instance.done(); ++iterations) instance.ran(time(instance.schedule()));
  return iterations;
}

namespace {

/// CPU time of this thread, in seconds.
double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// What reading the clock takes.
double clock_seconds() {
  constexpr int kReads = 10'000;
  const double begin = thread_seconds();
  for (int i = 1; i < kReads; ++i) thread_seconds();
  return (thread_seconds() - begin) / kReads;
}

}  // namespace

Asked ask(StepPricer& pricer, const TraceLoad& load) {
  const double read = clock_seconds();
  Asked asked;
  run_chunked_prefill(load, [&](const BatchShape& shape) {
    const std::int64_t missed = pricer.missed();
    const double begin = thread_seconds();
    const Picoseconds time = pricer.time(shape);
    const double seconds = thread_seconds() - begin - read;
    if (pricer.missed() == missed) {
      asked.hit_seconds += seconds;
      ++asked.hits;
    } else {
      asked.miss_seconds += seconds;
      asked.longest_miss = std::max(asked.longest_miss, seconds);
      ++asked.misses;
    }
    return time;
  });
  return asked;
}

}  // namespace orrery::bench
