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

/// What a router sees of an instance.
struct InstanceView {
  std::int64_t waiting = 0;  ///< requests that wait
  std::int64_t running = 0;  ///< requests that run
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

/// Routers by their names: `const Routers::Register added("round_robin", "one line of help",
/// make)`.
using Routers = Registry<std::function<std::unique_ptr<Router>()>>;

}  // namespace orrery
