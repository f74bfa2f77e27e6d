// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/program.h"
#include "workloads/ops/step_list.h"
#include "workloads/plan/mesh.h"

namespace orrery {

/// Streams of every role. Each kind of communication has its own, as NCCL communicators do;
/// messages have one per direction, so that a receive that waits never holds back a send.
enum Stream : StreamId {
  kComputeStream,
  kTensorStream,
  kExpertStream,
  kDataStream,
  kSendForwardStream,
  kReceiveForwardStream,
  kSendBackwardStream,
  kReceiveBackwardStream,
  kExpertTensorStream,
  kContextStream,
  kDecodeContextStream,
  kHostStream,
  // Of messages to lower ranks, where those of one direction go both ways: else a message of one
  // way would wait for a receive of the other, and pipelines that turn would stand still.
  kSendForwardDownStream,
  kReceiveForwardDownStream,
  kSendBackwardDownStream,
  kReceiveBackwardDownStream,
  // Of hosts that update weights; steps without have no such streams.
  kHostUpdateStream,
  kHostReturnStream,
};

/// Gathers kernels, transfers and blocks of a program whose roles are pipeline stages, each once.
class ProgramBuilder {
 public:
  /// @param both_ways whether messages of one direction go to higher and to lower ranks
  /// @param host_updates whether hosts update weights
  explicit ProgramBuilder(const ParallelConfig& parallel, bool both_ways = false,
                          bool host_updates = false);

  const Mesh& mesh() const { return mesh_; }
  KernelId kernel(const Kernel& kernel);
  /// A collective of a stage over its groups along the axis of its scope; a send_receive goes from
  /// each rank of a group to the next.
  TransferId collective(const LayerCollective& collective, int stage);
  /// Activations (`purpose` "pp forward") or gradients ("pp backward") between two stages.
  TransferId message(const std::string& direction, int from, int to, Bytes bytes);
  /// Any other. Transfers of one name that differ in anything else are two.
  TransferId transfer(Transfer transfer);
  /// The tensor of that name; the first that has it says how large it is.
  TensorId tensor(Tensor tensor);
  BlockId block(std::string name, OperatorGraph graph, std::vector<TensorEvent> tensors = {});
  /// Groups of ranks that were listed so far for collectives of layers and messages: the work that
  /// grows with the machine.
  std::size_t groups_listed() const { return groups_listed_; }

  /// The program, once; `calls[stage]` are the blocks that each stage runs.
  Program finish(std::vector<std::vector<BlockId>> calls);

 private:
  template <class Groups>
  TransferId once(Transfer transfer, const Groups& groups);

  Mesh mesh_;
  Program program_;
  std::size_t groups_listed_ = 0;
  std::map<std::string, std::vector<KernelId>, std::less<>> kernels_;      ///< ids by name
  std::map<std::string, std::vector<TransferId>, std::less<>> transfers_;  ///< ids by name
  std::map<std::string, TensorId, std::less<>> tensors_;                   ///< ids by name
  /// Those whose groups follow from their name, by it.
  std::map<std::string, std::vector<TransferId>, std::less<>> named_groups_;
};

/// Writes one block: a chain of steps, each waiting for the one before unless its list says
/// otherwise.
class BlockBuilder {
 public:
  BlockBuilder(ProgramBuilder& program, int stage) : program_(program), stage_(stage) {}

  /// Steps behind an operator, and the one that gives their value once they are there.
  struct Lane {
    StepList steps;
    std::optional<OperatorId> cursor;
  };

  void append(std::string_view prefix, const StepList& steps);
  /// Steps beside what follows: they wait for what is there, and nothing waits for them.
  /// @return the last of them
  OperatorId append_beside(std::string_view prefix, const StepList& steps);
  /// What is appended next waits for it.
  void need(OperatorId op) { ahead_.push_back(op); }
  /// Steps of both lanes in turn, so that kernels of the one are issued behind the collective of
  /// the other: each up to its next exchange of tokens, or where there is none to its next
  /// collective, and gradients of weights right behind it.
  void append_side_by_side(std::array<Lane, 2>& lanes);
  /// What follows waits for that operator alone, or for nothing.
  void move_to(std::optional<OperatorId> cursor) { cursor_ = cursor; }
  std::optional<OperatorId> cursor() const { return cursor_; }
  void kernel(const Kernel& kernel, Category category);
  void collective(Transfer transfer, Stream stream);
  /// Waits for all that the block has; nothing of it waits for the collective, unless it is needed.
  OperatorId beside(Transfer transfer, Stream stream);
  /// Waits for nothing of the block.
  OperatorId ahead(Transfer transfer, Stream stream);
  /// What follows waits for the message.
  void receive(TransferId message, Stream stream);
  /// Waits for what is there; nothing waits for it.
  OperatorId send(TransferId message, Stream stream);

  /// Adds the block to the program.
  BlockId finish(std::string name);

 private:
  OperatorId add(const Operator& op);
  /// A step without what it waits for.
  OperatorId add_step(std::string_view prefix, const StepList& steps, const Step& step);
  Operator operator_of(Transfer collective, Stream stream);
  /// What a step of `steps` does to its tensors, as those of a piece of that name.
  void add_tensors(std::string_view prefix, const StepList& steps, const Step& step, OperatorId op);

  ProgramBuilder& program_;
  int stage_;
  OperatorGraph graph_;
  std::vector<TensorEvent> tensors_;
  std::optional<OperatorId> cursor_;
  std::vector<OperatorId> ahead_;  ///< waited for by what is appended next
};

}  // namespace orrery
