// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/experiments/core/intervals.h"
#include "sim/config/declared.h"
#include "sim/graph/costs.h"
#include "sim/graph/imported_graph.h"
#include "sim/graph/operator_graph.h"
#include "sim/machine/accelerator_config.h"
#include "sim/machine/kernel_model.h"
#include "sim/results/run_record.h"

namespace orrery {

/// Where times of the nodes of an imported graph come from.
enum class Durations : std::uint8_t {
  kRecorded,  ///< the file, as far as it tells; else the model
  kModel,     ///< the model, where a node says what it computes; else the file
};

/// How many times longer nodes take than they would.
struct TimeScales {
  std::map<std::string, double> factors;  ///< factors by class: gemm, collective, host, all, ...
  bool drop_host = false;                 ///< host operators take no time

  /// Names that `factors` may have.
  static std::vector<std::string> names();
  double of_kernel(const NodeWork& work) const;
  double of_host() const;
  double of_transfers() const;
  bool none() const { return factors.empty() && !drop_host; }

 private:
  double factor(const std::string& name) const;
};

/// The kernels of an imported run, each once that differs in its work, its scale, or in where its
/// time comes from.
struct GraphKernels {
  std::vector<Kernel> shapes;   ///< kernels without their scale, for models that go by shape
  std::vector<Kernel> kernels;  ///< work times scale; empty where files tell no work
  /// Times alone on the accelerator. Where files or nameplates give them they are fixed, and the
  /// mean of all runs.
  std::vector<KernelCost> costs;
  /// The kernel of each work, by graph; NodeWork::kNoKernel for hosts, markers and transfers.
  std::vector<std::vector<KernelId>> of_work;
  /// Runs of each kernel on a rank, by graph.
  std::vector<std::vector<std::pair<KernelId, std::uint64_t>>> runs;
};

/// What the nodes of imported graphs take on an accelerator.
///
/// A kernel whose shape is known is priced by the kernel model; one of which a file tells only
/// FLOPs and bytes is a roofline: max(FLOPs / peak, bytes / memory bandwidth), both nameplates of
/// one rank, as Chakra's own simulator does it.
class GraphTimes {
 public:
  /// @param model, accelerator, scales have to outlive it
  GraphTimes(const KernelModel& model, const AcceleratorConfig& accelerator, Durations durations,
             const TimeScales& scales)
      : prices_(model.on(accelerator)),
        accelerator_(accelerator),
        durations_(durations),
        scales_(scales) {}

  GraphKernels kernels(const ImportedRun& run);
  /// Times of all works of a graph; empty: as the file has recorded.
  /// @param of_work, costs of kernels(), or what these cost at another clock
  std::vector<Picoseconds> times(const ImportedGraph& graph, const std::vector<KernelId>& of_work,
                                 const std::vector<KernelCost>& costs);
  /// The class of kernels that no rule and no name has one for.
  static constexpr const char* kUnknownClass = "other kernels";
  /// Collectives of which the file has recorded no bytes or group.
  static constexpr const char* kUnknownCollectives = "collectives of unknown size";
  /// What kernels and host operators of a graph do, by class; and what their time rests on.
  struct Summary {
    std::vector<ClassBreakdown> classes;
    ProvenanceTime seconds;
    double recorded_s = 0;  ///< the part of the time that the file has recorded
  };
  /// @param times as times() gives them
  Summary summary(const ImportedGraph& graph, const std::vector<Picoseconds>& times);

 private:
  class KernelTable;

  bool is_recorded(const ImportedGraph& graph, const ImportedNode& node) const;
  void add_kernels(const ImportedGraph& graph, std::uint64_t ranks, KernelTable& table,
                   GraphKernels& kernels);
  KernelCost cost_of(const ImportedGraph& graph, const ImportedNode& node, double scale);
  Picoseconds time_of(const ImportedGraph& graph, const ImportedNode& node);
  const KernelCost& cost(const ImportedGraph& graph, std::uint32_t kernel);
  void take_parts(const ImportedGraph& graph, const std::vector<std::uint32_t>& parts,
                  KernelCost& whole);

  std::unique_ptr<KernelPrices> prices_;
  const AcceleratorConfig& accelerator_;
  Durations durations_;
  const TimeScales& scales_;
  /// Costs of kernels by number, of the graph that was asked about last.
  std::vector<std::unique_ptr<KernelCost>> costs_;
  const ImportedGraph* costs_of_ = nullptr;
};

}  // namespace orrery

namespace orrery::config {

template <>
struct EnumNames<Durations> {
  static constexpr std::pair<Durations, const char*> values[] = {{Durations::kRecorded, "recorded"},
                                                                 {Durations::kModel, "model"}};
};

}  // namespace orrery::config
