// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "sim/serving/instance.h"
#include "sim/units/time.h"

namespace orrery {

/// Hears of what happens in a service as it happens.
class ServingObserver {
 public:
  ServingObserver() = default;
  ServingObserver(const ServingObserver&) = delete;
  ServingObserver& operator=(const ServingObserver&) = delete;
  virtual ~ServingObserver() = default;

  /// An instance has begun an iteration; its ranks have their batches.
  virtual void begun(std::size_t /*index*/, const Instance& /*instance*/,
                     const Instance::Begun& /*begun*/) {}
  /// The cache of a request has gone from one instance to another.
  virtual void moved(std::int64_t /*request*/, std::size_t /*from*/, std::size_t /*to*/,
                     Picoseconds /*begin*/, Picoseconds /*end*/) {}
  /// A request has arrived.
  /// @param first_hand its arrival does not depend on answers
  virtual void arrived(const Request& /*request*/, bool /*first_hand*/, Picoseconds /*now*/) {}
  /// A request has its last token.
  virtual void answered(const RequestState& /*progress*/, Picoseconds /*now*/) {}
};

}  // namespace orrery
