// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/verify_order.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <utility>

#include "sim/graph/frozen_block.h"

namespace orrery {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Fingerprint of a sequence (Karp and Rabin, IBM J. Res. Dev. 31, 1987): a polynomial modulo the
/// prime 2^61 - 1. That of a concatenation follows from those of its parts, so a call of a block
/// costs one step however many operators the block has. Two different sequences of n ids agree with
/// a probability of about n / 2^61.
class Fingerprint {
 public:
  void append(TransferId transfer) { append(Fingerprint(transfer + 1U, kBase)); }
  void append(const Fingerprint& tail) {
    value_ = (multiply(value_, tail.power_) + tail.value_) % kPrime;
    power_ = multiply(power_, tail.power_);
  }
  bool operator==(const Fingerprint&) const = default;

  Fingerprint() = default;

 private:
  Fingerprint(std::uint64_t value, std::uint64_t power) : value_(value), power_(power) {}

  static std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Wide>(a) * b % kPrime);
  }

  static constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
  static constexpr std::uint64_t kBase = 0x1d2ac5f8b3906e47;  // any number below the prime
  std::uint64_t value_ = 0;
  std::uint64_t power_ = 1;  ///< kBase to the length
};

/// Where a role calls one transfer of a communicator.
struct Call {
  TransferId transfer = 0;
  BlockId block = 0;
  OperatorId op = 0;
};

class OrderCheck {
 public:
  OrderCheck(const Program& program, const TransferUses& uses) : program_(program) {
    find_communicators(uses);
    for (const OperatorGraph& graph : program.blocks) {
      orders_.push_back(execution_order(graph));
      blocks_.push_back(fingerprints(graph, orders_.back()));
    }
  }

  void run(std::vector<std::string>& findings) const {
    // Per communicator the first role that uses it and its fingerprint.
    std::vector<std::pair<std::uint32_t, Fingerprint>> first(communicators_, {kNone, {}});
    std::vector<bool> reported(communicators_, false);
    for (std::uint32_t role = 0; role < program_.roles.size(); ++role) {
      for (const auto& [communicator, print] : fingerprints(role)) {
        auto& [other, expected] = first[communicator];
        if (other == kNone) {
          other = role;
          expected = print;
        } else if (print != expected && !reported[communicator]) {
          reported[communicator] = true;
          findings.push_back(difference(communicator, other, role));
        }
      }
    }
  }

 private:
  using Prints = std::map<std::uint32_t, Fingerprint>;  // by communicator

  /// Transfers with equal groups form a communicator. Its members' streams are part of it: what a
  /// role puts on two streams has no order that others could contradict.
  void find_communicators(const TransferUses& uses) {
    using Members = std::vector<std::pair<std::uint32_t, StreamId>>;
    std::map<std::pair<std::vector<std::vector<int>>, Members>, std::uint32_t> known;
    communicator_of_.assign(uses.size(), kNone);
    for (TransferId t = 0; t < uses.size(); ++t) {
      if (uses[t].size() < 2) {
        continue;  // nobody to disagree with
      }
      Members members;
      for (const TransferUse& use : uses[t]) {
        members.emplace_back(use.role, use.stream);
      }
      communicator_of_[t] =
          known.try_emplace({program_.transfers[t].groups, std::move(members)}, communicators_)
              .first->second;
      communicators_ = static_cast<std::uint32_t>(known.size());
    }
  }

  std::uint32_t communicator_of(const Operator& op) const {
    return op.kind == OperatorKind::kCompute ? kNone : communicator_of_[op.work];
  }

  Prints fingerprints(const OperatorGraph& graph, const std::vector<OperatorId>& order) const {
    Prints prints;
    for (const OperatorId id : order) {
      const std::uint32_t communicator = communicator_of(graph[id]);
      if (communicator != kNone) {
        prints[communicator].append(graph[id].work);
      }
    }
    return prints;
  }

  Prints fingerprints(std::uint32_t role) const {
    Prints prints;
    for (const BlockId block : program_.roles[role].calls) {
      for (const auto& [communicator, print] : blocks_[block]) {
        prints[communicator].append(print);
      }
    }
    return prints;
  }

  /// All calls of a communicator by a role, one by one: only to explain an error.
  std::vector<Call> unroll(std::uint32_t communicator, std::uint32_t role) const {
    std::vector<Call> calls;
    for (const BlockId block : program_.roles[role].calls) {
      for (const OperatorId id : orders_[block]) {
        const Operator& op = program_.blocks[block][id];
        if (communicator_of(op) == communicator) {
          calls.push_back({op.work, block, id});
        }
      }
    }
    return calls;
  }

  std::string difference(std::uint32_t communicator, std::uint32_t role_a,
                         std::uint32_t role_b) const {
    const std::vector<Call> a = unroll(communicator, role_a);
    const std::vector<Call> b = unroll(communicator, role_b);
    const auto [at_a, at_b] =
        std::mismatch(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Call& x, const Call& y) { return x.transfer == y.transfer; });
    const auto name = [this](std::uint32_t role, const Call& call) {
      return fmt::format("'{}' for {} ({})", program_.transfers[call.transfer].name,
                         role_name(program_, role), place_name(program_, call.block, call.op));
    };
    return fmt::format("members of a communicator call in different orders: call {} is {}, but {}",
                       at_a - a.begin() + 1, name(role_a, *at_a), name(role_b, *at_b));
  }

  const Program& program_;
  std::uint32_t communicators_ = 0;
  std::vector<std::uint32_t> communicator_of_;   ///< communicator, by transfer
  std::vector<std::vector<OperatorId>> orders_;  ///< operators in order, by block
  std::vector<Prints> blocks_;
};

}  // namespace

void check_order(const Program& program, const TransferUses& uses,
                 std::vector<std::string>& findings) {
  OrderCheck(program, uses).run(findings);
}

}  // namespace orrery
