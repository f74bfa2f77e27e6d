// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/plans/plan_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include "sim/units/comma_separated.h"

namespace orrery {
namespace {

constexpr int kMostPlanRanks = 1024;
constexpr int kMostPlanChunks = 1 << 20;
constexpr int kMostPlanIds = 1 << 20;
/// Parts that thread blocks may cut a chunk into.
constexpr int kFinest = 256;

const std::map<std::string, TransferKind>& plan_collectives() {
  static const std::map<std::string, TransferKind> known = {
      {"allreduce", TransferKind::kAllReduce},
      {"allgather", TransferKind::kAllGather},
      {"reducescatter", TransferKind::kReduceScatter},
      {"alltoall", TransferKind::kAllToAll},
      {"broadcast", TransferKind::kBroadcast}};
  return known;
}

double size_at(const config::Node& node, const char* key, double missing, const PlanText& text) {
  const config::Node* value = node.find(key);
  if (value == nullptr) return missing;
  double size = 0;
  const std::string& digits = text.word(*value);
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (fault != std::errc() || end != digits.data() + digits.size() || !(size >= 0) || size > 2e19)
    text.fail(*value, "expected a size in bytes");
  return size;
}

bool flag_at(const config::Node& node, const char* key, const PlanText& text) {
  const config::Node* value = node.find(key);
  if (value == nullptr) return false;
  const std::string& word = text.word(*value);
  if (word != "true" && word != "false") text.fail(*value, "expected true or false");
  return word == "true";
}

}  // namespace

std::vector<PlanMove> moves_of(const PlanOperationRule& rule, const std::vector<PlanRange>& sources,
                               const std::vector<PlanRange>& targets, const PlanText& text,
                               const config::Node& operation) {
  if (sources.empty() || targets.empty())
    text.fail(operation, "an operation that moves data needs sources and targets");
  std::vector<PlanMove> moves;
  const auto add = [&](const PlanRange& from, const PlanRange& to, bool awaited) -> PlanMove& {
    if (from.count != to.count)
      text.fail(operation, "source and target have different numbers of chunks");
    return moves.emplace_back(PlanMove{.from = from, .to = to, .awaited = awaited});
  };
  if (rule.shape == PlanShape::kCopies) {
    if (sources.size() != 1 && sources.size() != targets.size())
      text.fail(operation,
                fmt::format("there are {} sources and {} targets", sources.size(), targets.size()));
    for (std::size_t i = 0; i < targets.size(); ++i)
      add(sources[sources.size() == 1 ? 0 : i], targets[i], rule.awaited).packets = rule.packets;
    return moves;
  }
  if (rule.single && targets.size() > 1) text.fail(operation, "this operation has one target");
  const PlanRange& sum = targets.front();
  const auto there = std::find_if(sources.begin(), sources.end(), [&](const PlanRange& source) {
    return source.rank == sum.rank && source.first == sum.first;
  });
  const auto base = static_cast<std::size_t>(there == sources.end() ? 0 : there - sources.begin());
  if (there == sources.end()) add(sources[0], sum, false);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (i == base) continue;
    PlanMove& move = add(sources[i], sum, rule.awaited && i > 0);
    move.add = true;
    move.turn = 1;
  }
  for (std::size_t i = 1; i < targets.size(); ++i) {
    PlanMove& move = add(sum, targets[i], false);
    move.turn = 2;
    move.packets = rule.packets;
  }
  return moves;
}

void PlanReader::read(const config::Node& node) {
  read_head(node);
  const config::Node& gpus = text_.at(node, "gpus");
  plan_.ranks = static_cast<int>(text_.list(gpus).size());
  if (plan_.ranks < 2 || plan_.ranks > kMostPlanRanks)
    text_.fail(gpus, fmt::format("expected 2 to {} GPUs, got {}", kMostPlanRanks, plan_.ranks));
  plan_.where = gpus.where();
  find_fineness(gpus);
  read_buffers(gpus);
  read_channels(gpus);
  read_semaphores(gpus);
  for (const config::Node& gpu : gpus.items()) {
    rank_ = static_cast<int>(&gpu - gpus.items().data());
    for (const config::Node& block : text_.list_at(gpu, "threadblocks")) read_block(gpu, block);
  }
  plan_.signals = static_cast<int>(signals_.size());
}

void PlanReader::read_head(const config::Node& node) {
  const config::Node& collective = text_.at(node, "collective");
  const auto known = plan_collectives().find(text_.word(collective));
  if (known == plan_collectives().end()) {
    text_.fail(collective,
               fmt::format("no plan of '{}' can be carried out here", text_.word(collective)),
               {"there are: " +
                comma_joined(
                    plan_collectives(), [](const auto& entry) -> auto& { return entry.first; })});
  }
  plan_.collective = known->second;
  plan_.in_place = flag_at(node, "inplace", text_);
  plan_.least = Bytes(size_at(node, "min_message_size", 0, text_));
  plan_.most = Bytes(size_at(node, "max_message_size", 2e19, text_));
  if (flag_at(node, "reuse_resources", text_))
    note("reuse_resources: scratch memory is taken to be as large as its chunks");
}

/// The largest number that all groups of thread blocks divide.
void PlanReader::find_fineness(const config::Node& gpus) {
  const auto look = [&](const auto& self, const std::vector<config::Node>& operations,
                        int depth) -> void {
    for (const config::Node& operation : operations) {
      if (const config::Node* group = operation.find("tbg_info")) {
        fineness_ = std::lcm(fineness_, text_.integer_at(*group, "tbg_size", 1, kFinest));
        if (fineness_ > kFinest)
          text_.fail(*group,
                     fmt::format("thread blocks cut a chunk into more than {} parts", kFinest));
      }
      if (depth == 0) self(self, text_.maybe_list(operation, "ops"), depth + 1);
    }
  };
  for (const config::Node& gpu : gpus.items())
    for (const config::Node& block : text_.list_at(gpu, "threadblocks"))
      look(look, text_.list_at(block, "ops"), 0);
}

void PlanReader::read_buffers(const config::Node& gpus) {
  const auto chunks = [&](const config::Node& gpu, const char* key) {
    return text_.integer_at(gpu, key, 0, kMostPlanChunks / fineness_) * fineness_;
  };
  const config::Node& first = gpus.items().front();
  plan_.input = chunks(first, keys().input);
  plan_.output = chunks(first, keys().output);
  for (const config::Node& gpu : gpus.items()) {
    const int id = text_.integer_at(gpu, "id", 0, kMostPlanRanks - 1);
    if (id != &gpu - gpus.items().data())
      text_.fail(text_.at(gpu, "id"), "GPUs have to be in the order of their ids");
    if (chunks(gpu, keys().input) != plan_.input)
      text_.fail(text_.at(gpu, keys().input), "ranks have different numbers of chunks");
    if (chunks(gpu, keys().output) != plan_.output)
      text_.fail(text_.at(gpu, keys().output), "ranks have different numbers of chunks");
    plan_.scratch = std::max(plan_.scratch, chunks(gpu, keys().scratch));
  }
  const int n = plan_.ranks;
  const bool gathers = plan_.collective == TransferKind::kAllGather;
  const bool scatters = plan_.collective == TransferKind::kReduceScatter;
  if (plan_.output == 0)
    plan_.output = gathers ? plan_.input * n : plan_.input / (scatters ? n : 1);
  if (plan_.input == 0)
    plan_.input = scatters ? plan_.output * n : plan_.output / (gathers ? n : 1);
  const auto whole = static_cast<std::int64_t>(gathers ? plan_.input : plan_.output) *
                     (gathers || scatters ? n : 1);
  const bool fits = whole == (gathers ? plan_.output : plan_.input) && whole > 0;
  const bool pairs = plan_.collective == TransferKind::kAllToAll;
  if (!fits || (pairs && plan_.input % n != 0))
    text_.fail(first, fmt::format("{} chunks of input and {} of output are no {} among {} ranks",
                                  plan_.input / fineness_, plan_.output / fineness_,
                                  to_string(plan_.collective), n));
}

void PlanReader::read_channels(const config::Node& gpus) {
  channels_.resize(gpus.items().size());
  for (std::size_t rank = 0; rank < channels_.size(); ++rank) {
    std::map<std::pair<std::string, int>, int> before;
    for (const config::Node& channel : text_.maybe_list(gpus.items()[rank], "channels")) {
      const std::string& type = text_.word_at(channel, keys().type);
      if (type == "switch" || type == "nvls") continue;  // refused where an operation uses it
      for (const config::Node& peer : text_.list_at(channel, keys().peers)) {
        const int other = text_.integer(peer, 0, plan_.ranks - 1);
        channels_[rank][type].push_back({other, before[{type, other}]++, channel_key(channel)});
      }
    }
  }
}

void PlanReader::read_semaphores(const config::Node& gpus) {
  for (const config::Node& gpu : gpus.items()) {
    semaphores_of_.push_back(static_cast<int>(plan_.semaphores.size()));
    for (const config::Node& semaphore : text_.maybe_list(gpu, "semaphores"))
      plan_.semaphores.push_back(text_.integer_at(semaphore, "init_value", 0, kMostPlanIds));
  }
  semaphores_of_.push_back(static_cast<int>(plan_.semaphores.size()));
}

void PlanReader::read_block(const config::Node& gpu, const config::Node& block) {
  begin_block(gpu, block);
  plan_.blocks.push_back({rank_, {}});
  read_operations(text_.list_at(block, "ops"), 0, plan_.blocks.back());
}

void PlanReader::read_operations(const std::vector<config::Node>& operations, int depth,
                                 PlanThreadBlock& block) {
  for (const config::Node& operation : operations) {
    const config::Node& name = text_.at(operation, "name");
    const PlanOperationRule& rule = rule_of(name);
    if (rule.shape == PlanShape::kSwitch)
      text_.fail(name,
                 "'" + name.text() + "' reduces or multicasts in switches, which plans cannot here",
                 {"`algorithm: nvls` is a collective that switches reduce"});
    if (rule.shape == PlanShape::kPipeline) {
      if (depth > 0) text_.fail(name, "a pipeline inside a pipeline");
      note("pipeline: its operations follow each other in one piece");
      read_operations(text_.list_at(operation, "ops"), depth + 1, block);
      continue;
    }
    read_operation(operation, rule, block);
  }
}

const PlanOperationRule& PlanReader::rule_of(const config::Node& name) const {
  using S = PlanShape;
  static const Rules common = {{"nop", {S::kNothing}},
                               {"flush", {S::kNothing}},
                               {"barrier", {S::kBarrier}},
                               {"signal", {S::kSignal}},
                               {"wait", {S::kWait}},
                               {"put", {S::kCopies}},
                               {"pws", {S::kCopies, false, false, true}},
                               {"pwsf", {S::kCopies, false, false, true}},
                               {"get", {S::kCopies}},
                               {"copy", {S::kCopies}},
                               {"ppkt", {S::kCopies, true}},
                               {"re", {S::kSum, false, false, false, true}},
                               {"glres", {S::kSwitch}}};
  for (const Rules* all : {&common, &rules()})
    if (const auto known = all->find(text_.word(name)); known != all->end()) return known->second;
  text_.fail(name, "unknown operation '" + name.text() + "'");
}

void PlanReader::read_operation(const config::Node& operation, const PlanOperationRule& rule,
                                PlanThreadBlock& block) {
  PlanOp op;
  const config::Node& name = *operation.find("name");
  op.where = name.where();
  op.length = name.length();
  switch (rule.shape) {
    case PlanShape::kBarrier:
      op.barrier = text_.integer_at(operation, "barrier_id", 0, kMostPlanIds);
      op.barrier_blocks = text_.integer(operation.find("num_threadblocks") != nullptr
                                            ? *operation.find("num_threadblocks")
                                            : text_.at(operation, "nthread_blocks"),
                                        1, kMostPlanIds);
      break;
    case PlanShape::kAcquire:
    case PlanShape::kRelease:
      for (const config::Node& id : text_.list_at(operation, "semaphore_ids")) {
        const int first = semaphores_of_[static_cast<std::size_t>(rank_)];
        const int count = semaphores_of_[static_cast<std::size_t>(rank_) + 1] - first;
        if (count == 0) text_.fail(id, "the rank has no semaphores");
        auto& ids = rule.shape == PlanShape::kAcquire ? op.acquires : op.releases;
        ids.push_back(first + text_.integer(id, 0, count - 1));
      }
      break;
    case PlanShape::kNothing:
      return;
    default:
      fill(operation, rule, op);
  }
  block.ops.push_back(std::move(op));
}

const std::vector<PlanReader::Channel>& PlanReader::channels(int rank,
                                                             const std::string& type) const {
  static const std::vector<Channel> none;
  const auto& types = channels_[static_cast<std::size_t>(rank)];
  const auto found = types.find(type);
  return found == types.end() ? none : found->second;
}

int PlanReader::signal(const std::string& type, int from, int to, int pair) const {
  const auto id = static_cast<int>(signals_.size());
  return signals_.try_emplace({type, from, to, pair}, id).first->second;
}

PlanRange PlanReader::range(const config::Node& node, const std::string& buffer, int rank,
                            int first, int count) const {
  const bool in = buffer == "i", out = buffer == "o";
  if (!in && !out && buffer != "s")
    text_.fail(node, "expected a buffer i, o or s, got '" + buffer + "'");
  const int size = in ? plan_.input : out ? plan_.output : plan_.scratch;
  const std::int64_t end = (static_cast<std::int64_t>(first) + count) * fineness_;
  if (end > size)
    text_.fail(node,
               fmt::format("buffer {} of rank {} has {} chunks", buffer, rank, size / fineness_));
  const int index = first * fineness_;
  const int cell = in    ? plan_.input_cell(rank, index)
                   : out ? plan_.output_cell(rank, index)
                         : plan_.scratch_cell(index);
  return {rank, cell, count * fineness_};
}

void PlanReader::note(const std::string& text) {
  if (std::find(plan_.notes.begin(), plan_.notes.end(), text) == plan_.notes.end())
    plan_.notes.push_back(text);
}

int ExecutionPlan::chunks() const {
  const bool pairs = collective == TransferKind::kAllToAll;
  return pairs ? input * ranks : std::max(input, output);
}

int ExecutionPlan::input_chunk(int rank, int index) const {
  const bool own = collective == TransferKind::kAllGather || collective == TransferKind::kAllToAll;
  return own ? rank * input + index : index;
}

int ExecutionPlan::output_chunk(int rank, int index) const {
  if (collective == TransferKind::kReduceScatter) return rank * output + index;
  if (collective != TransferKind::kAllToAll) return index;
  const int part = input / ranks;
  return index / part * input + rank * part + index % part;
}

int ExecutionPlan::output_cell(int rank, int index) const {
  if (!in_place) return input + index;
  return collective == TransferKind::kReduceScatter ? rank * output + index : index;
}

bool is_execution_plan(const config::Node& node) {
  const config::Node* gpus = node.find("gpus");
  return gpus != nullptr && gpus->is_sequence() && node.find("collective") != nullptr;
}

ExecutionPlan read_execution_plan(const config::Node& node, config::Diagnostics& diagnostics) {
  const PlanText text(diagnostics);
  ExecutionPlan plan;
  const std::vector<config::Node>& gpus = text.list_at(node, "gpus");
  const bool older = !gpus.empty() && gpus.front().find("inputChunks") != nullptr;
  (older ? read_older_plan : read_plan)(node, text, plan);
  return plan;
}

}  // namespace orrery
