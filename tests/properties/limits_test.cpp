// SPDX-License-Identifier: Apache-2.0
// No kernel of any family beats what its device can do, on any shipped device; the limits are
// worked out here again.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "models/kernels/device/array_time.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "sim/config/load.h"
#include "sim/config/override.h"
#include "sim/machine/kernel_model.h"
#include "sim/machine/limits.h"
#include "workloads/operators/operator.h"

namespace orrery::limits_test {
namespace {

const config::Library& library() {
  static const config::Library shipped(ORRERY_SOURCE_DIR "/configs");
  return shipped;
}

AcceleratorConfig device(const std::string& name, const std::vector<std::string>& changes = {}) {
  config::Diagnostics diagnostics;
  config::Node node = config::load_file(library().locate("accelerators", name, ""), diagnostics,
                                        library(), "accelerators");
  for (const std::string& change : changes)
    config::apply_override(node, AcceleratorConfig::schema().record(), change, diagnostics,
                           library());
  diagnostics.throw_if_errors();
  const auto read = config::read<AcceleratorConfig>(node, diagnostics, library());
  diagnostics.throw_if_errors();
  return read;
}

struct Holder {
  config::OneOf<OperatorConfig> op;
  static const config::Schema<Holder>& schema() {
    static const auto schema =
        config::Schema<Holder>("holder", "of an operator").required("op", &Holder::op, "which");
    return schema;
  }
};

std::vector<Kernel> kernels_of(const std::string& keys, Precision precision) {
  config::Diagnostics diagnostics;
  const config::Node node = config::parse_yaml("op: {" + keys + "}\n", "test.yaml", diagnostics);
  const Holder holder = config::read<Holder>(node, diagnostics, library());
  diagnostics.throw_if_errors();
  return holder.op->kernels(precision);
}

std::string text(const char* key, std::int64_t value) {
  return std::string(", ") + key + ": " + std::to_string(value);
}

/// Operators of every family, small ones that fit into an L2 and large ones.
std::vector<std::string> operators() {
  std::vector<std::string> all = {"kind: softmax, rows: 65536, width: 4096",
                                  "kind: rms_norm, rows: 16384, width: 8192",
                                  "kind: optimizer, parameters: 100000000"};
  for (const std::int64_t m : {1, 16, 128, 1024, 8192})
    for (const std::int64_t n : {1024, 8192})
      all.push_back("kind: gemm" + text("m", m) + text("n", n) + text("k", 8192));
  for (const std::int64_t batch : {1, 16, 128})
    for (const std::int64_t tokens : {512, 4096, 32768}) {
      const std::string cached = text("batch", batch) + text("kv_length", tokens);
      for (const char* heads : {", heads: 8, kv_heads: 1", ", heads: 32, kv_heads: 8",
                                ", heads: 32, kv_heads: 8, head_dim: 64", ", heads: 64"})
        all.push_back("kind: attention_decode" + cached + heads);
      all.push_back("kind: mla_decode, heads: 128" + cached);
      all.push_back("kind: mla_decode, heads: 16" + cached);
    }
  for (const std::int64_t query : {256, 2048, 16384}) {
    all.push_back("kind: attention_prefill, heads: 32, kv_heads: 8" + text("query", query));
    all.push_back("kind: attention_prefill, heads: 32, head_dim: 64" + text("query", query));
    all.push_back("kind: mla_prefill, heads: 128" + text("query", query));
    all.push_back("kind: delta_rule, heads: 32, key_heads: 16" + text("query", query));
    all.push_back("kind: mamba_scan, heads: 64" + text("query", query));
    all.push_back("kind: sparse_attention, heads: 128" + text("query", query));
    all.push_back("kind: index_scores, top_k: 2048" + text("query", query));
  }
  for (const std::int64_t tokens : {16, 512, 8192})
    all.push_back("kind: moe, hidden: 4096, expert_ffn: 2048, top_k: 8, experts: 64" +
                  text("tokens", tokens));
  return all;
}

/// Products over 8-bit latents run in 8 bits on Blackwell.
double matrix_rate(const Kernel& kernel, const AcceleratorConfig& a) {
  const bool blackwell = multiplies_apart(a);
  const bool latents = kernel.kind == KernelClass::kMlaDecode && kernel.attention.wide_queries;
  const bool narrow = blackwell && latents && a.compute.matrix.contains(Precision::kFp8);
  const Precision scaled =
      kernel.precision == Precision::kFp8Block ? Precision::kFp8 : kernel.precision;
  return a.compute.matrix.at(narrow ? Precision::kFp8 : scaled).value.base() / a.dies;
}

/// Seconds that a kernel takes at least: FLOPs and exponentials at their peaks, what the L2 cannot
/// hold at the memory's bandwidth, all at the L2's.
double least_seconds(const Kernel& kernel, const AcceleratorConfig& a) {
  const double bytes = (kernel.read + kernel.written).base() * a.dies;
  const double held = a.cache ? a.cache->capacity.value.base() : 0;
  double least = std::max(0.0, bytes - held) / a.memory.bandwidth.value.base();
  if (a.cache) least = std::max(least, bytes / a.cache->bandwidth.value.base());
  if (kernel.matrix_flops.base() > 0)
    least = std::max(least, kernel.matrix_flops.base() / matrix_rate(kernel, a));
  least = std::max(least, kernel.vector_flops.base() * a.dies / a.compute.vector.value.base());
  if (a.compute.special)
    least = std::max(least, kernel.exponentials.base() * a.dies / a.compute.special->value.base());
  return least;
}

class Limits : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<KernelModel> model(const AcceleratorConfig& on) const {
    return kernel_model(
        on.calibration.empty() ? "none" : library().locate("calibrations", on.calibration, ""), on);
  }
  /// All operators in all formats that the device multiplies.
  std::vector<Kernel> kernels(const AcceleratorConfig& on) const {
    std::vector<Kernel> all;
    for (const auto& [precision, rate] : on.compute.matrix) {
      for (const std::string& keys : operators()) {
        const std::vector<Kernel> more = kernels_of(keys, precision);
        const bool has = std::all_of(more.begin(), more.end(), [&](const Kernel& kernel) {
          return kernel.matrix_flops.base() == 0 || on.compute.matrix.contains(kernel.precision);
        });
        if (has) all.insert(all.end(), more.begin(), more.end());
      }
    }
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Library, Limits, testing::ValuesIn(library().names("accelerators")),
                         [](const auto& test) { return test.param; });

std::string name(const Kernel& kernel) {
  std::string words = std::string(to_string(kernel.kind)) + " " + to_string(kernel.precision);
  for (const std::int64_t size : {kernel.batch, kernel.m, kernel.n, kernel.k})
    words.append(" ").append(std::to_string(size));
  return words;
}

TEST_P(Limits, NoKernelIsFasterThanItsDeviceAndItsBoundIsTheNearestLimit) {
  const AcceleratorConfig on = device(GetParam());
  const auto prices = model(on);
  for (const Kernel& kernel : kernels(on)) {
    const KernelCost cost = prices->cost(kernel, on);
    const double time = to_seconds(cost.duration).base();
    const Limit limit = limit_of(kernel, cost, on);
    EXPECT_GE(time * (1 + 1e-9), least_seconds(kernel, on)) << name(kernel);
    EXPECT_LE(limit.time.base(), time * (1 + 1e-9)) << name(kernel);
    if (on.compute.arrays && cost.bound == Bound::kTensor && limit.bound == Bound::kLatency) {
      // Arrays are taken, whatever their rows and columns leave idle.
      const double body = to_seconds(cost.duration - cost.launch).base();
      EXPECT_GE(2 * array_time(kernel, on).base(), body * (1 - 1e-6)) << name(kernel);
    } else {
      EXPECT_EQ(cost.bound, limit.bound) << name(kernel);
    }
    if (limit.time.base() < 0.25 * time) {
      EXPECT_EQ(limit.bound, Bound::kLatency) << name(kernel);
    }
    if (limit.bound != Bound::kTensor) continue;
    EXPECT_NEAR(limit.time.base(), kernel.matrix_flops.base() / matrix_rate(kernel, on),
                1e-9 * limit.time.base())
        << name(kernel);
  }
}

/// What tiles read passes the L2: at a twentieth of its bandwidth kernels whose loads take twice
/// their time get slower, and none gets faster. With much more memory bandwidth the L2 is the end.
TEST_P(Limits, WhatTilesReadPassesTheL2) {
  const AcceleratorConfig on = device(GetParam());
  if (!on.cache || on.partition) return;
  const double cache = on.cache->bandwidth.value.base() / 20;
  const double memory = on.memory.bandwidth.value.base() * 100 / 1e9;
  const AcceleratorConfig slow =
      device(GetParam(), {"cache.bandwidth=" + std::to_string(cache / 1e9) + " GB/s"});
  const AcceleratorConfig wide =
      device(GetParam(), {"memory.bandwidth=" + std::to_string(memory) + " GB/s"});
  const auto prices = model(on), slow_prices = model(slow), wide_prices = model(wide);
  for (const Kernel& kernel : kernels(on)) {
    const KernelCost before = prices->cost(kernel, on), after = slow_prices->cost(kernel, slow);
    const double ratio = static_cast<double>(after.duration) / static_cast<double>(before.duration);
    const double loads = before.cache.base() * on.dies / cache;
    const bool held_up = loads > 2 * to_seconds(before.duration).base();
    EXPECT_GE(ratio, held_up ? 1.3 : 0.99) << name(kernel);
    const double bytes = (kernel.read + kernel.written).base() * wide.dies;
    EXPECT_GE(to_seconds(after.duration).base() * (1 + 1e-9),
              bytes / slow.cache->bandwidth.value.base())
        << name(kernel);
    EXPECT_GE(to_seconds(wide_prices->cost(kernel, wide).duration).base() * (1 + 1e-9),
              bytes / wide.cache->bandwidth.value.base())
        << name(kernel);
  }
}

}  // namespace
}  // namespace orrery::limits_test
