// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/pricing/machine.h"
#include "validation/calibration/collective_predictor.h"
#include "validation/calibration/errors.h"

namespace orrery {

/// What measured collectives are compared with, and the errors so far.
class CollectiveValidation {
 public:
  /// Rows that are judged together.
  struct Key {
    std::string table;
    std::string system;  ///< name of an accelerator; "all": rows of all
    MeasuredEngine engine;
    std::string of;     ///< precision, collective, or "all"
    std::string bytes;  ///< class of bytes
    auto operator<=>(const Key&) const = default;
  };

  struct Group {
    std::vector<Comparison> rows;
    std::string worst_row;
    double worst = -1;
  };

  /// A system as its rows are predicted.
  struct Machine {
    std::string name;
    std::shared_ptr<const NetworkCalibration> calibration;  ///< none: priors
    SystemConfig system;
    std::unique_ptr<CollectivePredictor> predictor;
    /// All-reduces by kernels of engines and their ranks; null: nothing is known of the engine.
    std::map<std::pair<MeasuredEngine, std::int64_t>, std::unique_ptr<Network>> engines = {};

    const char* provenance(const CollectiveRow& row) const;
    PricedTransfer price(CollectiveTableKind kind, const CollectiveRow& row);

   private:
    /// @return null where the row is no all-reduce of an engine that is known
    const Network* engine(CollectiveTableKind kind, const CollectiveRow& row);
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
  std::optional<Machine>& machine(const std::string& accelerator);

  std::string calibration_;
  bool held_out_;
  std::map<std::string, std::optional<Machine>> machines_;
  std::map<Key, Group> groups_;
  std::map<std::string, std::size_t> left_out_;
};

/// Classes of bytes, smallest first.
const std::vector<std::string>& byte_classes();

}  // namespace orrery
