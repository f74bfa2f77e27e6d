// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/points/attribution.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

namespace orrery {
namespace {

constexpr const char* kBreakdown = "breakdown.";

std::int64_t picoseconds(double seconds) {
  return static_cast<std::int64_t>(std::llround(seconds * 1e12));
}

/// The time that both results are about.
const char* time_of(const RunRecord& a, const RunRecord& b) {
  for (const char* name : {"step_time_s", "time_s", "simulated_time_s"})
    if (a.find(name) != nullptr && b.find(name) != nullptr) return name;
  return nullptr;
}

using Times = std::map<std::string, AttributedPart>;

/// Adds what parts leave of the total, so that they add up.
Attribution add_up(std::string what, const AttributedPart& total, const Times& times,
                   const std::string& rest_name) {
  Attribution attribution{std::move(what), total, {}};
  AttributedPart rest{rest_name, total.a_ps, total.b_ps};
  for (const auto& [name, part] : times) {
    rest.a_ps -= part.a_ps;
    rest.b_ps -= part.b_ps;
    if (part.a_ps != 0 || part.b_ps != 0) attribution.parts.push_back(part);
  }
  std::ranges::stable_sort(attribution.parts, std::greater<>(), [](const AttributedPart& part) {
    return std::abs(part.difference_ps());
  });
  if (rest.a_ps != 0 || rest.b_ps != 0) attribution.parts.push_back(rest);
  return attribution;
}

}  // namespace

std::vector<Attribution> attributions(const RunRecord& a, const RunRecord& b) {
  std::vector<Attribution> all;
  const char* time = time_of(a, b);
  if (time == nullptr) return all;
  const AttributedPart total{time, picoseconds(a.find(time)->value),
                             picoseconds(b.find(time)->value)};
  Times parts, classes;
  const auto add = [](Times& times, const std::string& name, bool second, double seconds) {
    AttributedPart& part = times[name];
    part.name = name;
    (second ? part.b_ps : part.a_ps) += picoseconds(seconds);
  };
  for (const bool second : {false, true}) {
    const RunRecord& record = second ? b : a;
    for (const Metric& metric : record.metrics)
      if (metric.name.starts_with(kBreakdown))
        add(parts, metric.name.substr(std::string(kBreakdown).size()), second, metric.value);
    for (const ClassBreakdown& c : record.classes) add(classes, c.name, second, c.time_s);
  }
  if (!parts.empty()) all.push_back(add_up("part of the time", total, parts, "in no part"));
  if (!classes.empty())
    all.push_back(add_up("class of operators", total, classes, "less overlap, and waiting"));
  return all;
}

}  // namespace orrery
