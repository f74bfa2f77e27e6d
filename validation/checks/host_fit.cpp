// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/host_fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "sim/config/diagnostics.h"
#include "validation/checks/golden_section.h"

namespace orrery {
namespace {

constexpr std::int64_t kMostClients = 64;
constexpr std::size_t kMostRows = 64;

std::string group_of(const ServingRow& row) {
  return row.model.substr(row.model.rfind('/') + 1) + "@" + row.system;
}

bool is_of(const ServingRow& row, const std::vector<std::string>& versions) {
  return versions.empty() ||
         std::any_of(versions.begin(), versions.end(), [&](const std::string& version) {
           return row.version.empty() ? version == "none" : row.version.starts_with(version);
         });
}

/// So many of them at most, evenly.
std::vector<ServingRow> thinned(const std::vector<ServingRow>& rows, std::size_t most) {
  if (rows.size() <= most) return rows;
  std::vector<ServingRow> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(rows[i * rows.size() / most]);
  return some;
}

/// Errors of all rows, and of each group where they are asked for.
ServingTarget errors_of(ServingValidation& validation, const std::vector<ServingRow>& rows,
                        std::map<std::string, ServingTarget>* groups = nullptr) {
  std::vector<ServingComparison> comparisons;
  comparisons.reserve(rows.size());
  for (const ServingRow& row : rows) comparisons.push_back(validation.compare(row));
  std::vector<const ServingComparison*> all;
  std::map<std::string, std::vector<const ServingComparison*>> each;
  for (const ServingComparison& c : comparisons) {
    if (!c.reason.empty()) continue;
    all.push_back(&c);
    each[group_of(c.row)].push_back(&c);
  }
  if (groups != nullptr)
    for (const auto& [name, of] : each) groups->emplace(name, serving_target(name, of));
  return serving_target("", all);
}

/// Mean of |log(predicted / measured)| of TPOT and, where rows tell it, TTFT, of each group.
std::map<std::string, double> distances(ServingValidation& validation,
                                        const std::vector<ServingRow>& rows) {
  std::map<std::string, std::pair<double, std::size_t>> sums;
  const auto add = [&](const ServingRow& row, double predicted, double measured) {
    auto& [sum, count] = sums[group_of(row)];
    sum += std::abs(std::log(predicted / measured));
    ++count;
  };
  std::string reason;
  for (const ServingRow& row : rows) {
    const ServingComparison c = validation.compare(row);
    if (reason.empty()) reason = c.reason;
    if (!c.reason.empty()) continue;
    add(row, c.tpot_ms, row.tpot_ms);
    if (row.tells_ttft()) add(row, c.ttft_ms, row.ttft_ms);
  }
  if (sums.empty())
    throw config::ConfigError("none of the rows to fit on can be predicted: " + reason);
  std::map<std::string, double> means;
  for (const auto& [group, of] : sums) means[group] = of.first / static_cast<double>(of.second);
  return means;
}

double mean_of(const std::map<std::string, double>& distances) {
  double sum = 0;
  for (const auto& [group, distance] : distances) sum += distance;
  return distances.empty() ? 0 : sum / static_cast<double>(distances.size());
}

/// Whether no group is farther than in `others`.
bool nowhere_worse(const std::map<std::string, double>& distances,
                   const std::map<std::string, double>& others) {
  return std::all_of(distances.begin(), distances.end(),
                     [&](const auto& of) { return of.second <= others.at(of.first); });
}

/// A figure of the host, and how large it is looked for.
struct HostFigure {
  Seconds HostCosts::*figure;
  double most;
};

}  // namespace

HostFitRows host_fit_rows(const std::vector<ServingRow>& all, const std::string& backend,
                          const std::vector<std::string>& fit_on,
                          const std::vector<std::string>& versions) {
  HostFitRows split;
  std::vector<ServingRow> rows;
  std::copy_if(all.begin(), all.end(), std::back_inserter(rows),
               [&](const ServingRow& row) { return is_of(row, versions); });
  for (const std::string& group : fit_on) {
    const bool there = std::any_of(rows.begin(), rows.end(), [&](const ServingRow& row) {
      return row.backend == backend && group_of(row) == group;
    });
    if (!there) throw config::ConfigError(fmt::format("no rows of {} are of '{}'", backend, group));
  }
  for (const ServingRow& row : rows) {
    if (row.backend != backend) continue;
    if (std::find(fit_on.begin(), fit_on.end(), group_of(row)) == fit_on.end()) {
      split.held_out.push_back(row);
    } else if (row.concurrency <= kMostClients) {
      split.fitted.push_back(row);
    }
  }
  split.fitted = thinned(split.fitted, kMostRows);
  if (split.held_out.empty())
    throw config::ConfigError("no rows of " + backend + " are left to judge the fit by");
  return split;
}

HostFit fit_host(ServingValidation& validation, const HostFitRows& rows, const HostCosts& given,
                 const std::function<void(const HostCosts&, double mean)>& told) {
  constexpr int kRounds = 2;
  constexpr double kShare = 0.02;
  std::vector<HostFigure> figures = {{&HostCosts::launch, 150e-6},
                                     {&HostCosts::gap, 10e-3},
                                     {&HostCosts::iteration, 10e-3},
                                     {&HostCosts::sequence, 100e-6}};
  if (std::any_of(rows.fitted.begin(), rows.fitted.end(),
                  [](const ServingRow& row) { return row.tells_ttft(); }))
    figures.insert(figures.begin(), {&HostCosts::request, 0.2});
  std::erase_if(figures, [&](const HostFigure& f) { return given.*f.figure > Seconds(0); });
  HostFit fit;
  fit.host = given;
  validation.set_host(fit.host);
  fit.fitted_before = errors_of(validation, rows.fitted);
  fit.held_out_before = errors_of(validation, rows.held_out, &fit.groups_before);
  for (int round = 0; round < kRounds; ++round) {
    for (const HostFigure& f : figures) {
      const auto with = [&](double value) {
        fit.host.*f.figure = Seconds(value);
        validation.set_host(fit.host);
        return distances(validation, rows.fitted);
      };
      const double best =
          least_of(f.most, kShare, [&](double value) { return mean_of(with(value)); });
      const auto without = with(0);
      auto found = with(best);
      if (!nowhere_worse(found, without)) found = with(0);
      if (told) told(fit.host, mean_of(found));
    }
  }
  fit.fitted = errors_of(validation, rows.fitted);
  fit.held_out = errors_of(validation, rows.held_out, &fit.groups);
  validation.set_host({});
  return fit;
}

}  // namespace orrery
