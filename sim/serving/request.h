// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sim/units/time.h"

namespace orrery {

/// A prompt that somebody sends, and how many tokens the answer will have.
struct Request {
  std::int64_t id = 0;  ///< number in order of arrival, from 0
  Picoseconds arrival = 0;
  std::int64_t prompt = 1;  ///< tokens of the prompt
  std::int64_t output = 1;  ///< tokens, the one that the prefill gives included

  bool operator==(const Request&) const = default;
};

/// How far an instance is with a request.
struct Progress {
  Request request;
  std::int64_t cached = 0;    ///< tokens in the cache
  std::int64_t produced = 0;  ///< tokens of the answer

  bool decodes() const { return cached >= request.prompt; }
  bool done() const { return produced >= request.output; }
};

}  // namespace orrery
