// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/search/run_search.h"

#include <chrono>
#include <optional>

#include "sim/app/sweeps/search/proposal.h"

namespace orrery {
namespace {

/// What progress of a search tells: that of a generation, with those before it.
class SoFar {
 public:
  explicit SoFar(std::uint64_t evaluations) : evaluations_(evaluations) {}

  SweepTally with(SweepTally tally, const Search& search) {
    const bool last = search.at_last_level();
    tally.places = evaluations_;
    tally.done = search.evaluated().size() + (last ? tally.done : 0);
    tally.simulated += simulated_;
    tally.from_store += from_store_;
    tally.failed += failed_;
    const auto& best = tally.best;
    const bool better =
        best && (!best_ || (best->most ? best->value > best_->value : best->value < best_->value));
    if (better && last) best_ = best;
    tally.best = best_;
    return tally;
  }

  void add(const SweepResults& generation) {
    simulated_ += generation.simulated;
    from_store_ += generation.from_store;
    failed_ += generation.failed;
  }

 private:
  std::uint64_t evaluations_;
  std::uint64_t simulated_ = 0, from_store_ = 0, failed_ = 0;
  std::optional<BestResult> best_;
};

}  // namespace

SearchResults run_search(const std::vector<Sweep>& levels, const SearchConfig& config,
                         ResultStore& store, const SweepOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  SearchResults results;
  for (std::size_t i = 0; i < levels.size(); ++i)
    results.levels.push_back(
        {i < config.fidelity.size() ? to_string(config.fidelity[i]) : "", 0, 0});
  const Scorer score(levels.back());
  std::vector<std::uint64_t> begin_with;
  wait_for_store([&] { begin_with = beginning_of(levels.back(), config, store); },
                 options.store_locked);
  results.begun_from = begin_with.size();
  Search search(levels.back(), config, begin_with);
  SoFar so_far(static_cast<std::uint64_t>(config.evaluations));
  while (!search.wanted().empty() && results.stopped.empty()) {
    SweepOptions of_generation = options;
    of_generation.keep_all = true;
    for (const std::uint64_t place : search.wanted())
      append(of_generation.places, static_cast<std::size_t>(place));
    of_generation.progress = [&](const SweepTally& tally) {
      if (options.progress) options.progress(so_far.with(tally, search));
    };
    const SweepResults found = run_sweep(levels[search.level()], store, of_generation);
    so_far.add(found);
    results.levels[search.level()].from_store += found.from_store;
    results.levels[search.level()].simulated += found.simulated;
    results.failed += found.failed;
    results.stopped = found.stopped;
    if (!results.stopped.empty()) break;
    std::vector<Score> scores;
    for (const PointResult& kept : found.kept)
      scores.push_back(score(kept.record, kept.point.case_index));
    search.tell(scores);
  }
  results.evaluated = search.evaluated();
  results.exhausted = search.exhausted();
  results.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return results;
}

}  // namespace orrery
