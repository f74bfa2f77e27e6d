// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sim/config/declared.h"
#include "sim/config/registered.h"
#include "sim/serving/request.h"

namespace orrery {

/// Requests as they arrive.
class RequestSource {
 public:
  RequestSource() = default;
  RequestSource(const RequestSource&) = delete;
  RequestSource& operator=(const RequestSource&) = delete;
  virtual ~RequestSource() = default;

  /// Those whose arrival does not depend on answers, in order of time; nothing once all have come.
  virtual std::optional<Request> next() = 0;
  /// What is sent because a request has been answered, now or later: the next one of a client that
  /// waits for answers, the next turn of a conversation.
  virtual std::optional<Request> after(const Request& /*answered*/, Picoseconds /*now*/) {
    return std::nullopt;
  }
};

/// How often adapters are asked for.
enum class AdapterPopularity : std::uint8_t {
  kUniform,  ///< all as often
  kZipf      ///< the k-th as often as k to the power of -exponent
};

/// LoRA adapters that requests ask for. Draws have a sequence of their own: arrivals and lengths
/// stay as they are.
struct AdapterDraws {
  std::int64_t count = 1;
  AdapterPopularity popularity = AdapterPopularity::kUniform;
  double exponent = 1;
  std::int64_t seed = 0;
  static const config::Schema<AdapterDraws>& schema();
};

namespace config {

template <>
struct EnumNames<AdapterPopularity> {
  static constexpr std::pair<AdapterPopularity, const char*> values[] = {
      {AdapterPopularity::kUniform, "uniform"}, {AdapterPopularity::kZipf, "zipf"}};
};

}  // namespace config

/// Keys of a source of requests, chosen by `arrival`. A file adds one with an object
/// `const config::Registered<RequestSourceConfig>::Add<Poisson>`.
struct RequestSourceConfig {
  virtual ~RequestSourceConfig() = default;
  /// @throws config::ConfigError for a file that cannot be read
  virtual std::unique_ptr<RequestSource> make() const = 0;
  /// The file that it reads; empty: none.
  virtual std::string file() const { return {}; }
  /// Requests in all; 0: as many as the file has.
  virtual std::int64_t count() const = 0;

  std::string arrival;                   ///< "poisson": the name that it is registered by
  std::optional<AdapterDraws> adapters;  ///< none: no request has one

  static const config::Choices& choices() {
    return config::Registered<RequestSourceConfig>::choices("arrival", "poisson");
  }
  static const RequestSourceConfig* view(const std::string& name, void* object) {
    return config::Registered<RequestSourceConfig>::view(name, object);
  }
};

/// The requests of a source, each with an adapter where the configuration has some.
/// @param config outlives it
std::unique_ptr<RequestSource> make_source(const RequestSourceConfig& config);

/// The keys that sources of all kinds have.
template <class T>
config::Schema<T> source_schema(const std::string& name, const std::string& help) {
  using R = RequestSourceConfig;
  config::Schema<T> schema(name, help);
  schema
      .optional("arrival", static_cast<std::string T::*>(&R::arrival), "which process of arrivals")
      .optional("adapters", static_cast<std::optional<AdapterDraws> T::*>(&R::adapters),
                "LoRA adapters that requests ask for: a number, or how often each is asked for");
  return schema;
}

}  // namespace orrery
