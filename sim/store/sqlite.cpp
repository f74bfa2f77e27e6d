// SPDX-License-Identifier: Apache-2.0
#include "sim/store/sqlite.h"

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace orrery {
namespace {

/// Waits for a lock of another process, for some 5 s. SQLite's own time-out soon looks every 100 ms
/// alone, so that of many writers some find the lock taken for seconds: here all look often, and no
/// two in step.
int wait_for_lock(void* /*database*/, int tries) {
  constexpr int kMostTries = 600, kLongestMs = 8;
  if (tries >= kMostTries) return 0;
  const int spread_us = (::getpid() * 7919 + tries * 104'729) % 1000;
  ::usleep(static_cast<useconds_t>(std::min(tries, kLongestMs) * 1000 + 500 + spread_us));
  return 1;
}

/// @param system_error errno of the call that failed; 0: none
StoreFault fault_of(int code, int system_error) {
  if (system_error == EMFILE || system_error == ENFILE || system_error == EIO)
    return StoreFault::kOther;
  // A file that cannot be made for want of space is out of reach by its code alone.
  if (system_error == ENOSPC || system_error == EDQUOT) return StoreFault::kFull;
  switch (code & 0xff) {  // the low byte of an extended code is the primary one
    case SQLITE_FULL:
      return StoreFault::kFull;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return StoreFault::kBusy;
    case SQLITE_CORRUPT:
      return StoreFault::kCorrupt;
    case SQLITE_NOTADB:
      return StoreFault::kForeign;
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return StoreFault::kUnreachable;
    default:
      return StoreFault::kOther;
  }
}

[[noreturn]] void fail(sqlite3* database) {
  const int code = sqlite3_extended_errcode(database);
  const char* file = sqlite3_db_filename(database, "main");
  const int error = sqlite3_system_errno(database);
  const StoreFault fault = fault_of(code, error);
  std::string text = std::string(file ? file : "") + ": ";
  if (fault == StoreFault::kBusy) {
    text += "the store is locked by another process";
  } else {
    text += sqlite3_errmsg(database);
    if (error != 0 && fault != StoreFault::kForeign)
      text += std::string(": ") + std::strerror(error);
  }
  throw StoreError(fault, text, code);
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement::Statement(sqlite3* database, std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement, nullptr) !=
      SQLITE_OK) {
    fail(database);
  }
  statement_.reset(statement);
}

void Statement::check(int code) const {
  if (code != SQLITE_OK) fail(sqlite3_db_handle(statement_.get()));
}

Statement& Statement::bind(int parameter, std::string_view text) {
  check(sqlite3_bind_text(statement_.get(), parameter, text.data(), static_cast<int>(text.size()),
                          SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::bind_bytes(int parameter, std::string_view bytes) {
  check(sqlite3_bind_blob(statement_.get(), parameter, bytes.data(), static_cast<int>(bytes.size()),
                          SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::bind(int parameter, std::int64_t number) {
  check(sqlite3_bind_int64(statement_.get(), parameter, number));
  return *this;
}

Statement& Statement::bind(int parameter, double number) {
  check(sqlite3_bind_double(statement_.get(), parameter, number));
  return *this;
}

Statement& Statement::bind(int parameter, std::optional<double> number) {
  if (number) return bind(parameter, *number);
  check(sqlite3_bind_null(statement_.get(), parameter));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail(sqlite3_db_handle(statement_.get()));
  return false;
}

void Statement::run() {
  while (step()) {
  }
  reset();
}

void Statement::reset() { check(sqlite3_reset(statement_.get())); }

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

bool Statement::is_integer(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_INTEGER;
}

bool Statement::is_real(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_FLOAT;
}

std::string Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return text ? std::string(text, text + size) : std::string();
}

std::string Statement::bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes ? std::string(bytes, bytes + size) : std::string();
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::optional<double> Statement::optional_real(int column) const {
  if (is_null(column)) return std::nullopt;
  return real(column);
}

void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Database::Database(const std::filesystem::path& path, Mode mode) {
  int flags = SQLITE_OPEN_READONLY;
  if (mode == Mode::kWrite) flags = SQLITE_OPEN_READWRITE;
  if (mode == Mode::kCreate) flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  handle_.reset(database);
  if (code != SQLITE_OK) {
    const int error = database != nullptr ? sqlite3_system_errno(database) : 0;
    throw StoreError(fault_of(code, error), path.string() + ": " + sqlite3_errstr(code), code);
  }
  sqlite3_busy_handler(database, wait_for_lock, nullptr);
}

void Database::refuse(StoreFault fault, const std::string& what) const {
  throw StoreError(fault, std::string(sqlite3_db_filename(handle_.get(), "main")) + ": " + what);
}

void Database::execute(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    fail(handle_.get());
  }
}

std::int64_t Database::integer(std::string_view sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Database::text(std::string_view sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? statement.text(0) : std::string();
}

std::int64_t Database::last_row() const { return sqlite3_last_insert_rowid(handle_.get()); }

bool Database::in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }

Transaction::Transaction(Database& database) : database_(database) {
  database_.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  // SQLite rolls back by itself on some errors, such as a full disk.
  if (!open_ || !database_.in_transaction()) return;
  try {
    database_.execute("ROLLBACK");
  } catch (const StoreError&) {
    // The connection's end rolls back too, and the error that led here is the one to report.
  }
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

}  // namespace orrery
