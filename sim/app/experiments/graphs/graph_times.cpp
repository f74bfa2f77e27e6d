// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/graphs/graph_times.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>

#include "sim/config/type.h"
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

/// So many times as much work of the same shape.
Kernel scaled(Kernel kernel, double scale) {
  for (Flops* flops : {&kernel.matrix_flops, &kernel.vector_flops, &kernel.exponentials})
    *flops *= scale;
  for (Bytes* bytes : {&kernel.read, &kernel.written, &kernel.host}) *bytes *= scale;
  return kernel;
}

Picoseconds scaled(Picoseconds time, double scale) {
  return scale == 1 ? time : to_picoseconds(to_seconds(time) * scale);
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
      take_parts(graph, parts->second, *priced);
    costs_[number] = std::move(priced);
  }
  return *costs_[number];
}

/// Kernels one after the other, launches included, where that takes less.
void GraphTimes::take_parts(const ImportedGraph& graph, const std::vector<std::uint32_t>& parts,
                            KernelCost& whole) {
  Picoseconds time = 0, launch = 0;
  for (const std::uint32_t part : parts) {
    time += cost(graph, part).duration;
    launch += cost(graph, part).launch;
  }
  if (time >= whole.duration) return;
  whole.duration = time;
  whole.launch = std::min(whole.launch, launch);
}

/// Time of a node that runs alone.
Picoseconds GraphTimes::time_of(const ImportedGraph& graph, const ImportedNode& node) {
  const NodeWork& work = graph.works[node.work];
  const Picoseconds time =
      is_recorded(graph, node) ? work.recorded : cost(graph, work.kernel).duration;
  return scaled(time, node.kind == NodeKind::kKernel ? scales_.of_kernel(work) : scales_.of_host());
}

/// The kernels that are known, to find those that are alike.
class GraphTimes::KernelTable {
 public:
  /// Kernel as the file describes it, whether the file has its time, and the scale.
  KernelId number(const Kernel& kernel, bool recorded, double scale, GraphKernels& all) {
    const std::size_t key = std::hash<double>()(kernel.matrix_flops.base() + kernel.read.base()) ^
                            std::hash<double>()(kernel.written.base() * scale) ^
                            static_cast<std::size_t>(kernel.m * 31 + kernel.n * 7 + kernel.k);
    for (auto [entry, end] = known_.equal_range(key); entry != end; ++entry) {
      const Known& known = entry->second;
      if (known.recorded == recorded && known.scale == scale && known.kernel == kernel)
        return known.id;
    }
    const auto id = static_cast<KernelId>(all.kernels.size());
    known_.insert({key, {kernel, recorded, scale, id}});
    all.shapes.push_back(kernel);
    all.kernels.push_back(scaled(kernel, scale));
    all.costs.emplace_back();
    sums_.emplace_back();
    return id;
  }
  void add_times(KernelId id, Picoseconds time, std::uint64_t runs) {
    sums_[id].first += static_cast<double>(time) * static_cast<double>(runs);
    sums_[id].second += runs;
  }
  Picoseconds mean_time(KernelId id) const {
    const auto& [sum, runs] = sums_[id];
    return runs > 0 ? static_cast<Picoseconds>(std::llround(sum / static_cast<double>(runs))) : 0;
  }

 private:
  struct Known {
    Kernel kernel;
    bool recorded;
    double scale;
    KernelId id;
  };
  std::unordered_multimap<std::size_t, Known> known_;
  std::vector<std::pair<double, std::uint64_t>> sums_;  ///< sums of times, and runs, by kernel
};

/// Cost of a kernel that runs alone. Nameplate times have no clock and no slowdown.
KernelCost GraphTimes::cost_of(const ImportedGraph& graph, const ImportedNode& node, double scale) {
  KernelCost cost;
  if (is_recorded(graph, node)) {
    cost.provenance = Provenance::kMeasured;
    cost.fixed = true;
    return cost;
  }
  const std::uint32_t number = graph.works[node.work].kernel;
  cost = this->cost(graph, number);
  cost.fixed = has_no_shape(graph.kernels[number]);
  cost.duration = scaled(cost.duration, scale);
  cost.launch = scaled(cost.launch, scale);
  cost.cache *= scale;
  if (cost.memory) *cost.memory *= scale;
  return cost;
}

void GraphTimes::add_kernels(const ImportedGraph& graph, std::uint64_t ranks, KernelTable& table,
                             GraphKernels& kernels) {
  std::vector<std::uint64_t> nodes(graph.works.size());
  std::vector<const ImportedNode*> first(graph.works.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    const ImportedNode& node = graph.nodes[id];
    if (node.kind != NodeKind::kKernel || graph.works[node.work].communicates) continue;
    if (++nodes[node.work] == 1) first[node.work] = &node;
  }
  std::map<std::tuple<std::uint32_t, bool, double>, KernelId> of_graph;
  std::map<KernelId, std::uint64_t> runs;
  std::vector<KernelId>& of_work = kernels.of_work.emplace_back();
  of_work.assign(graph.works.size(), NodeWork::kNoKernel);
  for (std::size_t number = 0; number < nodes.size(); ++number) {
    if (nodes[number] == 0) continue;
    const NodeWork& work = graph.works[number];
    const ImportedNode& node = *first[number];
    const bool recorded = is_recorded(graph, node);
    const double scale = scales_.of_kernel(work);
    const auto [known, is_new] = of_graph.try_emplace({work.kernel, recorded, scale}, 0);
    if (is_new) {
      const bool told = work.kernel != NodeWork::kNoKernel;
      known->second =
          table.number(told ? graph.kernels[work.kernel] : Kernel(), recorded, scale, kernels);
      kernels.costs[known->second] = cost_of(graph, node, scale);
    }
    of_work[number] = known->second;
    runs[known->second] += nodes[number];
    if (kernels.costs[known->second].fixed)
      table.add_times(known->second, time_of(graph, node), nodes[number] * ranks);
  }
  kernels.runs.emplace_back(runs.begin(), runs.end());
}

GraphKernels GraphTimes::kernels(const ImportedRun& run) {
  GraphKernels kernels;
  KernelTable table;
  std::vector<std::uint64_t> ranks(run.graphs.size());
  for (const std::uint32_t graph : run.graph_of_rank)
    if (graph != ImportedRun::kAbsent) ++ranks[graph];
  for (std::size_t graph = 0; graph < run.graphs.size(); ++graph)
    add_kernels(run.graphs[graph], ranks[graph], table, kernels);
  for (KernelId id = 0; id < kernels.costs.size(); ++id)
    if (kernels.costs[id].fixed) kernels.costs[id].duration = table.mean_time(id);
  return kernels;
}

std::vector<Picoseconds> GraphTimes::times(const ImportedGraph& graph,
                                           const std::vector<KernelId>& of_work,
                                           const std::vector<KernelCost>& costs) {
  const auto works = [](const ImportedNode& node) { return node.kind <= NodeKind::kKernel; };
  bool as_recorded = scales_.none();
  for (NodeId id = 0; id < graph.size() && as_recorded; ++id)
    as_recorded = !works(graph.nodes[id]) || is_recorded(graph, graph.nodes[id]);
  if (as_recorded) return {};
  std::vector<Picoseconds> times(graph.works.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    const ImportedNode& node = graph.nodes[id];
    if (!works(node)) continue;
    const KernelId kernel = of_work[node.work];
    const bool priced = kernel != NodeWork::kNoKernel && !costs[kernel].fixed;
    times[node.work] = priced ? costs[kernel].duration : time_of(graph, node);
  }
  return times;
}

GraphTimes::Summary GraphTimes::summary(const ImportedGraph& graph,
                                        const std::vector<Picoseconds>& times) {
  Summary summary;
  std::map<std::string, ClassBreakdown> classes;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const ImportedNode& node = graph.nodes[id];
    if (node.kind != NodeKind::kKernel && node.kind != NodeKind::kHost) continue;
    const double seconds =
        to_seconds(times.empty() ? graph.works[node.work].recorded : times[node.work]).base();
    ClassBreakdown& row = classes[class_of(graph, node)];
    ++row.count;
    row.time_s += seconds;
    const bool recorded = is_recorded(graph, node);
    const Provenance provenance =
        recorded ? Provenance::kMeasured : cost(graph, graph.works[node.work].kernel).provenance;
    summary.seconds.add(provenance, seconds);
    if (recorded) summary.recorded_s += seconds;
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
  std::ranges::stable_sort(summary.classes, std::greater(), &ClassBreakdown::time_s);
  return summary;
}

}  // namespace orrery
