// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/results/run_record.h"
#include "sim/store/kept_rows.h"
#include "sim/store/sqlite.h"

namespace orrery {

/// The same point gave two results. The store keeps the first. what() names the point and a metric.
class DeterminismError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// About the run itself, not its result: kept apart, in no digest.
struct RunTimes {
  std::string started;  ///< UTC, ISO 8601: "2025-11-03T09:12:44.120Z"
  double wall_s = 0;
  std::string host;
  int exit_code = 0;  ///< exit code of a failure, as the program would have returned it
  int signal = 0;     ///< signal that ended the process; 0: none
  std::optional<double> user_s = {};    ///< CPU of the run, or of the process that died with it
  std::optional<double> system_s = {};  ///< CPU of the same in the kernel
  std::int64_t peak_bytes = 0;  ///< largest resident memory of the process until then; 0: not known
  std::string stderr_tail = {};  ///< end of what the process said before it died
};

/// A point as a store has it: its result, its executions, and the engine that gave it.
struct StoredPoint {
  RunRecord record;
  std::vector<RunTimes> attempts;
  std::string engine_version;
};

enum class SaveOutcome { kAdded, kReplacedFailure, kAlreadyThere };

class RecordReader;
class RecordWriter;

/// Results by point identity, in one SQLite file (tables: schema.h). Each read checks the digest.
/// Every function throws StoreError when the file is damaged, foreign, of another version, full or
/// out of reach.
class ResultStore {
 public:
  /// Results that are saved together, in one transaction: all of them after commit(), none without.
  class Batch {
   public:
    ~Batch();
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    /// The same result again adds no result. A failure is no result: it gives way to one and never
    /// replaces one.
    /// @param tiles results of thread blocks that were played for it, kept for later runs
    /// @throws DeterminismError when another result is stored for the identity.
    SaveOutcome save(const RunRecord& record, const RunTimes& times,
                     const std::vector<TileRow>& tiles = {});
    /// A point of another store with all its executions, likewise.
    SaveOutcome save(const StoredPoint& point);
    /// After it the results survive the end of this process, however it ends.
    void commit();

   private:
    friend class ResultStore;
    explicit Batch(ResultStore& store);

    ResultStore& store_;
    Transaction transaction_;
    bool committed_ = false;
  };

  /// For saving. The file need not exist: the first save creates it, so bad input leaves no trace.
  /// An existing file is checked at once and only read until then.
  /// @param max_bytes a save that would grow the file beyond it fails as on a full disk; 0: no
  /// limit
  static ResultStore open(const std::filesystem::path& path, std::uint64_t max_bytes = 0);
  /// For questions. The file must exist; nothing is created or changed.
  static ResultStore open_read_only(const std::filesystem::path& path);

  ResultStore(ResultStore&&) noexcept;
  ResultStore& operator=(ResultStore&&) = delete;
  ~ResultStore();

  /// Takes the lock for writing until the end of the batch, of which there may be one at a time.
  Batch begin();
  /// A batch of one result.
  SaveOutcome save(const RunRecord& record, const RunTimes& times,
                   const std::vector<TileRow>& tiles = {});

  bool contains(std::string_view identity) const { return status(identity).has_value(); }
  std::optional<RunStatus> status(std::string_view identity) const;
  std::optional<RunRecord> find(std::string_view identity) const;
  std::vector<RunTimes> times(std::string_view identity) const;
  std::optional<StoredPoint> point(std::string_view identity) const;
  /// The first identity after this one, in order; "" comes before all.
  std::optional<std::string> next_identity(std::string_view identity) const;

  /// In order of identity, one record in memory at a time.
  void for_each(const std::function<void(const RunRecord&)>& visit) const;
  std::vector<RunRecord> all() const;

  /// Makes the row groups that changes of points have taken (row_groups.h), where anything was
  /// saved: to be called when all is, as saves make those of new points alone.
  void group_rows();

  /// Results of thread blocks that runs of this engine have kept.
  std::vector<TileRow> tiles() const;

  /// The beginning of a search; none: it has not begun.
  std::optional<SearchRow> search(std::string_view key) const;
  /// Keeps the beginning of a search; one that is there stays as it is.
  void begin_search(const SearchRow& row);

  /// Integrity of the file, references between tables and all digests.
  void verify() const;

  /// For questions of their own in SQL; null while there is no file.
  const Database* database() const { return database_.get(); }

 private:
  ResultStore(std::filesystem::path path, bool may_write, std::uint64_t max_bytes);
  void begin_writing();
  RecordReader& reader() const;

  std::filesystem::path path_;
  bool may_write_;
  std::uint64_t max_bytes_;
  bool writing_ = false;
  std::unique_ptr<Database> database_;
  mutable std::unique_ptr<RecordReader> reader_;  ///< made with the first question
  std::unique_ptr<RecordWriter> writer_;          ///< null until something is saved
};

}  // namespace orrery
