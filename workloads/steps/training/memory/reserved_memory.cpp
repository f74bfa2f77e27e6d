// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/memory/reserved_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "workloads/base/real.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/ops/kernels.h"
#include "workloads/steps/training/backward_update.h"
#include "workloads/steps/training/memory/gathered_weights.h"
#include "workloads/steps/training/memory/kept_messages.h"
#include "workloads/steps/training/optimizer_step.h"
#include "workloads/steps/training/pass_blocks.h"
#include "workloads/steps/training/sharded_weights.h"

namespace orrery {
namespace {

using Handle = CachingAllocator::Handle;
using Handles = CachingAllocator::Handles;

// Streams whose blocks others do not get (PyTorch FSDP: all_gather_stream, reduce_scatter_stream).
constexpr int kReduceStream = 2;
/// Steps until what is reserved grows no more, but for little.
constexpr int kSteps = 3;

/// A tensor that a piece makes or frees, by the number of its name.
struct Event {
  bool makes = true;
  std::size_t name = 0;
  std::int64_t bytes = 0;
};

class StepReplay {
 public:
  StepReplay(const LlmConfig& model, const TrainingConfig& config, int stage)
      : model_(model),
        config_(config),
        stage_(stage),
        work_(rank_work(model, config)),
        pieces_(model, config),
        allocator_(config.software->segments.value),
        gathered_(allocator_, model, config, pieces_, stage),
        makes_gradients_(makes_gradients(config)) {
    work_.passes.tensors = true;
    passes_ = schedule_of(config).passes(pipeline_shape(config), stage);
    const std::size_t in_flight = 4 * static_cast<std::size_t>(config.parallel.pp) *
                                  static_cast<std::size_t>(config.parallel.vpp);
    passes_.resize(std::min(passes_.size(), std::max<std::size_t>(in_flight, 6)));
  }

  std::int64_t reserved(const StageStates& states) {
    const double each =
        optimizer_bytes(config_.optimizer, config_.precision, config_.optimizer_states);
    const bool master = config_.optimizer_states.master == MasterWeights::kFp32 &&
                        training_bytes(config_.precision) < 4;
    const double there = master && each > 0 ? 4 / each : 0;
    make_shares(Share::kWeights, states.weights.base());
    make_shares(Share::kStates, states.optimizer.base() * there);
    if (!makes_gradients_) make_whole(states.gradients.base());
    const bool copies = config_.software->step_gradients.value == StepGradients::kCopied;
    const StepCopies of_step = step_copies(each > 0 ? states.optimizer.base() / each : 0, config_);
    // Software that copies gradients makes all states before the first step, from fp32 zeros.
    if (copies) begin_states(states.optimizer.base() * (1 - there), of_step);
    make_messages();
    const bool whole_time = config_.parallel.zero >= 3;
    if (whole_time) make_whole(bucket_buffers(config_).base());
    for (int step = 0; step < kSteps; ++step) {
      for (const Pass& pass : passes_) run(pass, whole_time ? Bytes() : bucket_buffers(config_));
      end_passes();
      if (copies) copy_gradients(of_step);
      if (step == 0 && !copies) make_shares(Share::kStates, states.optimizer.base() * (1 - there));
      end_gradients(gradients_.size());
      with_gradients_.clear();
    }
    return allocator_.reserved();
  }

 private:
  /// Gradients of a piece, and the buffer and the shard that a reduction at the end makes of them.
  struct Gradients {
    Handles tensors;
    std::int64_t whole = 0, shard = 0;
  };
  /// Where tensors of a micro-batch in a piece are between passes.
  using Place = std::tuple<std::int64_t, int, Piece::Kind, std::int64_t>;
  using Alive = std::vector<std::pair<std::size_t, Handle>>;

  enum class Share : std::uint8_t { kWeights, kStates };

  /// Tensors of one size for each matrix of the stage, or each that is trained, which together have
  /// so many bytes.
  void make_shares(Share what, double bytes) {
    if (bytes <= 0) return;
    std::vector<RankParameters> all;
    double parameters = 0;
    for (const Piece& piece : pieces_.of_stage(stage_)) {
      all.push_back(what == Share::kWeights ? pieces_.held(piece, stage_)
                                            : pieces_.trained(piece, stage_));
      parameters += real(all.back().total());
    }
    for (const RankParameters& of_piece : all)
      allocator_.allocate(matrix_bytes(of_piece, bytes / parameters));
  }

  void begin_states(double bytes, const StepCopies& of_step) {
    const Handle zeros = allocator_.allocate(whole_bytes(of_step.wide.base()));
    make_shares(Share::kStates, bytes);
    allocator_.free(zeros);
  }

  /// An fp64 copy of the largest gradient, for the norm, and those of StepCopies.
  void copy_gradients(const StepCopies& of_step) {
    std::int64_t largest = 0;
    for (const Piece& piece : pieces_.of_stage(stage_)) {
      const RankParameters trained = pieces_.trained(piece, stage_);
      if (trained.total() == 0) continue;
      const double share = shard_of(trained, config_).total() / real(trained.total());
      largest = std::max(largest, matrix_bytes(trained, 8 * share).front());
    }
    allocator_.free(allocator_.allocate(largest));
    const Handle flat = allocator_.allocate(whole_bytes(of_step.flat.base()));
    const Handle wide = allocator_.allocate(whole_bytes(of_step.wide.base()));
    allocator_.free(flat);
    allocator_.free(wide);
  }

  /// Frozen matrices are widened one by one.
  void widen(const Piece& piece) {
    if (!piece.is_layer()) return;
    const Bytes widened =
        widening_bytes({model_, pieces_.layer(piece), pieces_.work(piece, work_)});
    if (widened.base() > 0) allocator_.free(allocator_.allocate(whole_bytes(widened.base())));
  }

  /// Buffers to receive the activations and gradients of all micro-batches.
  void make_messages() {
    for (int chunk = 0; chunk < config_.parallel.vpp; ++chunk) {
      const KeptMessages kept = kept_messages(pieces_, work_, {stage_, chunk});
      for (std::int64_t i = 0; i < micro_batches(config_); ++i) {
        make_whole(kept.received.base());
        make_whole(kept.sent.base());
      }
    }
  }

  /// What a chunk sends stays from its forward pass to the end of the backward pass.
  void keep_sent(const Pass& pass, ChunkPlace place) {
    const Bytes sent = kept_messages(pieces_, work_, place).sent;
    if (sent.base() == 0) return;
    Handles& kept = sent_[{pass.micro_batch, pass.chunk}];
    if (pass.kind == Pass::Kind::kForward)
      kept = {allocator_.allocate(whole_bytes(sent.base()))};
    else
      allocator_.release(kept);
  }

  /// Whether a tensor is a message in its buffer.
  bool is_received(const Piece& piece, ChunkPlace place, const Event& event) const {
    const auto input = names_.find("layer input");
    return piece.is_layer() && input != names_.end() && event.name == input->second &&
           piece.index == pieces_.layers(place).first &&
           kept_messages(pieces_, work_, place).received.base() > 0;
  }

  void make_whole(double bytes) {
    if (bytes > 0) allocator_.allocate(whole_bytes(bytes));
  }

  /// Both halves of what a layer makes beside its input.
  Handles allocate_halves(Bytes bytes) {
    if (bytes.base() <= 0) return {};
    return allocator_.allocate({whole_bytes(bytes.base() / 2), whole_bytes(bytes.base() / 2)});
  }

  /// @param buckets buffers that each backward pass has
  void run(const Pass& pass, Bytes buckets) {
    const ChunkPlace place{stage_, pass.chunk};
    const bool forward = pass.kind == Pass::Kind::kForward;
    Handles buffers;
    if (!forward && buckets.base() > 0)
      buffers = {allocator_.allocate(whole_bytes(buckets.base()))};
    Handles before;  // values of the layer before, beside which the next one's input is made
    const std::vector<Piece> pieces = pieces_.of_pass(place, pass.kind);
    const bool first = makes_gradients_ && has_weight_gradients(pass.kind) &&
                       with_gradients_.insert(pass.chunk).second;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      gathered_.gather(pieces, i);
      Handles flowing = allocate_halves(forward ? Bytes() : pieces_.flow(pieces[i], work_));
      widen(pieces[i]);
      play(pieces[i], pass, place);
      allocator_.release(flowing);
      allocator_.release(before);
      if (forward) before = allocate_values(pieces[i]);
      if (has_weight_gradients(pass.kind)) {
        const std::size_t waiting = gradients_.size();
        make_gradients(pieces[i], first);
        if (config_.optimizer_in_backward)
          end_gradients(updates_wait(model_, config_) ? waiting : gradients_.size());
      }
      gathered_.leave(pieces[i]);
    }
    allocator_.release(before);
    gathered_.end_pass();
    keep_sent(pass, place);
    allocator_.release(buffers);
  }

  /// What a layer that keeps its input alone makes in its forward pass: as much as it has
  /// gradients.
  Handles allocate_values(const Piece& piece) {
    if (!piece.is_layer() || pieces_.work(piece, work_).passes.recompute != Recompute::kFull)
      return {};
    return allocate_halves(pieces_.flow(piece, work_));
  }

  void play(const Piece& piece, const Pass& pass, ChunkPlace place) {
    const Piece::Kind kind =
        piece.kind == Piece::Kind::kLayerAgain ? Piece::Kind::kLayer : piece.kind;
    Alive& alive = alive_[{pass.micro_batch, place.chunk, kind, piece.index}];
    for (const Event& event : events(piece, pass.kind)) {
      if (is_received(piece, place, event)) continue;
      if (event.makes) {
        alive.emplace_back(event.name, allocator_.allocate(event.bytes));
        continue;
      }
      const auto found = std::ranges::find(alive, event.name, &Alive::value_type::first);
      if (found == alive.end()) continue;
      allocator_.free(found->second);
      alive.erase(found);
    }
  }

  /// @param first there are none yet, to which they are added
  void make_gradients(const Piece& piece, bool first) {
    if (piece.kind == Piece::Kind::kLayerAgain) return;
    const RankParameters parameters = pieces_.trained(piece, stage_);
    // A table that the head shares has its gradient from there on, behind all others.
    const bool shares = config_.optimizer_in_backward && shares_table(model_, config_);
    if (shares && piece.kind == Piece::Kind::kHead) {
      const RankParameters table = pieces_.trained({Piece::Kind::kEmbedding}, stage_);
      shared_ = allocator_.allocate(
          matrix_bytes(table, config_.software->gradient_bytes(config_.precision)));
    }
    if (shares && piece.kind == Piece::Kind::kEmbedding) {
      allocator_.release(shared_);
      return;
    }
    if (parameters.total() == 0) return;
    const GradientMemory memory = gradient_memory(parameters, config_);
    if (memory.whole.base() > 0) {
      Handles whole =
          allocator_.allocate(matrix_bytes(parameters, training_bytes(config_.precision)));
      if (config_.software->reduction_copies.value == Fusion::kApart &&
          config_.software->bucket_buffers.value == 0) {
        const double element = config_.software->gradient_bytes(config_.precision);
        const Handle buffer = allocator_.allocate(whole_bytes(real(parameters.total()) * element));
        allocator_.release(whole);
        whole.push_back(buffer);
      }
      allocator_.release(whole);
    }
    if (!first) return;
    if (memory.whole.base() > 0) {
      gradients_.push_back(
          {{allocator_.allocate(whole_bytes(memory.kept.base()), kReduceStream)}, 0, 0});
      return;
    }
    const double element = config_.software->gradient_bytes(config_.precision);
    const bool shared = config_.parallel.zero >= 2;
    gradients_.push_back(
        {allocator_.allocate(matrix_bytes(parameters, element)),
         shared ? whole_bytes(memory.kept.base()) : 0,
         shared ? whole_bytes(shard_of(parameters, config_).total() * element) : 0});
  }

  /// Gradients that were added up whole are reduced to shards; the optimizer frees all of the first
  /// `count` units.
  void end_gradients(std::size_t count) {
    Handles shards;
    const auto last = gradients_.begin() + static_cast<std::ptrdiff_t>(count);
    for (auto at = gradients_.begin(); at != last; ++at) {
      Gradients& unit = *at;
      const Handle buffer = allocator_.allocate(unit.whole);
      allocator_.release(unit.tensors);
      if (unit.shard > 0) shards.push_back(allocator_.allocate(unit.shard, kReduceStream));
      allocator_.free(buffer);
    }
    allocator_.release(shards);
    gradients_.erase(gradients_.begin(), last);
  }

  /// What passes that were left out would have freed.
  void end_passes() {
    for (auto& [place, tensors] : alive_)
      for (const auto& [name, handle] : tensors) allocator_.free(handle);
    alive_.clear();
    for (auto& [pass, handles] : sent_) allocator_.release(handles);
    gathered_.end_step();
  }

  const std::vector<Event>& events(const Piece& piece, Pass::Kind pass) {
    const std::int64_t like = piece.is_layer() ? first_like(piece) : piece.index;
    const auto [entry, added] = events_.try_emplace({piece.kind, like, pass});
    if (!added) return entry->second;
    const RankWork work = piece.is_layer() ? pieces_.work(piece, work_) : work_;
    const StepList steps = pieces_.steps(piece, pass, work);
    for (const Step& step : steps.steps()) {
      for (const TensorId id : step.makes)
        entry->second.push_back(event(steps.tensors()[id], true));
      for (const TensorId id : step.frees)
        entry->second.push_back(event(steps.tensors()[id], false));
    }
    return entry->second;
  }

  Event event(const Tensor& tensor, bool makes) {
    const auto [entry, added] = names_.try_emplace(tensor.name, names_.size());
    return {makes, entry->second, whole_bytes(tensor.bytes.base())};
  }

  /// The first layer that does the same.
  std::int64_t first_like(const Piece& piece) {
    const std::pair does(pieces_.layer(piece), pieces_.work(piece, work_).passes);
    for (const auto& [index, known] : likes_)
      if (known == does) return index;
    likes_.emplace_back(piece.index, does);
    return piece.index;
  }

  const LlmConfig& model_;
  const TrainingConfig& config_;
  int stage_;
  RankWork work_;
  Pieces pieces_;
  CachingAllocator allocator_;
  GatheredWeights gathered_;
  bool makes_gradients_;          ///< the first backward pass of a step makes gradients
  std::set<int> with_gradients_;  ///< chunks that have had it
  std::vector<Pass> passes_;
  std::map<Place, Alive> alive_;
  std::map<std::pair<std::int64_t, int>, Handles>
      sent_;  ///< sent activations, by micro-batch and chunk
  std::map<std::tuple<Piece::Kind, std::int64_t, Pass::Kind>, std::vector<Event>> events_;
  std::map<std::string, std::size_t> names_;
  std::vector<std::pair<std::int64_t, std::pair<LayerConfig, TrainingPasses>>> likes_;
  std::vector<Gradients> gradients_;
  Handles shared_;  ///< gradient of a table that embedding and head share
};

}  // namespace

Bytes reserved_memory(const LlmConfig& model, const TrainingConfig& config, int stage,
                      const StageStates& states) {
  return Bytes(real(StepReplay(model, config, stage).reserved(states)));
}

}  // namespace orrery
