// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "models/collectives/plans/execution_plan.h"
#include "sim/config/diagnostics.h"
#include "sim/config/node.h"

namespace orrery {

inline constexpr int kMostIndex = 1 << 20;

/// Values of an execution plan; complains at the place of one that is wrong.
class PlanText {
 public:
  explicit PlanText(config::Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  [[noreturn]] void fail(const config::Node& node, std::string message,
                         std::vector<std::string> notes = {}) const;
  const config::Node& at(const config::Node& map, const char* key) const;
  const std::vector<config::Node>& list(const config::Node& node) const;
  const std::vector<config::Node>& list_at(const config::Node& map, const char* key) const {
    return list(at(map, key));
  }
  /// The element at the index that a node says.
  /// @param before, after of the message that says how many there are
  template <class T>
  const T& element(const config::Node& node, const std::vector<T>& all, const std::string& before,
                   const std::string& after) const {
    const auto index = static_cast<std::size_t>(integer(node, 0, kMostIndex));
    if (index >= all.size()) fail(node, before + std::to_string(all.size()) + after);
    return all[index];
  }
  /// An empty list where the key is missing.
  const std::vector<config::Node>& maybe_list(const config::Node& map, const char* key) const;
  int integer(const config::Node& node, int low, int high) const;
  int integer_at(const config::Node& map, const char* key, int low, int high) const {
    return integer(at(map, key), low, high);
  }
  const std::string& word(const config::Node& node) const;
  const std::string& word_at(const config::Node& map, const char* key) const {
    return word(at(map, key));
  }

 private:
  config::Diagnostics& diagnostics_;
};

/// Effect of an operation on its sources and targets.
enum class PlanShape : std::uint8_t {
  kNothing,
  kCopies,  ///< each source to its target
  kSum,     ///< all sources to the first target, and from there to the others
  kSignal,
  kWait,
  kBarrier,
  kAcquire,
  kRelease,
  kPipeline,  ///< operations inside it, piece after piece
  kSwitch     ///< switches reduce or multicast
};
struct PlanOperationRule {
  PlanShape shape = PlanShape::kNothing;
  bool packets = false;  ///< writes packets: all targets of copies, those of sums behind the first
  bool awaited = false;  ///< reads packets: sources of copies, those of sums behind the first
  bool signals = false;  ///< signals behind its data
  bool single = false;   ///< a sum that stays: it has one target
};

/// Moves of an operation with those sources and targets.
std::vector<PlanMove> moves_of(const PlanOperationRule& rule, const std::vector<PlanRange>& sources,
                               const std::vector<PlanRange>& targets, const PlanText& text,
                               const config::Node& operation);

/// Reads the ranks, channels and thread blocks of a plan, which both forms write alike.
class PlanReader {
 public:
  PlanReader(ExecutionPlan& plan, const PlanText& text) : plan_(plan), text_(text) {}
  virtual ~PlanReader() = default;

  void read(const config::Node& node);

 protected:
  /// Names of keys that both forms have.
  struct Keys {
    const char *input, *output, *scratch, *type, *peers;
  };
  virtual const Keys& keys() const = 0;
  using Rules = std::map<std::string_view, PlanOperationRule>;
  /// Rules of the operations that only this form has, by name.
  virtual const Rules& rules() const = 0;
  /// Reads what belongs to a thread block, before its operations.
  virtual void begin_block(const config::Node& gpu, const config::Node& block) = 0;
  /// The operation's sources, targets and channels.
  virtual void fill(const config::Node& operation, const PlanOperationRule& rule, PlanOp& op) = 0;
  /// Key of a channel among those of its type: its buffers in the older form, empty in the present
  /// one.
  virtual std::string channel_key(const config::Node& channel) const = 0;

  /// Channels of one type that a rank has, in order.
  struct Channel {
    int peer = 0;
    int pair = 0;     ///< how many channels to that peer are in front of it
    std::string key;  ///< result of channel_key()
  };
  const std::vector<Channel>& channels(int rank, const std::string& type) const;
  /// The signals that a channel sends, or those that its other end does.
  int sent(const std::string& type, const Channel& channel) const {
    return signal(type, rank_, channel.peer, channel.pair);
  }
  int awaited(const std::string& type, const Channel& channel) const {
    return signal(type, channel.peer, rank_, channel.pair);
  }

  /// A range of a buffer "i", "o" or "s" of a rank, cut as finely as thread blocks share them.
  PlanRange range(const config::Node& node, const std::string& buffer, int rank, int first,
                  int count) const;
  void note(const std::string& text);

  ExecutionPlan& plan_;
  const PlanText& text_;
  int rank_ = 0;      ///< rank that is being read
  int fineness_ = 1;  ///< parts that a chunk is cut into

 private:
  void read_head(const config::Node& node);
  void read_buffers(const config::Node& gpus);
  void read_channels(const config::Node& gpus);
  void read_semaphores(const config::Node& gpus);
  void find_fineness(const config::Node& gpus);
  void read_block(const config::Node& gpu, const config::Node& block);
  void read_operations(const std::vector<config::Node>& operations, int depth,
                       PlanThreadBlock& block);
  const PlanOperationRule& rule_of(const config::Node& name) const;
  void read_operation(const config::Node& operation, const PlanOperationRule& rule,
                      PlanThreadBlock& block);
  int signal(const std::string& type, int from, int to, int pair) const;

  std::vector<std::map<std::string, std::vector<Channel>>> channels_;  // by rank and type
  mutable std::map<std::tuple<std::string, int, int, int>, int> signals_;
  std::vector<int> semaphores_of_;  // by rank: the first of its semaphores
};

/// Readers of the two forms.
void read_plan(const config::Node& node, const PlanText& text, ExecutionPlan& plan);
void read_older_plan(const config::Node& node, const PlanText& text, ExecutionPlan& plan);

}  // namespace orrery
