// SPDX-License-Identifier: Apache-2.0
// Recursive doubling and halving in ceil(log2 n) rounds, of any n. In round t every rank receives
// from the one 2^t behind it all chunks that one has, so that what it has doubles:
//
//   all_gather       (n-1)/n S    in  ceil(log2 n) rounds
//   reduce_scatter   (n-1)/n S    in  ceil(log2 n) rounds: the same backwards
//   all_reduce      2(n-1)/n S    in 2 ceil(log2 n) rounds: both, one after the other
//   barrier                  0    in  ceil(log2 n) rounds
//
// This is the circulant form (Bruck et al., "Efficient algorithms for all-to-all communications in
// multiport message-passing systems", IEEE TPDS 1997; for reductions Träff, arXiv 2410.14234;
// barrier: Hensgen et al., 1988). It has the bytes and rounds of the hypercube of Thakur et al.,
// IJHPCA 2005, and keeps them where n is no power of two.
#include <algorithm>
#include <memory>

#include "models/collectives/rounds.h"

namespace orrery {
namespace {

using Tell = std::function<void(const Message&)>;

/// A range of chunks that may run over the end: as one message or two.
void tell_around(Message message, int n, const Tell& tell) {
  message.chunks.first %= n;
  const int before_end = std::min(message.chunks.count, n - message.chunks.first);
  const int after_end = message.chunks.count - before_end;
  message.chunks.count = before_end;
  tell(message);
  if (after_end == 0) return;
  message.chunks = {0, after_end};
  tell(message);
}

/// Member i receives from i + 2^t what that one has and i lacks.
void gather(int n, int first_step, const Tell& tell) {
  int step = first_step;
  for (int distance = 1; distance < n; distance *= 2, ++step) {
    const int count = std::min(distance, n - distance);
    for (int i = 0; i < n; ++i) {
      const int source = (i + distance) % n;
      tell_around({step, source, i, {source, count}, ChunkOp::kCopy}, n, tell);
    }
  }
}

void scatter(int n, const Tell& tell) {
  int step = 0;
  for (int distance = 1 << (doubling_rounds(n) - 1); distance > 0; distance /= 2, ++step) {
    const int count = std::min(distance, n - distance);
    for (int i = 0; i < n; ++i) {
      const int target = (i + distance) % n;
      tell_around({step, i, target, {target, count}, ChunkOp::kReduce}, n, tell);
    }
  }
}

class RecursiveAlgorithm final : public RoundAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    using enum TransferKind;
    return collective.is_any({kAllReduce, kAllGather, kReduceScatter, kBarrier});
  }
  bool automatic() const override { return false; }

 protected:
  int chunks(const Collective& collective) const override { return collective.size(); }
  void rounds(const Collective& collective, const Tell& tell) const override {
    const int n = collective.size();
    const bool both = collective.kind == TransferKind::kAllReduce;
    if (both || collective.kind == TransferKind::kReduceScatter) scatter(n, tell);
    if (collective.kind == TransferKind::kReduceScatter) return;
    gather(n, both ? doubling_rounds(n) : 0, tell);
  }
};

const AlgorithmRegistry::Register registered_recursive(
    "recursive", "recursive halving and doubling: logarithmic rounds, any number of ranks",
    std::make_shared<RecursiveAlgorithm>());

}  // namespace
}  // namespace orrery
