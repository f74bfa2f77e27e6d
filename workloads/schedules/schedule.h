// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/registry.h"
#include "workloads/plan/placement.h"

namespace orrery {

/// One pass of a micro-batch through a chunk of layers.
struct Pass {
  enum class Kind : std::uint8_t {
    kForward,
    kBackward,        ///< both gradients
    kInputGradient,   ///< gradients of activations, which the rank before waits for
    kWeightGradient,  ///< gradients of weights, for which nothing but the optimizer waits
  };
  Kind kind = Kind::kForward;
  int chunk = 0;
  std::int64_t micro_batch = 0;
  bool with_next = false;  ///< runs side by side with the pass that follows

  bool operator==(const Pass&) const = default;
};

/// What a schedule is made for.
struct PipelineShape {
  int ranks = 1;   ///< pipeline ranks (`pp`)
  int chunks = 1;  ///< chunks of layers on each rank (`vpp`)
  std::int64_t micro_batches = 1;
  /// Forward passes run beside the backward passes that follow them, where a schedule can.
  bool pairs = false;
};

/// Fewest and most chunks per rank.
struct ChunkLimits {
  int fewest = 1;
  int most = std::numeric_limits<int>::max();

  bool holds(int chunks) const { return chunks >= fewest && chunks <= most; }
  std::string text() const;  ///< "1 chunk", "at least 2 chunks"
};

/// In which order pipeline ranks work. `schedule:` names one; a file that derives a class and
/// registers an object of it adds another.
class PipelineSchedule {
 public:
  virtual ~PipelineSchedule() = default;

  virtual ChunkLimits chunks() const = 0;
  /// A number that micro-batches must divide by.
  virtual std::int64_t micro_batch_multiple(const PipelineShape& shape) const;
  /// What it needs and a shape has not: "an even number of pipeline stages"; empty: nothing.
  virtual std::string fault(const PipelineShape& shape) const;
  /// Whether its forward passes of a shape can run beside the backward passes that follow them.
  virtual bool can_pair(const PipelineShape&) const { return false; }
  /// What can be wrong with passes that somebody wrote; others are right for every shape.
  /// @throws config::ConfigError with the place of what is wrong
  virtual void check(const PipelineShape&) const {}
  /// Which slice of the model each chunk holds; by default Placement::round_robin.
  virtual Placement place(const PipelineShape& shape) const;
  /// Passes of a rank in order. Each chunk has for each micro-batch a forward pass and either a
  /// backward pass or an input and a weight gradient; where slices have copies, for each
  /// micro-batch of its copy, and every copy has equally many.
  virtual std::vector<Pass> passes(const PipelineShape& shape, int rank) const = 0;
  /// Share of a step in which a rank waits for others, where chunks take equally long, messages no
  /// time, and the halves of backward passes, where a schedule has them, each as long as a forward
  /// pass; nothing where no closed form is known.
  virtual std::optional<double> bubble(const PipelineShape& shape) const;
};

using ScheduleRegistry = Registry<std::shared_ptr<const PipelineSchedule>>;

/// What `schedule` says where nobody chose one.
inline constexpr const char* kAutoSchedule = "auto";

/// The name that `name` stands for: for auto, interleaved with several chunks and 1f1b with one.
std::string resolved_schedule(const std::string& name, int chunks);

/// Forwards and backwards in turn between `warm_up` forwards and as many last backwards, with
/// micro-batches that go through the chunks in groups of `group`. Where the shape pairs passes,
/// each of the forwards in turn runs beside the backward that follows it; one more forward warms
/// up, so that neither needs what the other makes.
std::vector<Pass> alternating_passes(const PipelineShape& shape, std::int64_t group,
                                     std::int64_t warm_up);

}  // namespace orrery
