// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/attention/latent_attention.h"

#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/ops/kernels.h"
#include "workloads/software/training_software.h"

namespace orrery {
namespace {

/// A kernel over all tokens.
/// @param read, written elements of a token
Kernel copy_of(const LayerTask& task, const std::string& name, double read, double written,
               double rotated) {
  const double bytes = task.bytes();
  return elementwise(name, task.work.tokens(), 1,
                     {read * bytes, written * bytes, rotated * vector_cost::kRotary});
}

/// Columns of all heads of a rank.
struct HeadColumns {
  double rotated = 0, kept = 0, values = 0, shared = 0;
  double queries() const { return rotated + kept; }
};

HeadColumns columns_of(const LayerTask& task) {
  const AttentionConfig& a = task.model.attention;
  const double heads = real(core_shape(task).query_heads);
  return {heads * real(a.qk_rope_head_dim), heads * real(a.qk_nope_head_dim),
          heads * real(a.v_head_dim), real(a.qk_rope_head_dim)};
}

/// Two kernels: queries are rotated where they stand; keys and values are written apart, the
/// rotated key to every head (core/fusions/fused_mla_yarn_rope_apply.py). Backwards the same bytes
/// go the other way.
void rotate_fused(StepList& steps, const LayerTask& task, const std::string& suffix) {
  const HeadColumns c = columns_of(task);
  const double joined = c.kept + c.values + c.shared, apart = c.queries() + c.values;
  const bool forward = suffix.empty();
  steps.then(copy_of(task, "rotary" + suffix, c.rotated, c.rotated, c.rotated));
  steps.then(copy_of(task, "key-value rotary" + suffix, forward ? joined : apart,
                     forward ? apart : joined, c.shared));
}

// Elementwise kernels of apply_rotary_pos_emb (core/models/common/embeddings/rope_utils.py): every
// second column in front of the others (cat), times cosines, the halves turned round (neg, cat),
// times sines, the sum, and cat with what is not rotated, of which there is none: 7.5 readings and
// 6.5 writings of what is rotated. Cosines and sines of positions are made by three kernels each.
constexpr double kRotaryReads = 7.5, kRotaryWrites = 6.5;
constexpr std::int64_t kRotaryKernels = 7, kAngleKernels = 6;

/// Their gradients are as many passes: an estimate.
Kernel rotary_passes(const LayerTask& task, const std::string& name, double columns,
                     std::int64_t kernels) {
  Kernel kernel = copy_of(task, name, kRotaryReads * columns, kRotaryWrites * columns, columns);
  kernel.launches = kernels;
  return kernel;
}

/// Rotations by themselves, and copies of what products gave into tensors of queries, keys and
/// values, or of their gradients back.
void rotate_apart(StepList& steps, const LayerTask& task, bool forward) {
  const HeadColumns c = columns_of(task);
  const std::string suffix = forward ? "" : " backward";
  const double joined = c.kept + c.values;
  if (!forward) steps.then(copy_of(task, "rotary key sum", c.rotated, c.shared, 0));
  const std::int64_t kernels = kRotaryKernels + (forward ? kAngleKernels : 0);
  steps.then(rotary_passes(task, "rotary" + suffix, c.rotated, kernels));
  steps.then(rotary_passes(task, "key rotary" + suffix, c.shared, kernels));
  steps.then(copy_of(task, "query copy" + suffix, c.queries(), c.queries(), 0));
  Kernel copies =
      forward ? copy_of(task, "key-value copy", joined + c.shared, c.queries() + c.values, 0)
              : copy_of(task, "key-value copy backward", joined, joined, 0);
  if (forward) copies.launches = 2;
  steps.then(std::move(copies));
}

}  // namespace

void rotate_trained(StepList& steps, const LayerTask& task, bool forward) {
  if (task.work.software->latent_rotary.value == Fusion::kApart) {
    rotate_apart(steps, task, forward);
  } else {
    rotate_fused(steps, task, forward ? "" : " backward");
  }
}

}  // namespace orrery
