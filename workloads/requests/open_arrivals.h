// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sim/serving/request_source.h"
#include "sim/units/units.h"
#include "workloads/requests/lengths.h"

namespace orrery {

/// Prefixes that many prompts share: system prompts, documents.
struct SharedPrefixes {
  std::int64_t groups = 1;     ///< number of prefixes; a prompt has each with equal probability
  std::int64_t tokens = 1024;  ///< tokens of each, in front of those of `input`
  static const config::Schema<SharedPrefixes>& schema();
};

/// Requests of users who do not wait for each other: what such sources have in common. A file adds
/// one by saying how the gaps between arrivals are distributed.
struct OpenArrivals : RequestSourceConfig {
  Hertz rate{1};
  double urgent = 0;  ///< share of the requests that go before others
  std::int64_t requests = 1000, seed = 0;
  Lengths input = Lengths::of(1024), output = Lengths::of(128);
  std::optional<SharedPrefixes> shared_prefixes;  ///< none: prompts share nothing

  /// The next gap over the mean one, from a sequence of random numbers (next_random).
  virtual double gap(std::uint64_t& state) const = 0;
  std::int64_t count() const override { return requests; }
  std::unique_ptr<RequestSource> make() const override;
};

template <class T>
config::Schema<T> open_arrivals_schema(const std::string& name, const std::string& help) {
  using config::between;
  using O = OpenArrivals;
  config::Schema<T> schema = source_schema<T>(name, help);
  schema
      .required("rate", static_cast<Hertz T::*>(&O::rate),
                "requests that arrive in a second, on average: 10 /s", config::positive())
      .optional("urgent", static_cast<double T::*>(&O::urgent),
                "share of the requests with priority 0; others have 1", between(0, 1))
      .optional("requests", static_cast<std::int64_t T::*>(&O::requests), "requests in all",
                between(1, 1e9))
      .optional("input", static_cast<Lengths T::*>(&O::input), "tokens of a prompt")
      .optional("output", static_cast<Lengths T::*>(&O::output), "output tokens of a request")
      .optional("shared_prefixes",
                static_cast<std::optional<SharedPrefixes> T::*>(&O::shared_prefixes),
                "prefixes that prompts share, as of vLLM's benchmark prefix_repetition")
      .optional("seed", static_cast<std::int64_t T::*>(&O::seed), "seed of arrivals and lengths",
                between(0, 1e15))
      .elsewhere(config::Registered<RequestSourceConfig>::with_key);
  return schema;
}

}  // namespace orrery
