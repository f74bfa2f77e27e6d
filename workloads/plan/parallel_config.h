// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/config/declared.h"

namespace orrery {

/// How the layers of a model are dealt out where slices do not all have equally many.
struct LayerLayout {
  std::string slices = {};  ///< what each slice holds, see written_slices(); empty: dealt out
  int first = 0;            ///< layers of the stage with the first slice; 0: as many as others
  int last = 0;             ///< layers of the stage with the last slice; 0: as many as others
  bool embedding = false;   ///< the embedding counts as a layer
  bool head = false;        ///< head and loss count as a layer

  static const config::Schema<LayerLayout>& schema();
};

/// What a slice holds between embedding and head.
struct SliceContents {
  std::int64_t layers = 0;
  int modules = 0;  ///< modules of multi-token prediction
  bool operator==(const SliceContents&) const = default;
};

/// Slices in words of Megatron-Core's pipeline_model_parallel_layout: "Et*3|(tt|)*29,m|L". E is the
/// embedding, t a layer, m a module of multi-token prediction, L head and loss; | ends a slice, *n
/// repeats what is before it, commas and blanks say nothing (megatron/core/transformer/
/// pipeline_parallel_layer_layout.py, 00caa53).
/// @throws std::invalid_argument naming what is no such text
std::vector<SliceContents> written_slices(const std::string& text);

/// Megatron-Core's default order of ranks (parallel_state.py, initialize_model_parallel);
/// --use-tp-pp-dp-mapping is tp-cp-ep-pp-dp.
inline constexpr const char* kMegatronOrder = "tp-cp-ep-dp-pp";

/// How a model is spread over ranks. Names are those of Megatron-LM.
struct ParallelConfig {
  int tp = 1;       ///< tensor parallel: ranks that share every matrix
  bool sp = false;  ///< sequence parallel: norms, residuals and dropout on 1/tp of the tokens
  int pp = 1;       ///< pipeline stages
  int vpp = 1;      ///< chunks of layers per stage (interleaved schedule)
  int dp = 1;       ///< data parallel replicas
  int cp = 1;       ///< context parallel: ranks that share the tokens of sequences, and the cache
  int cp_a2a = 1;   ///< training, a2a+p2p: of cp, ranks that exchange heads; the others form rings
  int dcp = 1;  ///< decode context parallel: of tp, ranks that share the cache of their KV heads
  int ep = 1;   ///< expert parallel: ranks of a stage's dp x tp plane that share the experts
  int etp = 1;  ///< tensor parallel inside experts: ranks that share each expert's matrices
  /// What dp x cp ranks share out (Rajbhandari et al. 2020, ZeRO): 0 nothing, 1 states of the
  /// optimizer (distributed optimizer), 2 gradients too, 3 weights too (FSDP).
  int zero = 1;
  int dp_shard =
      0;  ///< ranks of dp that share out one copy; the copies are replicas (HSDP). 0: all
  LayerLayout layout = {};  ///< which layers the slices of a pipeline have
  /// Axes by which ranks are numbered, the first fastest.
  std::string order = kMegatronOrder;

  /// Ranks that share out one copy, with those of cp, and copies.
  int shards() const { return (dp_shard > 0 ? dp_shard : dp) * cp; }
  int copies() const { return replicas() / shards(); }

  /// Ranks that hold the same weights, but for experts.
  int replicas() const { return dp * cp; }
  int ranks() const { return tp * pp * dp * cp; }
  /// Ranks that each have another part of the cache of a sequence.
  int cache_shards() const { return cp * dcp; }
  static const config::Schema<ParallelConfig>& schema();
};

/// "tp * pp * dp = 16", with cp where it has any.
std::string ranks_text(const ParallelConfig& parallel);

/// The checks of the schema, for configurations that were not read from a file.
/// @throws config::KeyError naming the first combination that is wrong or not modelled.
void require_consistent(const ParallelConfig& parallel);
/// The same for steps of training, which have no cache.
/// @throws config::KeyError likewise
void require_supported(const ParallelConfig& parallel);

}  // namespace orrery
