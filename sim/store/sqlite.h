// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace orrery {

/// What is wrong with a store, as far as a caller acts on it.
enum class StoreFault {
  kFull,         ///< no space left, or the size limit is reached
  kBusy,         ///< another process held the lock for longer than the time-out
  kCorrupt,      ///< damaged, or a result does not match its digest
  kForeign,      ///< not a result store
  kVersion,      ///< written by another version
  kUnreachable,  ///< cannot be opened
  kOther         ///< the machine fails: a disk error, a file above its limit, too few file handles
};

/// A store that cannot be used. what() names the file.
class StoreError : public std::runtime_error {
 public:
  StoreError(StoreFault fault, const std::string& what, int sqlite_code = 0)
      : std::runtime_error(what), fault_(fault), sqlite_code_(sqlite_code) {}
  StoreFault fault() const { return fault_; }
  /// The extended SQLite result code; 0 where SQLite was content.
  int sqlite_code() const { return sqlite_code_; }

 private:
  StoreFault fault_;
  int sqlite_code_;
};

/// A prepared statement. Parameters count from 1, columns from 0, as in SQLite.
class Statement {
 public:
  Statement(sqlite3* database, std::string_view sql);

  Statement& bind(int parameter, std::string_view text);
  Statement& bind_bytes(int parameter, std::string_view bytes);
  Statement& bind(int parameter, std::int64_t number);
  Statement& bind(int parameter, double number);
  Statement& bind(int parameter, std::optional<double> number);

  /// Binds parameters 1 and following, and runs.
  template <class... Values>
  void run_with(const Values&... values) {
    int parameter = 0;
    (bind(++parameter, values), ...);
    run();
  }

  /// True while there is a row.
  bool step();
  /// For statements without rows: runs it and makes it ready for the next bindings.
  void run();
  void reset();

  bool is_null(int column) const;
  bool is_integer(int column) const;
  bool is_real(int column) const;
  std::string text(int column) const;
  std::string bytes(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::optional<double> optional_real(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void check(int code) const;

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// A connection to one SQLite file. Waits some 5 s for locks of others.
class Database {
 public:
  enum class Mode {
    kRead,   ///< the file must exist; it is not changed
    kWrite,  ///< the file must exist
    kCreate  ///< creates the file if there is none
  };

  /// SQLite reads the file only when it is first asked something.
  /// @throws StoreError when it cannot be opened.
  Database(const std::filesystem::path& path, Mode mode);

  /// Runs statements that return nothing.
  void execute(const char* sql);
  Statement prepare(std::string_view sql) const { return Statement(handle_.get(), sql); }
  /// First column of the first row.
  std::int64_t integer(std::string_view sql) const;
  std::string text(std::string_view sql) const;
  /// Row id of the last insertion.
  std::int64_t last_row() const;
  /// Says what is wrong with what the file holds. @throws StoreError that names the file
  [[noreturn]] void refuse(StoreFault fault, const std::string& what) const;
  /// Whether a transaction is open.
  bool in_transaction() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A transaction for writing; rolls back unless committed. It takes the lock at the start, where
/// the busy time-out applies: a read that turns into a write fails at once with
/// SQLITE_BUSY_SNAPSHOT (SQLite, "Transactions", 2.2).
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace orrery
