// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/record.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t kMostSamples = 1024;  ///< samples kept of an instance

double used_share(const Instance& instance) {
  std::int64_t used = 0, all = 0;
  for (std::size_t rank = 0; rank < instance.ranks(); ++rank) {
    used += instance.pool(rank).used();
    all += instance.pool(rank).blocks();
  }
  return all == 0 ? 0 : static_cast<double>(used) / static_cast<double>(all);
}

/// "prompts 2048 + decodes 96"
std::string batch_text(const Batch& batch, const Queue& queue) {
  std::int64_t prompts = 0, decodes = 0;
  for (const Batch::Share& share : batch.shares) {
    if (queue.running[share.running].decodes()) {
      ++decodes;
    } else {
      prompts += share.tokens;
    }
  }
  std::string text = prompts > 0 ? "prompts " + std::to_string(prompts) : "";
  if (decodes > 0) text += (text.empty() ? "decodes " : " + decodes ") + std::to_string(decodes);
  return text;
}

/// Data parallel ranks, and batches of pipelines.
std::string slot_text(const ParallelConfig& parallel, int slot) {
  std::string text = "iterations";
  if (parallel.dp > 1) text += ", rank " + std::to_string(slot % parallel.dp);
  if (parallel.pp > 1) text += ", batch " + std::to_string(slot / parallel.dp);
  return text;
}

const char* category_of(const std::string& text) {
  if (text.starts_with("decodes")) return "decode";
  return text.find('+') == std::string::npos ? "prefill" : "mixed";
}

}  // namespace

void FleetSamples::begun(std::size_t index, const Instance& instance,
                         const Instance::Begun& begun) {
  OfInstance& of = of_[index];
  if (of.seen++ % of.stride != 0) return;
  of.kept.push_back({begun.begin, static_cast<double>(instance.view().waiting),
                     static_cast<double>(instance.view().running), used_share(instance)});
  if (of.kept.size() < kMostSamples) return;
  for (std::size_t i = 1; 2 * i < of.kept.size(); ++i) of.kept[i] = of.kept[2 * i];
  of.kept.resize((of.kept.size() + 1) / 2);
  of.stride *= 2;
}

void FleetSamples::moved(std::int64_t /*request*/, std::size_t /*from*/, std::size_t /*to*/,
                         Picoseconds /*begin*/, Picoseconds /*end*/) {}

ResultRows FleetSamples::rows() const {
  std::vector<std::pair<std::size_t, const Sample*>> all;
  for (std::size_t i = 0; i < of_.size(); ++i)
    for (const Sample& sample : of_[i].kept) all.emplace_back(i, &sample);
  std::ranges::stable_sort(
      all, [](const auto& a, const auto& b) { return a.second->time < b.second->time; });
  ResultRows rows{"samples", {}};
  for (const auto& [instance, sample] : all)
    for (const double value : {to_seconds(sample->time).base(), static_cast<double>(instance),
                               sample->waiting, sample->running, sample->used})
      rows.values.push_back(value);
  return rows;
}

ServingTimeline::ServingTimeline(Timeline& timeline, const std::vector<ServingGroup>& groups)
    : timeline_(timeline) {
  for (const ServingGroup& group : groups) {
    for (int replica = 0; replica < group.replicas; ++replica) {
      std::string name = group.name + " " + std::to_string(replica);
      if (group.role == InstanceRole::kPrefill) name += " (prefill)";
      if (group.role == InstanceRole::kDecode) name += " (decode)";
      timeline_.process(static_cast<std::uint32_t>(names_.size()), name);
      const int slots = group.parallel.dp * group.parallel.pp;
      for (int slot = 0; slot < slots; ++slot)
        timeline_.thread(static_cast<std::uint32_t>(names_.size()),
                         static_cast<std::uint32_t>(slot), slot_text(group.parallel, slot));
      names_.push_back(std::move(name));
    }
  }
}

void ServingTimeline::begun(std::size_t index, const Instance& instance,
                            const Instance::Begun& begun) {
  const auto role = static_cast<std::uint32_t>(index);
  for (std::size_t rank = 0; rank < instance.ranks(); ++rank) {
    const Instance::Slot slot = instance.slot(begun.lane, rank);
    const std::string text = batch_text(instance.batch(slot), instance.queue(slot));
    if (text.empty()) continue;
    timeline_.span(role, static_cast<std::uint32_t>(slot), text, category_of(text), begun.begin,
                   begun.end);
  }
  const InstanceView& view = instance.view();
  const std::pair<const char*, double> counters[] = {
      {"requests waiting", static_cast<double>(view.waiting)},
      {"requests running", static_cast<double>(view.running)},
      {"KV cache used", used_share(instance)}};
  for (const auto& [name, value] : counters) timeline_.counter(role, name, begun.begin, value);
}

/// Each on the first lane that is free then.
void ServingTimeline::moved(std::int64_t request, std::size_t from, std::size_t to,
                            Picoseconds begin, Picoseconds end) {
  const auto role = static_cast<std::uint32_t>(names_.size());
  const auto free =
      std::ranges::find_if(lane_ends_, [begin](Picoseconds last) { return last <= begin; });
  const auto lane = static_cast<std::uint32_t>(free - lane_ends_.begin());
  if (free == lane_ends_.end()) lane_ends_.push_back(0);
  lane_ends_[lane] = end;
  timeline_.process(role, "KV transfers");
  timeline_.span(role, lane, "request " + std::to_string(request),
                 names_[from] + " to " + names_[to], begin, end);
}

ResultRows request_rows(const ServingLog& log) {
  ResultRows rows{"requests", {}};
  const auto s = [](Picoseconds time) {
    return time == kNotYet ? std::nan("") : to_seconds(time).base();
  };
  for (const ServedRequest& a : log.served()) {
    for (const double value :
         {static_cast<double>(a.id), static_cast<double>(a.instance), static_cast<double>(a.prompt),
          static_cast<double>(a.output), static_cast<double>(a.found),
          static_cast<double>(a.preemptions), s(a.arrival), s(a.started), s(a.first_token),
          s(a.moved), s(a.last_token)})
      rows.values.push_back(value);
  }
  return rows;
}

}  // namespace orrery
