// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/app/questions/base/options.h"
#include "sim/store/point_table.h"
#include "sim/store/result_store.h"

namespace orrery {

/// The store that a question is about, and which of its points.
struct StoreChoice {
  std::string store;
  std::string where;    ///< condition on metrics, quantiles, configuration paths; empty: none
  bool verify = false;  ///< whether points that count are read as a whole too, however many

  void take(Options& options);
};

/// The points of a store that a question is about: results, no failures and nothing infeasible
/// unless the condition speaks of `status`; of each kind of experiment those of the newest engine
/// unless it speaks of `engine_version`.
class StoredPoints {
 public:
  enum class Scope {
    kComparable,  ///< results of the newest engine, as said above
    kFailures,    ///< failed points of this engine alone
    kAll  ///< results of every engine, infeasible points too; failures where `status` is spoken of
  };

  /// Columns of row groups are checked as they are read. Of points that are in none, as in stores
  /// of older versions, up to so many are read as a whole for their checksums (some 60 us each); of
  /// more only those that an answer shows, unless the choice says otherwise.
  static constexpr std::size_t kMostVerified = 5000;

  /// @throws StoreError; config::ConfigError for a wrong condition
  explicit StoredPoints(const StoreChoice& choice, Scope scope = Scope::kComparable);

  const ResultStore& store() const { return store_; }
  const PointTable& table() const { return table_; }
  /// Rows of the table, ascending.
  const std::vector<std::size_t>& rows() const { return rows_; }
  /// "3 failed points, 12 results of engine 12 are not looked at\n" and how many were not checked,
  /// or empty.
  const std::string& left_out() const { return left_out_; }

  /// Numbers that names stand for. @throws UsageError for what is none, with what was meant
  std::vector<PointColumn> numbers(const std::vector<std::string>& names) const;
  /// Any column. @throws UsageError
  PointColumn column(const std::string& name) const;
  /// A point as a whole. @throws StoreError where it is gone
  RunRecord record(std::size_t row) const;

 private:
  void select_groups(const std::vector<std::string>& mentioned, Scope scope);
  void select_rows(const StoreChoice& choice, Scope scope);
  void check_columns(bool all);
  [[noreturn]] void refuse(const std::string& name) const;

  ResultStore store_;
  PointTable table_;
  std::vector<bool> groups_;  ///< groups of the table that are looked at
  std::vector<std::size_t> rows_;
  std::string left_out_;
};

/// What tells some points apart, for people: `system.system` where systems differ, and nothing that
/// follows from it; no labels.
struct PointAxes {
  std::vector<std::string> paths;
  std::vector<std::vector<std::string>> texts;  ///< texts by path, then by record; "-": has none
};
PointAxes axes_of(const std::vector<RunRecord>& records);

/// Paths without those that follow from a name: where all values of `system.memory` go with one of
/// `system.system`, that is enough to say. @param same whether two things have the same value
std::vector<std::string> without_followers(
    const std::vector<std::string>& paths,
    const std::function<bool(const std::string& name, const std::string& path)>& follows);

/// The first digits of an identity, enough for people.
std::string short_identity(const std::string& identity);

}  // namespace orrery
