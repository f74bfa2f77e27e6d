// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace orrery::bench {

/// What one run of a contestant took.
struct Sample {
  double seconds = 0;  ///< CPU time of the process, per item
  double bytes = 0;    ///< memory, where that is what is measured
  double count = 0;    ///< number of events, where that is what is measured
};

/// CPU time that this process has used, in seconds.
double cpu_seconds();
/// Resident memory of this process, in bytes; the kernel is up to some hundred KB behind.
double resident_bytes();
/// Memory that this process has allocated, exact.
double allocated_bytes();

/// Registers a contestant. Each repetition runs in a child process of its own, because a process
/// can hold one SystemC context only; the repetitions of all contestants are interleaved at random.
void add_contestant(const std::string& name, std::function<Sample()> run);

enum class Quantity { kSeconds, kBytes, kCount };
enum class Limit { kAtMost, kAtLeast };

/// One line of the report: medians of contestants, one over the other, and what is demanded.
struct Comparison {
  std::string id;
  std::string text;
  std::string numerator;
  std::string denominator;  ///< empty: the numerator as it is
  Quantity quantity = Quantity::kSeconds;
  Limit limit = Limit::kAtMost;
  double demand = 0;
  bool guide = false;  ///< guide to compare with, not a demand
};
void add_comparison(Comparison comparison);

/// Runs what was registered, prints the comparisons; 1 if a demand was missed.
int run_contest(int argc, char** argv);

/// A fast generator whose cost disappears behind an event's (xorshift64, Marsaglia 2003).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {}
  /// From 0 to below - 1; `below` up to 2^32.
  std::uint64_t operator()(std::uint64_t below) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return ((state_ >> 32) * below) >> 32;  // a division would cost as much as a small event
  }

 private:
  std::uint64_t state_;
};

}  // namespace orrery::bench
