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

/// What a router sees of an instance.
struct InstanceView {
  std::int64_t waiting = 0;  ///< requests that wait, or that another instance sends
  std::int64_t running = 0;  ///< requests that run
  std::int64_t tokens = 0;   ///< tokens of the prompts of all these
  /// What it has of prompts; null: nobody knows.
  const KeptPrefixes* prefixes = nullptr;

  std::int64_t kept(const Request& request) const {
    return prefixes == nullptr ? 0 : prefixes->kept(request);
  }
};

/// Which instance takes a request.
class Router {
 public:
  Router() = default;
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;
  virtual ~Router() = default;

  /// @param instances at least one
  /// @return the place of one of them
  virtual std::size_t choose(const Request& request, std::span<const InstanceView> instances) = 0;
};

/// Where requests that wait count four times those that run, as vLLM balances its data parallel
/// ranks (v1/engine/core_client.py, get_core_engine_for_request): of equals the first.
std::size_t least_loaded(std::span<const InstanceView> instances);

/// Routers by their names: `const Routers::Register added("round_robin", "one line of help",
/// make)`.
using Routers = Registry<std::function<std::unique_ptr<Router>()>>;

}  // namespace orrery
