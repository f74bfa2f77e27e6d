// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/naive_replay.h"

#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "sim/graph/frozen_block.h"

namespace orrery::bench {
namespace {

class StreamProcess;

struct Rendezvous {
  std::vector<StreamProcess*> posted;
};

struct Shared {
  const Program& program;
  const Costs& costs;
  std::vector<FrozenBlock> blocks;
  std::vector<Rendezvous> rendezvous;
  std::vector<std::unique_ptr<StreamProcess>> processes;  ///< processes by role, then stream
};

class StreamProcess : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(StreamProcess);
  StreamProcess(const sc_core::sc_module_name& name, Shared& shared, std::size_t index)
      : sc_module(name),
        shared_(shared),
        stream_(index % shared.program.streams.size()),
        first_(index - stream_),
        calls_(shared.program.roles[index / shared.program.streams.size()].calls) {
    SC_METHOD(work);
    sensitive << wake_;
  }

 private:
  bool at_end() const { return call_ == calls_.size(); }
  const FrozenBlock& block() const { return shared_.blocks[calls_[call_]]; }

  void work() {
    if (running_) {
      running_ = false;
      ++offset_;
      skip_finished_blocks();
      for (std::size_t s = 0; s < shared_.program.streams.size(); ++s) {
        StreamProcess& other = *shared_.processes[first_ + s];
        if (other.waiting_ && other.ready()) {
          other.waiting_ = false;
          other.wake_.notify();
        }
      }
    } else {
      skip_finished_blocks();
    }
    if (at_end()) {
      return;
    }
    if (ready()) {
      begin();
    } else {
      waiting_ = true;
    }
  }

  void skip_finished_blocks() {
    while (!at_end() && offset_ == block().size(stream_)) {
      ++call_;
      offset_ = 0;
    }
  }

  bool ready() const {
    const FrozenOperator& op = head();
    for (std::uint32_t w = op.first_wait; w < op.first_wait + op.waits; ++w) {
      const StreamWait& wait = block().waits[w];
      const StreamProcess& other = *shared_.processes[first_ + wait.stream];
      if (other.call_ < call_ || (other.call_ == call_ && other.offset_ < wait.count)) {
        return false;
      }
    }
    return true;
  }

  const FrozenOperator& head() const {
    return block().operators[block().stream_begin[stream_] + offset_];
  }

  void begin() {
    const FrozenOperator& op = head();
    running_ = true;
    if (op.kind == OperatorKind::kCompute) {
      wake_.notify(sc_core::sc_time::from_value(shared_.costs.kernels[op.work].duration));
      return;
    }
    std::vector<StreamProcess*>& posted = shared_.rendezvous[op.work].posted;
    posted.push_back(this);
    if (static_cast<int>(posted.size()) == shared_.program.transfers[op.work].participants) {
      for (StreamProcess* process : posted) {
        process->wake_.notify(
            sc_core::sc_time::from_value(shared_.costs.transfers[op.work].latency));
      }
      posted.clear();
    }
  }

  Shared& shared_;
  std::size_t stream_;
  std::size_t first_;
  const std::vector<BlockId>& calls_;
  sc_core::sc_event wake_;
  std::size_t call_ = 0;
  std::uint32_t offset_ = 0;
  bool running_ = false;
  bool waiting_ = false;
};

}  // namespace

NaiveResult naive_replay(const Program& program, const Costs& costs) {
  Shared shared{program, costs, {}, std::vector<Rendezvous>(program.transfers.size()), {}};
  for (const OperatorGraph& graph : program.blocks) {
    shared.blocks.push_back(freeze(graph, program.streams.size()));
  }
  for (std::size_t i = 0; i < program.roles.size() * program.streams.size(); ++i) {
    const std::string name = "s" + std::to_string(i);
    shared.processes.push_back(std::make_unique<StreamProcess>(name.c_str(), shared, i));
  }
  const double begin = cpu_seconds();
  sc_core::sc_start();
  const NaiveResult result{sc_core::sc_time_stamp().value(), cpu_seconds() - begin};
  for (auto& process : shared.processes) {
    process.release();  // the process ends here; taking the modules apart is not measured
  }
  return result;
}

}  // namespace orrery::bench
