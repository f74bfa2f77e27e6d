// SPDX-License-Identifier: Apache-2.0
// Plans of the language before MSCCL++'s present one (microsoft/mscclpp v0.6.0,
// src/executor/execution_plan.cc): channels join two buffers, and an operation has one number of
// chunks, `cnt`, for all its sources and targets.
#include "models/collectives/plans/plan_reader.h"

namespace orrery {
namespace {

class OlderReader final : public PlanReader {
 public:
  using PlanReader::PlanReader;

 protected:
  const Keys& keys() const override {
    static const Keys keys = {"inputChunks", "outputChunks", "scratchChunks", "type",
                              "connectedTo"};
    return keys;
  }

  const Rules& rules() const override {
    using S = PlanShape;
    static const Rules all = {{"tpkt", {S::kCopies, true}},
                              {"cpkt", {S::kCopies, false, true}},
                              {"rs", {S::kSum}},
                              {"rrc", {S::kSum, false, false, false, true}},
                              {"rrcs", {S::kSum}},
                              {"rpkt", {S::kSum, false, true, false, true}},
                              {"rspkt", {S::kSum, true, true}}};
    return all;
  }

  std::string channel_key(const config::Node& channel) const override {
    return text_.word_at(channel, "srcbuff") + text_.word_at(channel, "dstbuff");
  }

  void begin_block(const config::Node&, const config::Node& block) override {
    own_.clear();
    for (const config::Node& channel : text_.maybe_list(block, "channels")) {
      const std::string& type = text_.word_at(channel, "ctype");
      if (type == "nvls") continue;
      const std::string key = buffers_of(channel);
      std::vector<const Channel*> all;
      for (const Channel& one : channels(rank_, type))
        if (one.key == key) all.push_back(&one);
      for (const config::Node& id : text_.list_at(channel, "cids")) {
        own_[type + key].push_back(*text_.element(id, all, "the rank has ",
                                                  " channels of this type between these buffers"));
      }
    }
  }

  void fill(const config::Node& operation, const PlanOperationRule& rule, PlanOp& op) override {
    const config::Node* written = operation.find("ctype");
    const std::string type = written == nullptr ? "none" : text_.word(*written);
    if (type == "proxy") note("proxy channels: their start costs no more than that of sm channels");
    if (rule.shape == PlanShape::kSignal || rule.signals) {
      each_end(operation, "o", type, [&](const Channel& channel, const config::Node&) {
        op.signals.push_back(sent(type, channel));
      });
    }
    if (rule.shape == PlanShape::kWait) {
      each_end(operation, "i", type, [&](const Channel& channel, const config::Node&) {
        op.waits.push_back(awaited(type, channel));
      });
    }
    if (rule.shape != PlanShape::kCopies && rule.shape != PlanShape::kSum) return;
    op.moves =
        moves_of(rule, ranges(operation, type, {"srcbuff", "srcoff", "srcs", "i"}),
                 ranges(operation, type, {"dstbuff", "dstoff", "dsts", "o"}), text_, operation);
  }

 private:
  /// Keys of one side of an operation: a buffer of the rank itself, several, and those of others.
  struct Side {
    const char *buffer, *offset, *list, *remote;
  };

  std::string buffers_of(const config::Node& node) const {
    return text_.word_at(node, "src") + text_.word_at(node, "dst");
  }

  /// Calls `use` for the channels of `i_cids` or `o_cids`.
  template <class Use>
  void each_end(const config::Node& operation, const std::string& side, const std::string& type,
                const Use& use) {
    const config::Node* ends = operation.find(side + "_cids");
    if (ends == nullptr) return;
    const std::vector<Channel>& all =
        own_[type + buffers_of(text_.at(operation, (side + "_buff").c_str()))];
    for (const config::Node& end : text_.list(*ends)) {
      const auto index = static_cast<std::size_t>(text_.integer_at(end, "id", 0, kMostIndex));
      if (index >= all.size())
        text_.fail(end, "the thread block has " + std::to_string(all.size()) +
                            " channels of type '" + type + "' between these buffers");
      use(all[index], end);
    }
  }

  std::vector<PlanRange> ranges(const config::Node& operation, const std::string& type,
                                const Side& side) {
    std::vector<PlanRange> all;
    const int count = text_.integer_at(operation, "cnt", 1, kMostIndex);
    const auto offset = [&](const config::Node& node, const char* key) {
      return text_.integer_at(node, key, 0, kMostIndex);
    };
    if (const config::Node* buffer = operation.find(side.buffer))
      all.push_back(
          range(*buffer, text_.word(*buffer), rank_, offset(operation, side.offset), count));
    for (const config::Node& part : text_.maybe_list(operation, side.list))
      all.push_back(range(part, text_.word_at(part, "buff"), rank_, offset(part, "off"), count));
    each_end(operation, side.remote, type, [&](const Channel& channel, const config::Node& end) {
      const config::Node& buffers =
          text_.at(operation, (std::string(side.remote) + "_buff").c_str());
      all.push_back(
          range(end, text_.word_at(buffers, "dst"), channel.peer, offset(end, "off"), count));
    });
    return all;
  }

  std::map<std::string, std::vector<Channel>> own_;  // channels of the block, by type and buffers
};

}  // namespace

void read_older_plan(const config::Node& node, const PlanText& text, ExecutionPlan& plan) {
  OlderReader(plan, text).read(node);
}

}  // namespace orrery
