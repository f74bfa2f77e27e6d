// SPDX-License-Identifier: Apache-2.0
// PAT, parallel aggregated trees (Jeaugey, arXiv 2506.20252; NCCL 2.23): every chunk goes down a
// binomial tree of its own, the far ranks first, and the chunks that a rank sends to another in a
// round make one message.
//
//   all_gather       (n-1)/n S    in  ceil(log2 n) rounds
//   reduce_scatter   (n-1)/n S    in  ceil(log2 n) rounds: the same backwards
//
// These are the bytes and rounds of `recursive`, but half of the bytes go to the next rank and only
// one chunk goes far. The limit that NCCL sets to its buffers, which costs it more rounds for large
// messages, is left out. NCCL takes it among ranks of as many nodes (models/transfers/tuner.cpp).
#include <memory>

#include "models/collectives/rounds.h"

namespace orrery {
namespace {

class PatAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    return collective.is_any({TransferKind::kAllGather, TransferKind::kReduceScatter});
  }
  bool automatic() const override { return false; }  // NCCL's tuner: library_adds()

  bool counts_links() const override { return true; }
  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const int n = collective.size();
    const int last = doubling_rounds(n) - 1;
    const bool gather = collective.kind == TransferKind::kAllGather;
    RoundWalk walk(collective, sink);
    for (int round = 0; round <= last; ++round) {
      const int distance = 1 << (gather ? last - round : round);
      // Holders of a chunk stand every 2 distances from its owner; those with a rank one distance
      // on, counted from the owner, send.
      const int chunks = (n - distance - 1) / (2 * distance) + 1;
      const Bytes bytes = collective.bytes * (static_cast<double>(chunks) / n);
      for (int near = 0; near < n; ++near) {
        const int far = (near + distance) % n;
        walk.send(round, gather ? near : far, gather ? far : near, bytes);
      }
    }
    return walk.longest();
  }

  Schedule schedule(const Collective& collective) const override {
    const int n = collective.size();
    const int last = doubling_rounds(n) - 1;
    const bool gather = collective.kind == TransferKind::kAllGather;
    Schedule schedule{.chunks = n, .pace = Pace::kRank};
    for (int round = 0; round <= last; ++round) {
      const int distance = 1 << (gather ? last - round : round);
      for (int owner = 0; owner < n; ++owner) {
        for (int from_owner = 0; from_owner + distance < n; from_owner += 2 * distance) {
          const int near = (owner + from_owner) % n;
          send(schedule, round, gather, {near, (near + distance) % n, owner});
        }
      }
    }
    return schedule;
  }

 private:
  struct Message {
    int near, far, chunk;
  };
  static void send(Schedule& schedule, int round, bool gather, Message m) {
    if (gather) {
      schedule.copy(round, m.near, m.far, {m.chunk, 1});
    } else {
      schedule.reduce(round, m.far, m.near, {m.chunk, 1});
    }
  }
};

const AlgorithmRegistry::Register registered_pat(
    "pat", "binomial trees for all chunks at once, far ranks first (NCCL's PAT)",
    std::make_shared<PatAlgorithm>());

}  // namespace
}  // namespace orrery
