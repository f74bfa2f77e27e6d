// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "sim/config/registry.h"
#include "sim/serving/request.h"

namespace orrery {

/// Knows what of prompts an instance has in its cache.
class KeptPrefixes {
 public:
  KeptPrefixes() = default;
  KeptPrefixes(const KeptPrefixes&) = default;
  KeptPrefixes& operator=(const KeptPrefixes&) = default;
  virtual ~KeptPrefixes() = default;
  /// Tokens of the prompt that need not be computed.
  virtual std::int64_t kept(const Request& request) const = 0;
};

/// The load of an instance as its last report had it, plus all requests that the router has sent
/// there since: a router counts a request from the moment it sends it.
struct InstanceView {
  /// Requests without a token of this instance: on their way, waiting, or in their prefill.
  std::int64_t waiting = 0;
  std::int64_t running = 0;  ///< all others
  std::int64_t tokens = 0;   ///< prompt tokens of all these
  /// The prefixes in its KV cache, always up to date; null: unknown.
  const KeptPrefixes* prefixes = nullptr;
  std::size_t instance = 0;  ///< number of the instance in the fleet

  std::int64_t kept(const Request& request) const {
    return prefixes == nullptr ? 0 : prefixes->kept(request);
  }
};

/// Chooses the instance that takes a request. Answers return through the router, so it can keep
/// account of what it has sent; the calls below tell it.
class Router {
 public:
  Router() = default;
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;
  virtual ~Router() = default;

  /// @param instances at least one
  /// @return an index into `instances`
  virtual std::size_t choose(const Request& request, std::span<const InstanceView> instances) = 0;
  /// The router sends a request to the instance that it chose (a number in the fleet).
  virtual void sent(const Request& /*request*/, std::size_t /*instance*/) {}
  /// The prefill of a request has ended: its first token came back.
  virtual void prefilled(const Request& /*request*/) {}
  /// The instance has finished its part of a request.
  virtual void answered(const Request& /*request*/) {}
};

/// Chooses the instance with the least cost; of equals the next after the last one chosen. A
/// replica that has just taken a request is busy with its prefill, so the one chosen longest ago is
/// the better of two with as many requests (vLLM rotates too from 0.27 on, pull request 49204).
class LeastCost {
 public:
  /// @param cost of an InstanceView; numbers that can be compared
  template <class Cost>
  std::size_t choose(std::span<const InstanceView> instances, const Cost& cost) {
    std::size_t begin = 0;
    while (begin < instances.size() && instances[begin].instance <= last_) ++begin;
    if (!any_) begin = 0;
    std::size_t best = begin % instances.size();
    auto least = cost(instances[best]);
    for (std::size_t i = 1; i < instances.size(); ++i) {
      const std::size_t at = (begin + i) % instances.size();
      const auto own = cost(instances[at]);
      if (!(own < least)) continue;
      least = own;
      best = at;
    }
    any_ = true;
    last_ = instances[best].instance;
    return best;
  }

 private:
  bool any_ = false;
  std::size_t last_ = 0;  ///< number of the instance chosen last
};

/// Routers by their names: `const Routers::Register added("round_robin", "one line of help",
/// make)`.
using Routers = Registry<std::function<std::unique_ptr<Router>()>>;

}  // namespace orrery
