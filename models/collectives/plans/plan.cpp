// SPDX-License-Identifier: Apache-2.0
// Plans of MSCCL++'s present language (microsoft/mscclpp v0.9.0,
// src/core/executor/execution_plan.cc).
#include "models/collectives/plans/plan_reader.h"

namespace orrery {
namespace {

class PresentReader final : public PlanReader {
 public:
  using PlanReader::PlanReader;

 protected:
  const Keys& keys() const override {
    static const Keys keys = {"input_chunks", "output_chunks", "scratch_chunks", "channel_type",
                              "connected_to"};
    return keys;
  }

  const Rules& rules() const override {
    using S = PlanShape;
    static const Rules all = {{"rlxsignal", {S::kSignal}},
                              {"rlxwait", {S::kWait}},
                              {"sem_acquire", {S::kAcquire}},
                              {"sem_release", {S::kRelease}},
                              {"pipeline", {S::kPipeline}},
                              {"rppkt", {S::kCopies, true, true}},
                              {"cpkt", {S::kCopies, true}},
                              {"upkt", {S::kCopies, false, true}},
                              {"res", {S::kSum}},
                              {"rre", {S::kSum, false, false, false, true}},
                              {"rres", {S::kSum}},
                              {"repkt", {S::kSum, false, true, false, true}},
                              {"respkt", {S::kSum, true, true}},
                              {"recpkt", {S::kSum, true, true}},
                              {"recspkt", {S::kSum, true, true}},
                              {"gstore", {S::kSwitch}},
                              {"gstorepkt", {S::kSwitch}}};
    return all;
  }

  std::string channel_key(const config::Node&) const override { return {}; }

  void begin_block(const config::Node& gpu, const config::Node& block) override {
    own_.clear();
    remote_.clear();
    for (const config::Node& channel : text_.maybe_list(block, "channels")) {
      const std::string& type = text_.word_at(channel, "channel_type");
      if (type == "switch") continue;
      const auto& all = channels(rank_, type);
      for (const config::Node& id : text_.list_at(channel, "channel_ids")) {
        own_[type].push_back(text_.element(id, all, "the rank has ", " channels of this type"));
      }
    }
    const std::vector<config::Node>& buffers = text_.maybe_list(gpu, "remote_buffers");
    for (const config::Node& group : text_.maybe_list(block, "remote_buffer_refs")) {
      const std::string& type = text_.word_at(group, "access_channel_type");
      for (const config::Node& id : text_.list_at(group, "remote_buffer_ids")) {
        const config::Node& buffer = text_.element(id, buffers, "the rank has ", " remote buffers");
        remote_[type].push_back(
            {text_.integer_at(buffer, "rank", 0, plan_.ranks - 1), text_.word_at(buffer, "type")});
      }
    }
  }

  void fill(const config::Node& operation, const PlanOperationRule& rule, PlanOp& op) override {
    const config::Node* written = operation.find("channel_type");
    const std::string type = written == nullptr ? "none" : text_.word(*written);
    if (type == "port")
      note("port channels: their start costs no more than that of memory channels");
    if (rule.shape == PlanShape::kSignal || rule.signals) add_signals(operation, type, op);
    if (rule.shape == PlanShape::kWait) {
      for (const config::Node& id : text_.list_at(operation, "channel_ids"))
        op.waits.push_back(awaited(type, channel(id, type)));
    }
    if (rule.shape != PlanShape::kCopies && rule.shape != PlanShape::kSum) return;
    op.moves = moves_of(rule, ranges(operation, "src_buff", type),
                        ranges(operation, "dst_buff", type), text_, operation);
  }

 private:
  /// Memory of another rank that the block reaches.
  struct Remote {
    int rank = 0;
    std::string buffer;
  };

  void add_signals(const config::Node& operation, const std::string& type, PlanOp& op) {
    for (const config::Node& id : text_.list_at(operation, "channel_ids"))
      op.signals.push_back(sent(type, channel(id, type)));
  }

  const Channel& channel(const config::Node& id, const std::string& type) {
    return text_.element(id, own_[type], "the thread block has ",
                         " channels of type '" + type + "'");
  }

  std::vector<PlanRange> ranges(const config::Node& operation, const char* key,
                                const std::string& type) {
    std::vector<PlanRange> all;
    for (const config::Node& part : text_.list_at(operation, key)) {
      const int first = text_.integer_at(part, "index", 0, kMostIndex);
      const int count = text_.integer_at(part, "size", 1, kMostIndex);
      if (part.find("switch_channel_id") != nullptr)
        text_.fail(part, "switches reduce or multicast this, which plans cannot here");
      if (const config::Node* id = part.find("buffer_id")) {
        const Remote& reached =
            text_.element(*id, remote_[type], "the thread block reaches ",
                          " buffers of others by channels of type '" + type + "'");
        all.push_back(range(part, reached.buffer, reached.rank, first, count));
      } else {
        all.push_back(range(part, text_.word_at(part, "type"), rank_, first, count));
      }
      if (const config::Node* group = operation.find("tbg_info")) cut(*group, all.back());
    }
    return all;
  }

  /// The part of one thread block of a group that shares the work.
  void cut(const config::Node& group, PlanRange& range) const {
    const int size = text_.integer_at(group, "tbg_size", 1, kMostIndex);
    const int id = text_.integer_at(group, "tb_id", 0, size - 1);
    range.count /= size;
    range.first += id * range.count;
  }

  std::map<std::string, std::vector<Channel>> own_;    // channels of the block, by type
  std::map<std::string, std::vector<Remote>> remote_;  // buffers of others, by type
};

}  // namespace

void read_plan(const config::Node& node, const PlanText& text, ExecutionPlan& plan) {
  PresentReader(plan, text).read(node);
}

}  // namespace orrery
