// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/attention/context_training.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/layers/parts/attention_kernels.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

constexpr double kStatisticBytes = 4;  ///< bytes of the logarithm of a sum of exponentials
constexpr double kMergeSums = 6;       ///< larger, smaller, difference, exponential, logarithm, sum
constexpr double kMergeOutputs = 3;    ///< exponential of a difference of sums, product, sum

/// Attention of the ranks that are left once tokens are exchanged for heads.
class SplitAttention {
 public:
  SplitAttention(StepList& steps, const LayerTask& task, const AttentionPart& part)
      : steps_(steps),
        task_(task),
        split_(task.work.split.context),
        bytes_(task.bytes()),
        core_(attention_core(task, part)) {
    core_.heads /= split_.heads;
    core_.kv_heads /= split_.heads;
    core_.query = core_.context = part.query * split_.heads;
  }

  void forward() {
    exchange_heads(inputs(), "attention inputs", Way::kToHeads);
    if (split_.rest() == 1) {
      steps_.then(attention_forward("attention", core_, task_.work));
    } else if (split_.gathers) {
      gather_keys("keys and values all-gather");
      steps_.then(attention_forward("attention", over_gathered(), task_.work));
      drop_buffers();
    } else {
      ring_forward();
    }
    exchange_heads({outputs()}, "attention output", Way::kToTokens);
  }

  void backward() {
    exchange_heads({outputs()}, "attention output gradient", Way::kToHeads);
    if (split_.rest() == 1) {
      steps_.then(attention_gradient("attention backward", core_, task_.work));
    } else if (split_.gathers) {
      gathered_backward();
    } else {
      ring_backward();
    }
    exchange_heads(inputs(), "attention input gradients", Way::kToTokens);
  }

 private:
  enum class Way : std::uint8_t { kToHeads, kToTokens };

  std::int64_t tokens() const { return core_.sequences * core_.query; }
  std::int64_t outputs() const { return core_.heads * core_.v_dim; }
  std::int64_t key_columns() const { return core_.kv_heads * (core_.qk_dim + core_.v_dim); }
  /// Columns of queries, keys and values on this rank.
  std::vector<std::int64_t> inputs() const {
    return {core_.heads * core_.qk_dim, core_.kv_heads * core_.qk_dim,
            core_.kv_heads * core_.v_dim};
  }
  Bytes key_bytes() const { return Bytes(real(tokens() * key_columns()) * bytes_); }

  Kernel copy(const std::string& name, std::int64_t rows, std::int64_t columns) const {
    return elementwise(name, rows, columns, {bytes_, bytes_, 0});
  }
  Kernel addition(const std::string& name, std::int64_t rows, std::int64_t columns) const {
    return elementwise(name, rows, columns, {2 * bytes_, bytes_, 1});
  }

  LayerCollective exchange(std::string name, TransferKind kind, Scope scope, Bytes bytes) const {
    const bool all = split_.heads == 1 || split_.rest() == 1;
    return {std::move(name), kind, all ? Scope::kContext : scope, bytes};
  }
  LayerCollective message(const std::string& name, Bytes bytes) const {
    return exchange(name, TransferKind::kSendReceive, Scope::kContextRings, bytes);
  }

  /// Tensors one after the other, each brought into the order of ranks, sent, and into that of
  /// tokens or heads, beside the next.
  void exchange_heads(const std::vector<std::int64_t>& columns, const std::string& what, Way way) {
    if (split_.heads == 1) return;
    std::vector<std::size_t> arrived;
    for (const std::int64_t width : columns) {
      steps_.then(copy(what + " packing", tokens(), width));
      const Bytes bytes(real(tokens() * width) * bytes_);
      arrived.push_back(
          steps_.aside(exchange(what + (way == Way::kToHeads ? " to heads" : " to tokens"),
                                TransferKind::kAllToAll, Scope::kContextHeads, bytes),
                       {steps_.cursor()}));
    }
    for (std::size_t i = 0; i < columns.size(); ++i)
      steps_.join(copy(what + " unpacking", tokens(), columns[i]), {arrived[i]});
  }

  /// What is alive beside the tensors of a layer while ranks exchange.
  void hold_buffers(Bytes bytes) {
    buffers_ = {"context parallel buffers", bytes, TensorRole::kWorking};
    steps_.tell(TensorEvent::What::kMakes, buffers_);
  }
  void drop_buffers() { steps_.tell(TensorEvent::What::kFrees, buffers_); }

  /// A rank's two pieces as two sequences of queries, which see the mean of both.
  AttentionCore over_gathered() const {
    AttentionCore core = core_;
    const std::int64_t piece = core_.query / 2;
    core.sequences *= 2;
    core.query = piece;
    core.context = ((2 * split_.rest() + 1) * piece + 1) / 2;
    return core;
  }

  void gather_keys(const std::string& name) {
    const int ranks = split_.rest();
    steps_.then(
        exchange(name, TransferKind::kAllGather, Scope::kContextRings, key_bytes() * ranks));
    hold_buffers(key_bytes() * ranks);
    steps_.then(copy("keys and values reordering", ranks * tokens(), key_columns()));
  }

  void gathered_backward() {
    const int ranks = split_.rest();
    gather_keys("keys and values all-gather again");
    const Tensor gradients{"context parallel gradients", key_bytes() * ranks, TensorRole::kWorking};
    steps_.then(attention_gradient("attention backward", over_gathered(), task_.work));
    steps_.tell(TensorEvent::What::kMakes, gradients);
    drop_buffers();
    // Of the second piece, to those of the first.
    steps_.then(addition("key and value gradient addition", ranks * tokens(), key_columns()));
    steps_.then(copy("key and value gradient reordering", ranks * tokens(), key_columns()));
    steps_.then(exchange("key and value gradient reduce-scatter", TransferKind::kReduceScatter,
                         Scope::kContextRings, key_bytes() * ranks));
    steps_.tell(TensorEvent::What::kFrees, gradients);
  }

  /// What a step of a ring works on, in the order of the forward pass: a rank's own tokens, then
  /// keys before them, then keys behind its first piece.
  enum class Seen : std::uint8_t { kOwn, kBefore, kBehind };
  /// As the rank in the middle of the ring has them: others have more of the one and fewer of the
  /// other, with the same pairs.
  Seen seen(int step) const {
    if (step == 0) return Seen::kOwn;
    return step <= split_.rest() / 2 ? Seen::kBefore : Seen::kBehind;
  }
  std::int64_t query_rows(Seen seen) const {
    return seen == Seen::kBehind ? tokens() / 2 : tokens();
  }
  std::int64_t key_rows(Seen seen) const { return seen == Seen::kBefore ? tokens() / 2 : tokens(); }
  AttentionCore core_of(Seen seen) const {
    AttentionCore core = core_;
    core.causal = seen == Seen::kOwn;
    if (seen == Seen::kBehind) core.query /= 2;
    if (seen == Seen::kBefore) core.context /= 2;
    return core;
  }

  void ring_forward() {
    const int ranks = split_.rest();
    std::size_t arrived = steps_.cursor();
    std::int64_t partial_rows = 0;
    for (int step = 0; step < ranks; ++step) partial_rows += query_rows(seen(step));
    for (int step = 0; step < ranks; ++step) {
      const std::size_t here = arrived;
      if (step + 1 < ranks) arrived = steps_.aside(message("keys and values", key_bytes()), {here});
      if (step == 0)
        hold_buffers(key_bytes() * (ranks - 1) + Bytes(real(partial_rows * outputs()) * bytes_));
      steps_.join(attention_forward("attention", core_of(seen(step)), task_.work), {here});
      if (step > 0)
        steps_.then(elementwise("attention sums merge", query_rows(seen(step)), core_.heads,
                                {2 * kStatisticBytes, kStatisticBytes, kMergeSums}));
    }
    for (int step = 0; step < ranks; ++step) {
      const double out = step == 0 ? 0 : bytes_;  // the first one scales what it has
      steps_.then(elementwise("attention merge", query_rows(seen(step)), outputs(),
                              {bytes_ + out, bytes_, kMergeOutputs}));
    }
    drop_buffers();
  }

  /// In the opposite order, so that a rank ends with its own keys. The gradients of keys that a
  /// rank sends are those that it added to in the step before.
  void ring_backward() {
    const int ranks = split_.rest();
    std::size_t arrived = steps_.cursor();
    for (int step = 0; step < ranks; ++step) {
      const Seen now = seen(ranks - 1 - step);
      const Bytes keys = step + 1 < ranks ? key_bytes() : Bytes();
      const Bytes gradients = step > 0 ? key_bytes() : Bytes();
      const std::size_t here = arrived;
      arrived = steps_.aside(message(step == 0           ? "keys and values"
                                     : step + 1 == ranks ? "key and value gradients"
                                                         : "keys, values and their gradients",
                                     keys + gradients),
                             {here, steps_.cursor()});
      // Of both, what is sent and what arrives.
      if (step == 0) hold_buffers(key_bytes() * 4);
      steps_.join(attention_gradient("attention backward", core_of(now), task_.work), {here});
      const std::int64_t queries = core_.heads * core_.qk_dim;
      if (step == 0) {
        steps_.then(copy("query gradient copy", query_rows(now), queries));
        continue;
      }
      steps_.then(addition("query gradient addition", query_rows(now), queries));
      steps_.join(addition("key and value gradient addition", key_rows(now), key_columns()),
                  {arrived});
    }
    drop_buffers();
  }

  StepList& steps_;
  const LayerTask& task_;
  ContextSplit split_;
  double bytes_;
  AttentionCore core_;  ///< attention of a rank once heads are exchanged
  Tensor buffers_;
};

/// Whether all layers attend to the latents that their tokens choose.
bool is_latent_sparse(const LlmConfig& model) {
  return std::ranges::all_of(model.layers, [](const LayerConfig& layer) {
    return layer.mixer == MixerKind::kSparse || layer.mixer == MixerKind::kSharedSparse;
  });
}

}  // namespace

ContextSplit context_split(const ParallelConfig& parallel, ContextExchange exchange) {
  ContextSplit split;
  split.ranks = parallel.cp;
  if (exchange == ContextExchange::kA2a) split.heads = parallel.cp;
  if (exchange == ContextExchange::kA2aP2p) split.heads = parallel.cp_a2a;
  split.gathers = exchange == ContextExchange::kAllGather;
  return split;
}

void split_attention_forward(StepList& steps, const LayerTask& task, const AttentionPart& part) {
  SplitAttention(steps, task, part).forward();
}

void split_attention_backward(StepList& steps, const LayerTask& task, const AttentionPart& part) {
  SplitAttention(steps, task, part).backward();
}

void require_split_sequences(const LlmConfig& model, const ParallelConfig& parallel,
                             ContextExchange exchange, std::int64_t sequence) {
  const bool both = exchange == ContextExchange::kA2aP2p;
  require(parallel.cp_a2a == 1 || both, {"parallel.cp_a2a", "software.cp_comm_type"},
          "ranks that exchange heads beside a ring, but cp_comm_type is another one",
          {{}, {"software: {cp_comm_type: a2a+p2p}, or parallel.cp_a2a: 1"}});
  if (parallel.cp == 1) return;
  const std::string other = unlike_attention(model);
  require(other.empty() || is_latent_sparse(model), {"parallel.cp", "parallel"},
          "context parallelism of " + other + " is not modelled: model '" + model.name + "' has it",
          {"1", {}});
  require(other.empty() || exchange == ContextExchange::kAllGather,
          {"software.cp_comm_type", "parallel.cp"},
          "ranks that share sequences gather the latents of " + other, {"all_gather", {}});
  require(!both || (parallel.cp_a2a > 1 && parallel.cp_a2a < parallel.cp),
          {"parallel.cp_a2a", "software.cp_comm_type"},
          "cp_comm_type a2a+p2p needs parallel.cp_a2a above 1 and below cp = " +
              std::to_string(parallel.cp));
  const std::int64_t pieces = std::int64_t{2} * parallel.cp;
  require(sequence % pieces == 0, {"batch.sequence", "parallel.cp"},
          std::to_string(sequence) + " tokens do not divide by 2 * cp = " + std::to_string(pieces) +
              " pieces, of which each rank has one from the front and its mirror from the back",
          {{},
           {"batch.sequence: " + std::to_string((sequence + pieces - 1) / pieces * pieces) +
            " would do"}});
  const bool windows = std::ranges::any_of(
      model.layers, [](const LayerConfig& layer) { return layer.most_kept() > 0; });
  require(!windows, {"parallel.cp", "parallel"},
          "context parallelism of sliding windows and chunks is not modelled: model '" +
              model.name + "' has them",
          {"1", {}});
  const int heads = context_split(parallel, exchange).heads;
  const AttentionConfig& a = model.attention;
  const std::int64_t kv_heads =
      a.kind == AttentionKind::kLatent ? a.heads / parallel.tp : local_kv_heads(a, parallel.tp);
  require(a.heads / parallel.tp % heads == 0 && kv_heads % heads == 0,
          {both ? "parallel.cp_a2a" : "parallel.cp", "software.cp_comm_type"},
          fmt::format("{} KV heads of a rank cannot be shared by {} ranks that exchange heads",
                      kv_heads, heads),
          divisors_near(kv_heads, heads));
}

}  // namespace orrery
