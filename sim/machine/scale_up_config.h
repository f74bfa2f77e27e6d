// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/config/declared.h"
#include "sim/config/fact.h"
#include "sim/config/registry.h"
#include "sim/config/schema.h"
#include "sim/machine/protocols_config.h"
#include "sim/units/units.h"

namespace orrery {

/// How a collective library moves large buffers inside a system, where that is another way than
/// that of small ones, with a longer start and a better rate. Such a collective takes
///
///   start + peer x (ranks in a node - 1) + steps x latency
///         + largest of bytes / (line rate x efficiency)
struct BulkConfig {
  Bytes from;                   ///< smallest buffer, as nccl-tests counts it
  Fact<Seconds> start;          ///< time of the start of a collective, once, in place of `launch`
  Fact<Seconds> peer;           ///< each other rank of the group in its node
  Fact<double> efficiency;      ///< payload share of the line rate
  Fact<double> sum_efficiency;  ///< efficiency where the bytes are summed on arrival
  static const config::Schema<BulkConfig>& schema();
};

struct SystemConfig;

/// The keys of one topology of scale-up fabrics, and what others ask it. A topology is a file of
/// models/topologies that registers itself (RegisterScaleUp).
struct ScaleUpKeys {
  virtual ~ScaleUpKeys() = default;
  /// The first misfit between these keys and the rest of the system, with paths of keys from there.
  virtual config::Fault fault(const SystemConfig& /*system*/) const { return {}; }
  /// Whether it joins ranks, over ports of the accelerators.
  virtual bool has_links() const { return true; }
  /// Whether accelerators are cards in slots. Bridges may then join some of the cards.
  virtual bool has_slots() const { return false; }
  /// Whether its links lead to host boards, too.
  virtual bool links_hosts() const { return false; }
  /// Whether its keys say what a collective starts in, instead of `launch`.
  virtual bool says_start() const { return false; }
};

/// The scale-up fabric inside one system: what all topologies have, and the keys of its own.
struct ScaleUpConfig {
  std::string kind;                         ///< name of the topology (`describe topologies`)
  std::shared_ptr<const ScaleUpKeys> keys;  ///< keys of that topology; never null
  bool switch_reduction = false;            ///< the switches reduce and multicast (NVLS)
  Fact<Seconds> latency;  ///< time of one step of a collective or message between two ranks,
                          ///< software included; of `dimensions`: without that of their links
  /// Latency of each link by which a route is longer than the shortest between packages of a
  /// system, which `latency` has in it; 0: not known.
  Fact<Seconds> hop_latency;
  Fact<Seconds> launch;
  Fact<double> efficiency;         ///< payload share of the link bandwidth that collectives reach
  std::optional<BulkConfig> bulk;  ///< large buffers without `protocols`, where they go another way
  /// Protocols of the collective library; where they are present, they replace `latency` and refine
  /// `efficiency`.
  std::optional<ProtocolsConfig> protocols;
  std::string calibration;  ///< network calibration of the protocols; by default none

  ScaleUpConfig() : keys(std::make_shared<ScaleUpKeys>()) {}
  /// Takes a topology, with the defaults of its keys.
  /// @throws config::KeyError for a name that no topology has
  void set_kind(const std::string& name);
  /// The structs by kind: keys of all, and those of the topology.
  static const config::Choices& choices();
};

/// A registered topology: its keys, and how to make them.
struct ScaleUpEntry {
  const config::Record& (*record)();  ///< the topology's own keys
  std::shared_ptr<const ScaleUpKeys> (*make)();
  void* (*keys_in)(void* scale_up);  ///< where a ScaleUpConfig has them
};
using ScaleUpRegistry = Registry<ScaleUpEntry>;

/// `const RegisterScaleUp<TorusKeys> registered_torus("torus", "one line of help");`, where
/// TorusKeys derives from ScaleUpKeys and has `static const config::Schema<TorusKeys>& schema()`.
template <class Keys>
struct RegisterScaleUp {
  RegisterScaleUp(const char* name, const char* help) {
    ScaleUpRegistry::Register(
        name, help,
        ScaleUpEntry{
            []() -> const config::Record& { return Keys::schema().record(); },
            []() -> std::shared_ptr<const ScaleUpKeys> { return std::make_shared<Keys>(); },
            [](void* scale_up) -> void* {
              const auto& keys = static_cast<ScaleUpConfig*>(scale_up)->keys;
              return const_cast<Keys*>(static_cast<const Keys*>(keys.get()));
            }});
  }
};

namespace config::detail {

template <>
struct TypeOf<ScaleUpConfig> {
  static Type make();
};

}  // namespace config::detail

}  // namespace orrery
