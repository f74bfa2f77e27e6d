// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/autoscaler.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace orrery {
namespace {

std::int64_t requests_of(const Instance& instance) {
  return instance.view().waiting + instance.view().running;
}

}  // namespace

Autoscaler::Autoscaler(const std::vector<ScaleRules>& groups) {
  for (const ScaleRules& rules : groups) {
    Group group{rules, std::vector<Member>(rules.most), 0};
    const bool scales = rules.interval.base() > 0;
    for (std::size_t i = 0; i < rules.most; ++i)
      group.members[i].state = i < rules.least || !scales ? State::kOn : State::kOff;
    groups_.push_back(std::move(group));
  }
}

const Autoscaler::Group& Autoscaler::group_of(std::size_t instance) const {
  return *std::find_if(groups_.begin(), groups_.end(), [instance](const Group& group) {
    return instance < group.rules.first + group.rules.most;
  });
}

bool Autoscaler::takes(std::size_t instance, const std::vector<Instance>& instances,
                       Picoseconds now) const {
  const Group& group = group_of(instance);
  const std::size_t own = instance - group.rules.first;
  const Member& member = group.members[own];
  if (member.state != State::kOn) return false;
  const double age = to_seconds(now - member.ready).base();
  if (member.ready == 0 || age >= group.rules.ramp.base()) return true;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < group.members.size(); ++i)
    if (group.members[i].state == State::kOn)
      most = std::max(most, requests_of(instances[group.rules.first + i]));
  const double share = age / group.rules.ramp.base();
  return static_cast<double>(requests_of(instances[instance])) < share * static_cast<double>(most);
}

void Autoscaler::look(Group& group, const std::vector<Instance>& instances, Picoseconds now) {
  const ScaleRules& rules = group.rules;
  std::int64_t requests = 0;
  std::size_t running = 0;  // or about to
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    Member& member = group.members[i];
    const std::int64_t own = requests_of(instances[rules.first + i]);
    if (member.state == State::kStarting && member.ready <= now) member.state = State::kOn;
    if (member.state == State::kEnding && own == 0) {
      member.state = State::kOff;
      member.held.push_back({member.since, now});
    }
    if (member.state == State::kOn || member.state == State::kStarting) ++running;
    requests += own;
  }
  const auto needed =
      static_cast<std::size_t>(std::ceil(static_cast<double>(requests) / rules.requests));
  const std::size_t wanted = std::clamp(needed, rules.least, rules.most);
  for (Member& member : group.members) {
    if (running >= wanted) break;
    if (member.state == State::kOn || member.state == State::kStarting) continue;
    if (member.state == State::kOff) {
      member.since = now;
      member.ready = checked_add(now, to_picoseconds(rules.start));
      member.state = State::kStarting;
    } else {
      member.state = State::kOn;  // it was about to end
    }
    ++running;
  }
  if (wanted >= running) group.enough_since = now;
  if (to_seconds(now - group.enough_since) < rules.cool_down) return;
  for (std::size_t i = group.members.size(); i-- > 0 && running > wanted;) {
    if (group.members[i].state != State::kOn) continue;
    group.members[i].state = State::kEnding;
    --running;
  }
}

Picoseconds Autoscaler::look(const std::vector<Instance>& instances, Picoseconds now) {
  Picoseconds next = kNever;
  for (Group& group : groups_) {
    if (group.rules.interval.base() <= 0) continue;
    look(group, instances, now);
    next = std::min(next, checked_add(now, to_picoseconds(group.rules.interval)));
  }
  return next;
}

Picoseconds Autoscaler::held(std::size_t instance, Picoseconds now) const {
  Picoseconds held = 0;
  for (const HeldPeriod& period : periods(instance, now)) held += period.end - period.begin;
  return held;
}

std::vector<HeldPeriod> Autoscaler::periods(std::size_t instance, Picoseconds now) const {
  const Group& group = group_of(instance);
  const Member& member = group.members[instance - group.rules.first];
  std::vector<HeldPeriod> periods = member.held;
  if (member.state != State::kOff) periods.push_back({member.since, now});
  return periods;
}

}  // namespace orrery
