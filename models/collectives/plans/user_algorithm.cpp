// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/plans/user_algorithm.h"

#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "models/collectives/plans/execution_plan.h"
#include "sim/config/load.h"
#include "sim/machine/transfer_names.h"

namespace orrery {

namespace config {

template <>
struct EnumNames<ChunkOp> {
  static constexpr std::pair<ChunkOp, const char*> values[] = {{ChunkOp::kCopy, "copy"},
                                                               {ChunkOp::kReduce, "reduce"}};
};

}  // namespace config

const config::Schema<UserMessage>& UserMessage::schema() {
  static const auto schema =
      config::Schema<UserMessage>("message", "chunks from one rank of the group to another")
          .required("from", &UserMessage::from, "rank of the group, from 0 on",
                    config::between(0, 1023))
          .required("to", &UserMessage::to, "rank of the group", config::between(0, 1023))
          .required("chunk", &UserMessage::chunk, "the first chunk of the buffer, from 0 on",
                    config::between(0, 65535))
          .optional("count", &UserMessage::count, "chunks from there on", config::between(1, 65536))
          .optional("op", &UserMessage::op, "what the receiver does: copy, or reduce (add)");
  return schema;
}

const config::Schema<UserAlgorithm>& UserAlgorithm::schema() {
  // The proof holds ranks^2 * chunks counters.
  constexpr double kMostCounters = 1 << 26;
  static const auto schema =
      config::Schema<UserAlgorithm>("algorithm", "a collective algorithm, message by message")
          .required("collective", &UserAlgorithm::collective, "what it carries out")
          .optional("remarks", &UserAlgorithm::remarks, "what readers should know")
          .required("ranks", &UserAlgorithm::ranks, "size of the groups that it serves",
                    config::between(2, 1024))
          .required("chunks", &UserAlgorithm::chunks, "equal parts that the buffer is cut into",
                    config::between(1, 65536))
          .required("steps", &UserAlgorithm::steps,
                    "lists of messages; what arrives in a step can be sent in the next")
          .check(
              "ranks * ranks * chunks is more than 2^26: too large to be proved right",
              [](const UserAlgorithm& a) {
                return static_cast<double>(a.ranks) * a.ranks * a.chunks <= kMostCounters;
              },
              "chunks");
  return schema;
}

namespace {

Schedule schedule_of(const UserAlgorithm& written) {
  Schedule schedule{.chunks = written.chunks};
  for (std::size_t step = 0; step < written.steps.size(); ++step) {
    for (const UserMessage& m : written.steps[step]) {
      schedule.messages.push_back({static_cast<int>(step), m.from, m.to, {m.chunk, m.count}, m.op});
    }
  }
  return schedule;
}

/// An algorithm for groups of one size, whose messages are given.
class GivenAlgorithm : public CollectiveAlgorithm {
 public:
  GivenAlgorithm(TransferKind kind, int ranks, Schedule schedule)
      : schedule_(std::move(schedule)), kind_(kind), ranks_(ranks) {}

  bool serves(const Collective& collective) const override {
    return collective.kind == kind_ && collective.size() == ranks_ && collective.pair_bytes.empty();
  }
  bool counts_links() const override { return true; }
  Schedule schedule(const Collective&) const override { return schedule_; }

 protected:
  Schedule schedule_;

 private:
  TransferKind kind_;
  int ranks_;
};

class WrittenAlgorithm final : public GivenAlgorithm {
 public:
  explicit WrittenAlgorithm(const UserAlgorithm& written)
      : GivenAlgorithm(written.collective, written.ranks, schedule_of(written)) {}

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const Bytes chunk = chunk_bytes(collective, schedule_.chunks);
    for (const Message& message : schedule_.messages) {
      sink.add(collective.rank(message.from), collective.rank(message.to),
               chunk * static_cast<double>(message.chunks.count));
    }
    return dependent_steps(collective, schedule_);
  }
};

class PlanAlgorithm final : public GivenAlgorithm {
 public:
  PlanAlgorithm(const ExecutionPlan& plan, PlanSchedule&& made)
      : GivenAlgorithm(plan.collective, plan.ranks, std::move(made.schedule)),
        least_(plan.least),
        most_(plan.most),
        notes_(plan.notes),
        flows_(std::move(made.flows)),
        points_(std::move(made.points)) {
    notes_.emplace_back(
        "signals, barriers and the number of thread blocks and threads: each step costs a kernel "
        "that reads or writes the memory of peers");
  }

  bool serves(const Collective& collective) const override {
    return GivenAlgorithm::serves(collective) && collective.bytes >= least_ &&
           collective.bytes <= most_;
  }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const Bytes chunk = chunk_bytes(collective, schedule_.chunks);
    for (const PlanSchedule::Flow& flow : flows_)
      sink.add(collective.rank(flow.from), collective.rank(flow.to), chunk * flow.chunks);
    return longest_chain(collective, points_);
  }

  bool writes_peers() const override { return true; }
  std::vector<std::string> left_out() const override { return notes_; }

 private:
  Bytes least_, most_;
  std::vector<std::string> notes_;
  std::vector<PlanSchedule::Flow> flows_;
  std::vector<PlanSchedule::Point> points_;
};

/// Where the message of that number, counted over all steps, is written.
const config::Node& message_node(const config::Node& node, std::size_t number) {
  const config::Node& steps = *node.find("steps");
  for (const config::Node& step : steps.items()) {
    if (number < step.items().size()) return step.items()[number];
    number -= step.items().size();
  }
  return steps;
}

/// Runs a schedule among so many ranks of one system.
std::optional<ScheduleFault> fault_of(TransferKind kind, int ranks, const Schedule& schedule) {
  const RankLayout layout{.ranks_per_node = ranks, .ranks_per_system = ranks};
  std::vector<int> group(static_cast<std::size_t>(ranks));
  std::iota(group.begin(), group.end(), 0);
  return verify_semantics({kind, Bytes(0), group, layout}, schedule);
}

std::vector<std::string> is_no(TransferKind kind) {
  return {std::string("this is no ") + to_string(kind)};
}

std::shared_ptr<const CollectiveAlgorithm> load_plan(const config::Node& node,
                                                     config::Diagnostics& diagnostics) {
  const ExecutionPlan plan = read_execution_plan(node, diagnostics);
  PlanSchedule made = schedule_of(plan, diagnostics);
  if (const auto fault = fault_of(plan.collective, plan.ranks, made.schedule)) {
    const config::Node& collective = *node.find("collective");
    diagnostics.error(fault->message ? made.places[*fault->message] : collective.where(),
                      fault->message ? made.lengths[*fault->message] : collective.length(),
                      fault->text, {}, is_no(plan.collective));
  }
  diagnostics.throw_if_errors();
  return std::make_shared<PlanAlgorithm>(plan, std::move(made));
}

std::shared_ptr<const CollectiveAlgorithm> load_algorithm(const std::string& path) {
  config::Diagnostics diagnostics;
  const config::Library& library = config::default_library();
  const config::Node node = config::load_file(path, diagnostics, library);
  diagnostics.throw_if_errors();
  if (is_execution_plan(node)) return load_plan(node, diagnostics);
  const auto written = config::read<UserAlgorithm>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  const Schedule schedule = schedule_of(written);
  if (const auto fault = fault_of(written.collective, written.ranks, schedule)) {
    const config::Node& culprit =
        fault->message ? message_node(node, *fault->message) : *node.find("collective");
    diagnostics.error(culprit.where(), culprit.length(), fault->text, {},
                      is_no(written.collective));
  }
  diagnostics.throw_if_errors();
  return std::make_shared<WrittenAlgorithm>(written);
}

}  // namespace

std::shared_ptr<const CollectiveAlgorithm> find_algorithm(const std::string& name_or_path) {
  if (!config::Library::is_path(name_or_path))
    return AlgorithmRegistry::at("collective", name_or_path);
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const CollectiveAlgorithm>> loaded;
  const std::lock_guard<std::mutex> lock(mutex);
  auto& algorithm = loaded[name_or_path];
  if (!algorithm) algorithm = load_algorithm(name_or_path);
  return algorithm;
}

}  // namespace orrery
