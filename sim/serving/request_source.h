// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/config/registered.h"
#include "sim/serving/request.h"

namespace orrery {

/// Requests as they arrive, in order of time.
class RequestSource {
 public:
  RequestSource() = default;
  RequestSource(const RequestSource&) = delete;
  RequestSource& operator=(const RequestSource&) = delete;
  virtual ~RequestSource() = default;

  /// Nothing once all have arrived.
  virtual std::optional<Request> next() = 0;
};

/// Keys of a source of requests, chosen by `arrival`. A file adds one with an object
/// `const config::Registered<RequestSourceConfig>::Add<Poisson>`.
struct RequestSourceConfig {
  virtual ~RequestSourceConfig() = default;
  virtual std::unique_ptr<RequestSource> make() const = 0;

  std::string arrival;  ///< "poisson": the name that it is registered by

  static const config::Choices& choices() {
    return config::Registered<RequestSourceConfig>::choices("arrival", "poisson");
  }
  static const RequestSourceConfig* view(const std::string& name, void* object) {
    return config::Registered<RequestSourceConfig>::view(name, object);
  }
};

}  // namespace orrery
