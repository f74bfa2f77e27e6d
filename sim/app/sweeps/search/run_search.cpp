// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/search/run_search.h"

#include <chrono>
#include <utility>

#include "sim/app/sweeps/search/beginning.h"

namespace orrery {

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
  while (!search.wanted().empty() && results.stopped.empty()) {
    SweepOptions of_generation = options;
    of_generation.places = &search.wanted();
    of_generation.progress = [&](std::uint64_t done, const std::string& name) {
      if (options.progress) options.progress(search.evaluated().size() + done, name);
    };
    const SweepResults found = run_sweep(levels[search.level()], store, of_generation);
    results.levels[search.level()].from_store += found.from_store;
    results.levels[search.level()].simulated += found.simulated;
    results.failed += found.failed;
    results.stopped = found.stopped;
    if (!results.stopped.empty()) break;
    std::vector<Score> scores;
    scores.reserve(found.kept.size());
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
