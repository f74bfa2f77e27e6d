// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/vision/tower_steps.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "workloads/base/real.h"
#include "workloads/layers/parts/attention_kernels.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

class TowerRank {
 public:
  TowerRank(const VisionTower& tower, const TowerWork& work)
      : tower_(tower),
        work_(work),
        ranks_(splits(tower, work.tp) ? work.tp : 1),
        images_(ranks_ == work.tp ? work.images : (work.images + work.tp - 1) / work.tp),
        precision_(element_bytes(work.precision) < 2 ? Precision::kBf16 : work.precision),
        bytes_(activation_bytes(precision_)),
        tiles_(images_ * work.image.tiles),
        rows_(tiles_ * tower.tile_rows(work.image)) {}

  StepList forward() const {
    StepList steps;
    embed(steps);
    for (std::int64_t layer = 0; layer < tower_.layers_run; ++layer)
      steps.append(layer_forward_of(layer), "vision layer " + std::to_string(layer) + " ");
    if (tower_.norm_behind) steps.then(norm_of("vision final norm", rows_));
    for (const Projector& projector : tower_.projectors) steps.append(project(projector));
    if (ranks_ < work_.tp)
      steps.then(LayerCollective{"vision gather", TransferKind::kAllGather, Scope::kTensor,
                                 Bytes(outputs())});
    steps.then(elementwise("vision tokens", work_.images * work_.image.tokens, work_.hidden,
                           {bytes_, bytes_, 0}));
    return steps;
  }

  /// Bytes of what goes to the language model.
  double outputs() const {
    return real(work_.images * work_.image.tokens * work_.hidden) *
           real(static_cast<std::int64_t>(tower_.projectors.size())) * bytes_;
  }

  /// Pixels beside the first rows, or input and output of the widest product beside the residual
  /// stream.
  double working() const {
    const double hidden = real(tower_.hidden), ranks = ranks_;
    const double mlp = (tower_.gated ? 2 : 1) * real(tower_.intermediate) / ranks;
    const double widest = std::max({3 * real(tower_.width()) / ranks, mlp, real(patch_columns())});
    double most = real(rows_) * (2 * hidden + widest);
    for (const Projector& projector : tower_.projectors)
      for (const ProjectorStep& step : projector.steps)
        most = std::max(most, real(step_rows(step)) * real(step.in + step.out));
    return most * bytes_ + outputs();
  }

 private:
  std::int64_t patch_columns() const {
    return tower_.channels * tower_.frames * tower_.patch * tower_.patch;
  }

  Kernel norm_of(const std::string& name, std::int64_t rows) const {
    return norm(name, precision_, {rows, tower_.hidden, tower_.norm_bias, false});
  }

  void embed(StepList& steps) const {
    const std::int64_t patches =
        tiles_ * (work_.image.rows * work_.image.columns + work_.image.padding);
    steps.then(
        gemm("vision patch embedding", precision_, {patches, tower_.hidden, patch_columns()}));
    if (tower_.position_rows + tower_.class_tokens > 0)
      steps.then(elementwise("vision positions", rows_, tower_.hidden, {2 * bytes_, bytes_, 1}));
    if (tower_.norm_before) steps.then(norm_of("vision first norm", rows_));
  }

  void add_up(StepList& steps, const std::string& name, std::int64_t rows,
              std::int64_t width) const {
    if (ranks_ == 1) return;
    steps.then(LayerCollective{name + " all-reduce", TransferKind::kAllReduce, Scope::kTensor,
                               Bytes(real(rows * width) * bytes_)});
  }

  /// Adds what a half of a layer gave, normed and scaled, to the residual stream.
  void add_residual(StepList& steps, const std::string& half) const {
    if (tower_.norms > 2) steps.then(norm_of("vision " + half + " output norm", rows_));
    const double scales = tower_.layer_scales ? 1 : 0;
    steps.then(elementwise("vision " + half + " residual", rows_, tower_.hidden,
                           {2 * bytes_, bytes_, 1 + scales}));
  }

  void norm_heads(StepList& steps) const {
    const std::int64_t parts = (tower_.qk_norm > 0 ? 2 : 0) + (tower_.value_norm ? 1 : 0);
    if (parts == 0) return;
    steps.then(rms_norm_of("vision qk norm", rows_, parts * tower_.width() / ranks_, bytes_));
  }

  Kernel attention(std::int64_t layer) const {
    const std::int64_t heads = tower_.heads / ranks_;
    AttentionCore core;
    core.precision = precision_;
    core.heads = core.kv_heads = heads;
    core.qk_dim = core.v_dim = tower_.head_dim;
    core.causal = false;
    core.new_bytes = core.cache_bytes = bytes_;
    core.sequences = tiles_;
    core.query = core.context = tower_.tile_rows(work_.image);
    if (!tower_.windowed(layer)) return flash_attention("vision attention", core);
    std::int64_t windows = 0;
    for (const TowerWindows& some : windows_of(tower_, work_.image)) {
      windows += tiles_ * some.count;
      core.prompts.push_back({tiles_ * some.count, some.patches, some.patches});
    }
    core.sequences = windows;
    core.query = core.context =
        std::max<std::int64_t>(1, std::llround(real(rows_) / real(windows)));
    return flash_attention("vision attention", core);
  }

  StepList layer_forward_of(std::int64_t layer) const {
    const std::int64_t width = tower_.width() / ranks_, inner = tower_.intermediate / ranks_;
    StepList steps;
    steps.then(norm_of("vision attention norm", rows_));
    steps.then(gemm("vision qkv", precision_, {rows_, 3 * width, tower_.hidden}));
    norm_heads(steps);
    if (tower_.rotary) steps.then(rotate("vision rotary", precision_, rows_, 2 * width));
    steps.then(attention(layer));
    steps.then(gemm("vision attention output", precision_, {rows_, tower_.hidden, width}));
    add_up(steps, "vision attention output", rows_, tower_.hidden);
    add_residual(steps, "attention");
    steps.then(norm_of("vision mlp norm", rows_));
    const std::int64_t columns = (tower_.gated ? 2 : 1) * inner;
    steps.then(gemm(tower_.gated ? "vision gate-up" : "vision up", precision_,
                    {rows_, columns, tower_.hidden}));
    steps.then(activation("vision activation", precision_, rows_, inner, tower_.gated));
    steps.then(gemm("vision down", precision_, {rows_, tower_.hidden, inner}));
    add_up(steps, "vision down", rows_, tower_.hidden);
    add_residual(steps, "mlp");
    return steps;
  }

  std::int64_t step_rows(const ProjectorStep& step) const {
    return tiles_ * work_.image.rows * work_.image.columns / step.merged;
  }

  StepList project(const Projector& projector) const {
    const std::string name = "vision " + projector.name;
    StepList steps;
    for (const ProjectorStep& step : projector.steps) {
      const std::int64_t rows = step_rows(step);
      const std::int64_t in = step.in / (step.split == TowerSplit::kRows ? ranks_ : 1);
      const std::int64_t out = step.out / (step.split == TowerSplit::kColumns ? ranks_ : 1);
      switch (step.kind) {
        case ProjectorStep::Kind::kNorm:
          steps.then(norm(name + " norm", precision_, {rows, step.in, step.bias, false}));
          break;
        case ProjectorStep::Kind::kProduct:
          steps.then(gemm(name + " product", precision_, {rows, out, in}));
          if (step.split == TowerSplit::kRows) add_up(steps, name, rows, out);
          break;
        case ProjectorStep::Kind::kFunction:
        case ProjectorStep::Kind::kGatedFunction:
          steps.then(activation(name + " function", precision_, rows, out,
                                step.kind == ProjectorStep::Kind::kGatedFunction));
          break;
        case ProjectorStep::Kind::kPool:
          steps.then(elementwise(name + " pooling", rows * step.merged, step.in,
                                 {bytes_, bytes_ / real(step.merged), 1}));
      }
    }
    return steps;
  }

  const VisionTower& tower_;
  const TowerWork& work_;
  int ranks_;            ///< ranks that share each image
  std::int64_t images_;  ///< images of this rank
  Precision precision_;
  double bytes_;
  std::int64_t tiles_, rows_;
};

}  // namespace

StepList tower_forward(const VisionTower& tower, const TowerWork& work) {
  return work.images == 0 ? StepList() : TowerRank(tower, work).forward();
}

StepList deepstack_addition(const TowerWork& work) {
  const double bytes = activation_bytes(work.precision);
  StepList steps;
  steps.then(elementwise("vision deepstack addition", work.images * work.image.tokens, work.hidden,
                         {2 * bytes, bytes, 1}));
  return steps;
}

double tower_working(const VisionTower& tower, const TowerWork& work) {
  return work.images == 0 ? 0 : TowerRank(tower, work).working();
}

}  // namespace orrery
