// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/config/load.h"
#include "sim/serving/engine_release.h"
#include "sim/serving/request_source.h"
#include "sim/serving/scheduler.h"
#include "sim/serving/service.h"

namespace orrery::test {

/// Keys that hold one of several structs, as an experiment would have them.
template <class Base>
struct Holder {
  std::optional<config::OneOf<Base>> of;
  static const config::Schema<Holder>& schema() {
    static const config::Schema<Holder> schema =
        config::Schema<Holder>("holder", "one of several").optional("of", &Holder::of, "which");
    return schema;
  }
};

/// Where engines of these tests run: defaults that depend on the device are those of an H100.
inline EngineSite on_h100() {
  EngineSite site;
  site.memory = Bytes(81559.0 * 1024 * 1024);
  site.device = "NVIDIA H100 SXM5 80GB";
  site.architecture = "Hopper GH100";
  return site;
}

template <class Base>
config::OneOf<Base> read_of(const std::string& yaml) {
  config::Diagnostics diagnostics;
  const config::Record& record = Holder<Base>::schema().record();
  config::Node node = config::parse_yaml("of: " + yaml, "test.yaml", diagnostics);
  diagnostics.throw_if_errors();
  node = config::complete(node, record, diagnostics, config::default_library());
  Holder<Base> holder;
  config::fill(&holder, node, record, diagnostics);
  diagnostics.throw_if_errors();
  if constexpr (std::is_same_v<Base, SchedulerConfig>)
    follow_release(*holder.of, on_h100(), *node.find("of"), diagnostics);
  diagnostics.throw_if_errors();
  return *holder.of;
}

inline std::vector<Request> all_of(RequestSource& source) {
  std::vector<Request> all;
  while (const auto request = source.next()) all.push_back(*request);
  return all;
}

/// All requests that a source described in YAML has.
inline std::vector<Request> requests_of(const std::string& yaml) {
  const auto config = read_of<RequestSourceConfig>(yaml);
  return all_of(*config->make());
}

/// An engine whose host takes no time, unless it is told to.
inline config::OneOf<SchedulerConfig> engine_of(std::string yaml) {
  if (yaml.find("host:") == std::string::npos) yaml.insert(yaml.rfind('}'), ", host: {}");
  return read_of<SchedulerConfig>(yaml);
}

/// What one engine does with some requests, iteration by iteration.
class Engine {
 public:
  Engine(const std::string& yaml, std::int64_t blocks, std::vector<Request> requests)
      : config_(engine_of(yaml)),
        scheduler_(config_->make()),
        pool({config_->memory().block_tokens, blocks, config_->memory().prefix_caching}) {
    for (Request& request : requests) queue.waiting.push_back({.request = std::move(request)});
  }

  /// An iteration as text: "P0:100 D1" for 100 tokens of the prompt of request 0, and a decode
  /// of 1.
  std::string step() {
    scheduler_->admit(queue, pool, batch_);
    std::string text;
    for (const Batch::Share& share : batch_.shares) {
      const RequestState& p = queue.running[share.running];
      text += (text.empty() ? "" : " ") + std::string(p.decodes() ? "D" : "P") +
              std::to_string(p.request.id);
      if (!p.decodes()) text += ":" + std::to_string(share.tokens);
    }
    batch_.ran(queue);
    for (std::size_t i = queue.running.size(); i-- > 0;) {
      if (!queue.running[i].done()) continue;
      pool.release(queue.running[i]);
      queue.running.erase(queue.running.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return text;
  }

 private:
  config::OneOf<SchedulerConfig> config_;
  std::unique_ptr<Scheduler> scheduler_;
  Batch batch_;

 public:
  Queue queue;
  KvPool pool;
};

/// Iterations that take as long as a function of their shape says, and a constant energy [J].
class PricedBy final : public IterationPricer {
 public:
  explicit PricedBy(std::function<Picoseconds(const BatchShape&)> price, double energy = 0)
      : price_(std::move(price)), energy_(energy) {}
  IterationPrice price(const BatchShape& shape) override {
    constexpr double kKernels = 10;
    if (shape.tokens() == 0) return {};
    return {price_(shape), energy_, kKernels};
  }

 private:
  std::function<Picoseconds(const BatchShape&)> price_;
  double energy_;
};

/// Requests that are there as they are.
class Given final : public RequestSource {
 public:
  explicit Given(std::vector<Request> requests) : requests_(std::move(requests)) {}
  std::optional<Request> next() override {
    if (next_ == requests_.size()) return std::nullopt;
    return requests_[next_++];
  }

 private:
  std::vector<Request> requests_;
  std::size_t next_ = 0;
};

}  // namespace orrery::test
