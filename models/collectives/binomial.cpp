// SPDX-License-Identifier: Apache-2.0
// Binomial trees from the root of the group, in ceil(log2 n) rounds (Thakur et al., "Optimization
// of collective communication operations in MPICH", IJHPCA 2005). The member v, counted from the
// root, stands over the members v .. v + 2^t - 1, 2^t being its lowest set bit.
//
//   broadcast, reduce   S a message, up to log2(n) S out of the root
//   scatter, gather     what the members below need: (n-1)/n S out of the root
#include <algorithm>
#include <memory>

#include "models/collectives/rounds.h"

namespace orrery {
namespace {

class BinomialAlgorithm final : public RoundAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    using enum TransferKind;
    return collective.is_any({kBroadcast, kReduce, kScatter, kGather});
  }
  bool automatic() const override { return false; }

 protected:
  int chunks(const Collective& collective) const override {
    return in_parts(collective) ? collective.size() : 1;
  }

  void rounds(const Collective& collective,
              const std::function<void(const Message&)>& tell) const override {
    const int n = collective.size();
    const int last = doubling_rounds(n) - 1;
    const bool to_root = collective.is_any({TransferKind::kReduce, TransferKind::kGather});
    const ChunkOp op = collective.kind == TransferKind::kReduce ? ChunkOp::kReduce : ChunkOp::kCopy;
    for (int step = 0; step <= last; ++step) {
      const int reach = 1 << (to_root ? step : last - step);  // members below a receiver
      for (int upper = 0; upper + reach < n; upper += 2 * reach) {
        const int lower = upper + reach;
        const ChunkRange chunks =
            in_parts(collective) ? ChunkRange{lower, std::min(reach, n - lower)} : ChunkRange{};
        tell({step, to_root ? lower : upper, to_root ? upper : lower, chunks, op});
      }
    }
  }

 private:
  static bool in_parts(const Collective& collective) {
    return collective.is_any({TransferKind::kScatter, TransferKind::kGather});
  }
};

const AlgorithmRegistry::Register registered_binomial(
    "binomial", "a binomial tree from or to the root: logarithmic rounds",
    std::make_shared<BinomialAlgorithm>());

}  // namespace
}  // namespace orrery
