// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "models/kernels/parameter_limits.h"
#include "validation/calibration/least_squares.h"

namespace orrery {
namespace {

/// A parameter whose logarithm is known no better than this is not told by the rows.
constexpr double kUntold = 0.7;

/// Values of one group of kernel classes.
struct Group {
  FamilyOf of;
  std::vector<double> values;
};

/// One kernel of a row and the place of its group.
struct Part {
  std::size_t group = 0;
  const Kernel* kernel = nullptr;
};

/// Where a free parameter goes.
struct Place {
  std::size_t group = 0, index = 0;
};

/// All that the rows share.
struct Space {
  const AcceleratorConfig* accelerator = nullptr;
  std::vector<Group> groups;
  std::vector<Place> free;
  std::vector<double> logs;  ///< logarithms of the free parameters (`groups`: exponentials)
};

/// One problem: the rows with a given set of free parameters.
class Fitter {
 public:
  Fitter(std::string model, const std::vector<FitRow>& rows, const AcceleratorConfig& accelerator)
      : model_(std::move(model)), rows_(rows) {
    space_.accelerator = &accelerator;
    for (const FitRow& row : rows_) {
      std::vector<Part> parts;
      for (const Kernel& kernel : row.kernels) parts.push_back({group_of(kernel), &kernel});
      parts_.push_back(std::move(parts));
    }
  }

  void solve(const std::vector<std::string>& free) {
    prepare(free);
    LeastSquares problem;
    problem.start = logs_;
    for (const Place& place : space_.free) {
      problem.lower.push_back(std::log(lowest_fitted(info_of(place))));
      problem.upper.push_back(std::log(info_of(place).upper));
    }
    problem.residuals = rows_.size();
    problem.residual = [this](std::size_t row, const double* logs) { return log_ratio(row, logs); };
    const LeastSquaresSolution solution = orrery::solve(problem);
    logs_ = solution.values;
    std::vector<std::string> groups;
    for (const FitRow& row : rows_) groups.push_back(row.group);
    covariance_ = clustered_covariance(solution, groups);
  }

  /// The covariance of the logarithms of the free parameters, clustered by shape group.
  const std::vector<std::vector<double>>& covariance() const { return covariance_; }
  double value(std::size_t i) const { return std::exp(logs_[i]); }
  bool at_limit(std::size_t i) const { return orrery::at_limit(info_of(space_.free[i]), value(i)); }
  const char* unit(const std::string& name) const { return info_of(place_of(name)).unit; }
  double held(const std::string& name) const {
    const Place place = place_of(name);
    return space_.groups[place.group].values[place.index];
  }
  /// Holds a parameter at a value in what is solved next.
  void hold(const std::string& name, double value) {
    const Place place = place_of(name);
    space_.groups[place.group].values[place.index] = value;
  }

 private:
  const ParameterInfo& info_of(Place place) const {
    return space_.groups[place.group].of.family->parameters()[place.index];
  }

  Place place_of(const std::string& name) const {
    const std::size_t dot = name.find('.');
    for (std::size_t group = 0; group < space_.groups.size(); ++group) {
      const FamilyOf& of = space_.groups[group].of;
      if (of.group != name.substr(0, dot)) continue;
      const std::size_t index = parameter_index(*of.family, name.substr(dot + 1));
      if (index < of.family->parameters().size()) return {group, index};
    }
    throw std::invalid_argument("no row has a kernel with the parameter " + name);
  }

  std::size_t group_of(const Kernel& kernel) {
    const FamilyOf of = family_of(model_, kernel);
    std::size_t at = 0;
    while (at < space_.groups.size() && space_.groups[at].of.group != of.group) ++at;
    if (at == space_.groups.size())
      space_.groups.push_back({of, of.family->priors(*space_.accelerator, kernel.precision)});
    return at;
  }

  void prepare(const std::vector<std::string>& free) {
    space_.free.clear();
    space_.logs.clear();
    logs_.clear();
    for (const std::string& name : free) {
      const Place place = place_of(name);
      const ParameterInfo& info = info_of(place);
      space_.free.push_back(place);
      // Inside the limits, or the first step has nowhere to go; priors of 0 have no logarithm.
      const double low = info.lower > 0 ? info.lower * 1.05 : 0.02;
      logs_.push_back(std::log(std::clamp(held(name), low, info.upper * 0.95)));
    }
    // No number equals NaN: the first evaluation sets them all.
    space_.logs.assign(logs_.size(), std::numeric_limits<double>::quiet_NaN());
  }

  /// log(predicted / measured) of a row, as a function of the logarithms of the free parameters.
  double log_ratio(std::size_t row, const double* logs) {
    // From one evaluation to the next few of them change.
    for (std::size_t i = 0; i < space_.free.size(); ++i) {
      if (logs[i] == space_.logs[i]) continue;
      space_.logs[i] = logs[i];
      const Place& place = space_.free[i];
      space_.groups[place.group].values[place.index] = std::exp(logs[i]);
    }
    double total = 0;
    for (const Part& part : parts_[row]) {
      const Group& group = space_.groups[part.group];
      total +=
          group.of.family->time(*part.kernel, *space_.accelerator, group.values.data()).total_us;
    }
    return std::log(total) - std::log(rows_[row].measured_us);
  }

  std::string model_;
  const std::vector<FitRow>& rows_;
  std::vector<std::vector<Part>> parts_;
  Space space_;
  std::vector<double> logs_;
  std::vector<std::vector<double>> covariance_;
};

/// Parameters that ran into a limit; where there are none, the one that the rows tell least, if
/// that is too little; by index.
std::vector<std::size_t> settled(const Fitter& fitter, std::size_t count) {
  std::vector<std::size_t> out;
  std::size_t worst = count;
  double widest = kUntold * kUntold;
  for (std::size_t i = 0; i < count; ++i) {
    if (fitter.at_limit(i)) out.push_back(i);
    if (const double variance = fitter.covariance()[i][i]; !(variance < widest)) {
      widest = variance;
      worst = i;
    }
  }
  if (out.empty() && worst < count) out.push_back(worst);
  return out;
}

void write_fitted(const Fitter& fitter, const std::vector<std::string>& free, KernelFit& fit) {
  const std::size_t count = free.size();
  fit.covariance = fitter.covariance();
  for (std::size_t i = 0; i < count; ++i) {
    fit.fitted.push_back(free[i]);
    fit.parameters[free[i]] = {fitter.value(i), fitter.unit(free[i]),
                               fitter.value(i) * std::sqrt(fit.covariance[i][i]),
                               ParameterProvenance::kFitted};
  }
}

}  // namespace

bool moves(const KernelFamily& family, std::size_t index, KernelClass kind,
           const std::vector<FitRow>& rows, const AcceleratorConfig& accelerator) {
  for (const FitRow& row : rows) {
    for (const Kernel& kernel : row.kernels) {
      if (kernel.kind != kind) continue;
      std::vector<double> values = family.priors(accelerator, kernel.precision);
      const double before = family.time(kernel, accelerator, values.data()).total_us;
      values[index] = 1.1 * values[index] + 1e-3;
      if (family.time(kernel, accelerator, values.data()).total_us != before) return true;
    }
  }
  return false;
}

std::vector<double> values_of(const KernelFit& fit, const FamilyOf& of,
                              const AcceleratorConfig& device) {
  std::vector<double> values = of.family->priors(device, fit.precision);
  const std::vector<ParameterInfo>& infos = of.family->parameters();
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const auto found = fit.parameters.find(of.group + "." + infos[i].name);
    if (found != fit.parameters.end()) values[i] = found->second.value;
  }
  return values;
}

std::vector<FitRow> thinned(const std::vector<FitRow>& rows, std::size_t most) {
  const std::size_t step = std::max<std::size_t>(1, (rows.size() + most - 1) / most);
  std::vector<FitRow> some;
  for (std::size_t i = 0; i < rows.size(); i += step) some.push_back(rows[i]);
  return some;
}

void fit_parameters(const std::string& model, const std::vector<FitRow>& rows,
                    const AcceleratorConfig& accelerator, const std::vector<std::string>& free,
                    KernelFit& fit) {
  if (rows.size() <= free.size()) throw std::invalid_argument("fewer rows than parameters");
  Fitter fitter(model, rows, accelerator);
  for (const auto& [name, parameter] : fit.parameters) fitter.hold(name, parameter.value);
  std::map<std::string, double> priors;
  for (const std::string& name : free) priors[name] = fitter.held(name);
  std::vector<std::string> left = free;
  while (!left.empty()) {
    fitter.solve(left);
    const std::vector<std::size_t> out = settled(fitter, left.size());
    if (out.empty()) break;
    // The others go on from where they are.
    for (std::size_t i = 0; i < left.size(); ++i) fitter.hold(left[i], fitter.value(i));
    for (std::size_t i = out.size(); i-- > 0;) {
      const std::string name = left[out[i]];
      // What ran into its limit stays there, the rows asked for it; what they do not tell goes
      // back.
      const bool limit = fitter.at_limit(out[i]);
      const double value = limit ? fitter.value(out[i]) : priors[name];
      fitter.hold(name, value);
      fit.parameters[name] = {value, fitter.unit(name), 0,
                              limit ? ParameterProvenance::kFitted : ParameterProvenance::kPrior};
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(out[i]));
    }
  }
  if (!left.empty()) write_fitted(fitter, left, fit);
}

void fit_values(const std::string& model, const std::vector<FitRow>& rows,
                const AcceleratorConfig& accelerator, const std::vector<std::string>& free,
                KernelFit& fit) {
  if (rows.size() <= free.size()) throw std::invalid_argument("fewer rows than parameters");
  Fitter fitter(model, rows, accelerator);
  for (const auto& [name, parameter] : fit.parameters) fitter.hold(name, parameter.value);
  fitter.solve(free);
  for (std::size_t i = 0; i < free.size(); ++i)
    fit.parameters[free[i]] = {fitter.value(i), fitter.unit(free[i]), 0,
                               ParameterProvenance::kFitted};
}

double mean_deviation(const std::string& model, const std::vector<FitRow>& rows,
                      const AcceleratorConfig& accelerator, const KernelFit& fit) {
  std::map<std::string, std::vector<double>> values;  // by group
  double sum = 0;
  for (const FitRow& row : rows) {
    double total = 0;
    for (const Kernel& kernel : row.kernels) {
      const FamilyOf of = family_of(model, kernel);
      auto known = values.find(of.group);
      if (known == values.end())
        known = values.emplace(of.group, values_of(fit, of, accelerator)).first;
      total += of.family->time(kernel, accelerator, known->second.data()).total_us;
    }
    sum += std::abs(std::log(total / row.measured_us));
  }
  return sum / static_cast<double>(rows.size());
}

}  // namespace orrery
