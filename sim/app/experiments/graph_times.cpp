// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/graph_times.h"

#include <algorithm>

#include "sim/machine/kernel_fit.h"

namespace orrery {
namespace {

/// FLOPs and bytes are all that is known of it.
bool has_no_shape(const Kernel& kernel) {
  return kernel.matrix_flops.base() > 0 && kernel.m == 0 && kernel.n == 0 && kernel.k == 0;
}

KernelCost roofline_cost(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const Seconds arithmetic = kernel.matrix_flops / matrix_peak(accelerator, kernel.precision);
  const Seconds memory = (kernel.read + kernel.written) / (accelerator.memory.bandwidth.value /
                                                           static_cast<double>(accelerator.dies));
  KernelCost cost;
  cost.duration = to_picoseconds(std::max(arithmetic, memory));
  cost.bound = arithmetic > memory ? Bound::kTensor : Bound::kMemory;
  return cost;
}

std::string class_of(const ImportedGraph& graph, const ImportedNode& node) {
  if (node.kind == NodeKind::kHost) return "host";
  const NodeWork& work = graph.works[node.work];
  if (work.communicates) return GraphTimes::kUnknownCollectives;
  return work.classified ? to_string(work.kind) : GraphTimes::kUnknownClass;
}

}  // namespace

std::vector<std::string> TimeScales::names() {
  std::vector<std::string> names = {"all", "host", "collective", "attention", "mla"};
  for (const auto& [kind, name] : config::EnumNames<KernelClass>::values) names.emplace_back(name);
  return names;
}

double TimeScales::factor(const std::string& name) const {
  const auto known = factors.find(name);
  return known == factors.end() ? 1 : known->second;
}

/// "attention" is all whose names begin so.
double TimeScales::of_kernel(const NodeWork& work) const {
  double product = factor("all");
  if (work.communicates) return product * factor("collective");
  if (!work.classified || factors.empty()) return product;
  const std::string kind = to_string(work.kind);
  product *= factor(kind);
  for (const char* family : {"attention", "mla"})
    if (kind.starts_with(std::string(family) + "_")) product *= factor(family);
  return product;
}

double TimeScales::of_host() const { return drop_host ? 0 : factor("all") * factor("host"); }
double TimeScales::of_transfers() const { return factor("all") * factor("collective"); }

bool GraphTimes::is_recorded(const ImportedGraph& graph, const ImportedNode& node) const {
  const NodeWork& work = graph.works[node.work];
  if (node.kind != NodeKind::kKernel || work.kernel == NodeWork::kNoKernel) return true;
  return durations_ == Durations::kRecorded && work.timed;
}

const KernelCost& GraphTimes::cost(const ImportedGraph& graph, std::uint32_t number) {
  if (costs_of_ != &graph) {
    costs_.clear();
    costs_.resize(graph.kernels.size());
    costs_of_ = &graph;
  }
  if (!costs_[number]) {
    const Kernel& kernel = graph.kernels[number];
    auto priced = std::make_unique<KernelCost>(
        has_no_shape(kernel) ? roofline_cost(kernel, accelerator_) : prices_->cost(kernel));
    if (const auto parts = graph.parts.find(number); parts != graph.parts.end())
      priced->duration = std::min(priced->duration, time_of_parts(graph, parts->second));
    costs_[number] = std::move(priced);
  }
  return *costs_[number];
}

/// Kernels one after the other.
Picoseconds GraphTimes::time_of_parts(const ImportedGraph& graph,
                                      const std::vector<std::uint32_t>& parts) {
  Picoseconds time = 0;
  for (const std::uint32_t part : parts) time += cost(graph, part).duration;
  return time;
}

GraphTimes::NodeTime GraphTimes::time_of(const ImportedGraph& graph, const ImportedNode& node) {
  const NodeWork& work = graph.works[node.work];
  NodeTime time{work.recorded, Provenance::kMeasured};
  if (!is_recorded(graph, node)) {
    const KernelCost& priced = cost(graph, work.kernel);
    time = {priced.duration, priced.provenance};
  }
  const double scale = node.kind == NodeKind::kKernel ? scales_.of_kernel(work) : scales_.of_host();
  if (scale != 1) time.time = to_picoseconds(to_seconds(time.time) * scale);
  return time;
}

std::vector<Picoseconds> GraphTimes::times(const ImportedGraph& graph) {
  const auto works = [](const ImportedNode& node) { return node.kind <= NodeKind::kKernel; };
  bool as_recorded = scales_.none();
  for (NodeId id = 0; id < graph.size() && as_recorded; ++id)
    as_recorded = !works(graph.nodes[id]) || is_recorded(graph, graph.nodes[id]);
  if (as_recorded) return {};
  std::vector<Picoseconds> times(graph.works.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    const ImportedNode& node = graph.nodes[id];
    if (works(node)) times[node.work] = time_of(graph, node).time;
  }
  return times;
}

GraphTimes::Summary GraphTimes::summary(const ImportedGraph& graph) {
  Summary summary;
  std::map<std::string, ClassBreakdown> classes;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const ImportedNode& node = graph.nodes[id];
    if (node.kind != NodeKind::kKernel && node.kind != NodeKind::kHost) continue;
    const NodeTime time = time_of(graph, node);
    const double seconds = to_seconds(time.time).base();
    ClassBreakdown& row = classes[class_of(graph, node)];
    ++row.count;
    row.time_s += seconds;
    summary.seconds[time.provenance] += seconds;
    if (is_recorded(graph, node)) summary.recorded_s += seconds;
    if (const std::uint32_t number = graph.works[node.work].kernel; number != NodeWork::kNoKernel) {
      const Kernel& kernel = graph.kernels[number];
      row.flops += (kernel.matrix_flops + kernel.vector_flops).base();
      row.bytes += (kernel.read + kernel.written).base();
    }
  }
  for (auto& [name, row] : classes) {
    row.name = name;
    summary.classes.push_back(std::move(row));
  }
  std::stable_sort(
      summary.classes.begin(), summary.classes.end(),
      [](const ClassBreakdown& a, const ClassBreakdown& b) { return a.time_s > b.time_s; });
  return summary;
}

}  // namespace orrery
