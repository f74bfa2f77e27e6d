// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validation/checks/serving_validation.h"

namespace orrery {

/// What a configuration gives under so many clients: output tokens/s of a user (of 1 / TPOT), and
/// of an accelerator.
struct OperatingPoint {
  double user = 0, accelerator = 0;
};

/// Points that no other beats in both, by falling tokens/s of a user.
std::vector<OperatingPoint> operating_front(std::vector<OperatingPoint> points);

/// Tokens/s of an accelerator at which a front gives a user so many, on straight lines between its
/// points in logarithms. Users who are content with less than its slowest point gives get that
/// point; nothing where a user wants more than its fastest.
std::optional<double> front_at(const std::vector<OperatingPoint>& front, double user);

/// Two systems at one tokens/s of a user where measurements tell them apart: output tokens/s of an
/// accelerator by the front of each; nothing where a predicted front does not reach so many.
struct JudgedOrder {
  std::string runs;           ///< what is equal: "org/model 1024 8192 fp8"
  std::string first, second;  ///< names of the systems
  double user = 0;            ///< tokens/s of a user
  double measured_first = 0, measured_second = 0;
  std::optional<double> predicted_first, predicted_second;

  /// A system that does not reach the tokens/s of a user is behind one that does; where neither
  /// reaches, or both are predicted to be worth the same, the prediction is wrong.
  bool right() const;
};

/// How often predictions put two systems in the order in which measurements have them. Systems are
/// compared at equal model, lengths and precision (none is bf16), each by the front of all its
/// plans and engines, at the tokens/s of a user of every measured point of both fronts where both
/// reach; what differs by less than a tenth there is not judged. A prediction is right where its
/// fronts of the same runs differ in the same sense there.
class ServingOrder {
 public:
  struct Count {
    int right = 0, all = 0;
    double share() const { return all == 0 ? 0 : static_cast<double>(right) / all; }
  };

  /// A run without a prediction is left out.
  void add(const ServingComparison& comparison);
  /// Every pair of systems at every tokens/s of a user, by what is equal and by systems.
  std::vector<JudgedOrder> judged() const;
  /// Counts by pair of systems: "b200_sxm, h200_sxm".
  std::map<std::string, Count> pairs() const;

 private:
  struct Points {
    std::vector<OperatingPoint> measured, predicted;
  };
  std::map<std::string, std::map<std::string, Points>> groups_;  ///< systems by what is equal
};

}  // namespace orrery
