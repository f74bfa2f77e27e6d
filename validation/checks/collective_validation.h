// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/pricing/machine.h"
#include "validation/calibration/collective_predictor.h"
#include "validation/calibration/errors.h"

namespace orrery {

/// What measured collectives are compared with, and the errors so far.
class CollectiveValidation {
 public:
  /// table, system, precision or collective ("all": of all), class of bytes
  using Key = std::array<std::string, 4>;

  struct Group {
    std::vector<Comparison> rows;
    std::string worst_row;
    double worst = -1;
  };

  /// A system as its rows are predicted.
  struct Machine {
    std::string name;
    std::shared_ptr<const NetworkCalibration> calibration;  ///< none: priors
    std::unique_ptr<CollectivePredictor> predictor;

    const char* provenance(const CollectiveRow& row) const;
  };

  /// Gets each row that is compared, its price and what this rests on.
  using RowSink =
      std::function<void(const CollectiveRow&, const PricedTransfer&, const char* provenance)>;

  /// @param calibration auto, none, that of a system, or a path
  /// @param held_out only rows that no fit has seen
  CollectiveValidation(std::string calibration, bool held_out)
      : calibration_(std::move(calibration)), held_out_(held_out) {}

  void add(const CollectiveTable& table, const RowSink& sink = {});
  /// @throws UsageError if no row could be predicted
  void check_rows() const;

  const std::map<Key, Group>& groups() const { return groups_; }
  /// Machines by the name that tables use.
  const std::map<std::string, std::optional<Machine>>& machines() const { return machines_; }
  /// Rows by the reason why they were not compared.
  const std::map<std::string, std::size_t>& left_out() const { return left_out_; }

 private:
  const std::optional<Machine>& machine(const std::string& accelerator);

  std::string calibration_;
  bool held_out_;
  std::map<std::string, std::optional<Machine>> machines_;
  std::map<Key, Group> groups_;
  std::map<std::string, std::size_t> left_out_;
};

/// Classes of bytes, smallest first.
const std::vector<std::string>& byte_classes();

}  // namespace orrery
