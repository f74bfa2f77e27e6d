// SPDX-License-Identifier: Apache-2.0
// Deadlines that are moved over and over before they expire, as the ends of flows are.
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "sim/kernel/deadline_heap.h"
#include "tests/bench/contest.h"
#include "tests/bench/contestants.h"

namespace orrery::bench {
namespace {

constexpr std::uint64_t kUpdates = 2'000'000;
constexpr std::uint64_t kSpread = 1'000'000'000;

Sample per_update(double begin, double memory_before, double memory_after) {
  return {(cpu_seconds() - begin) / static_cast<double>(kUpdates), memory_after - memory_before};
}

Sample deadline_heap(std::uint32_t deadlines) {
  Random random(1);
  DeadlineHeap<> heap(deadlines);
  for (std::uint32_t id = 0; id < deadlines; ++id) {
    heap.set(id, random(kSpread));
  }
  const double memory = resident_bytes();
  const double begin = cpu_seconds();
  for (std::uint64_t i = 0; i < kUpdates; ++i) {
    heap.set(static_cast<std::uint32_t>(random(deadlines)), random(kSpread));
  }
  const double grown = resident_bytes();
  while (!heap.empty()) {
    heap.erase(heap.top());
  }
  return per_update(begin, memory, grown);
}

Sample cancel_and_notify(std::uint32_t deadlines) {
  Random random(1);
  std::vector<sc_core::sc_event> events(deadlines);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  for (sc_core::sc_event& event : events) {
    event.notify(sc_core::sc_time::from_value(random(kSpread)));
  }
  const double memory = resident_bytes();
  const double begin = cpu_seconds();
  for (std::uint64_t i = 0; i < kUpdates; ++i) {
    sc_core::sc_event& event = events[random(deadlines)];
    event.cancel();
    event.notify(sc_core::sc_time::from_value(random(kSpread)));
  }
  const double grown = resident_bytes();
  sc_core::sc_start();
  return per_update(begin, memory, grown);
}

}  // namespace

void add_deadline_contest() {
  for (const auto& [label, count] :
       std::vector<std::pair<std::string, std::uint32_t>>{{"1k", 1000}, {"100k", 100'000}}) {
    const std::uint32_t deadlines = count;
    const std::string heap = "deadline/heap/" + label;
    const std::string systemc = "deadline/cancel_notify/" + label;
    add_contestant(heap, [deadlines] { return deadline_heap(deadlines); });
    add_contestant(systemc, [deadlines] { return cancel_and_notify(deadlines); });
    add_comparison({"E5", "update of a deadline / cancel, notify and drain, " + label, heap,
                    systemc, Quantity::kSeconds, Limit::kAtMost, 0.25});
    add_comparison({"E5", "memory growth in 2 M updates [B], " + label, heap, "", Quantity::kBytes,
                    Limit::kAtMost, 0});
  }
}

}  // namespace orrery::bench
