// SPDX-License-Identifier: Apache-2.0
#include "sim/store/store_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sqlite3.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "sim/store/schema.h"
#include "sim/store/views.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic("SQLite format 3\0", 16);

enum class Content { kNothing, kStore };

Content check_content(const Database& database, const fs::path& path) {
  // The statement stays open to the end, so that everything is read from one snapshot: another
  // process may create the store between two reads.
  Statement snapshot = database.prepare("PRAGMA application_id");
  const std::int64_t application = snapshot.step() ? snapshot.integer(0) : 0;
  const std::int64_t version = database.integer("PRAGMA user_version");
  if (application != kStoreApplicationId) {
    const bool blank = application == 0 && version == 0 &&
                       database.integer("SELECT count(*) FROM sqlite_schema") == 0;
    if (blank) return Content::kNothing;
    throw StoreError(StoreFault::kForeign, path.string() +
                                               " is a SQLite database, but not a result store; "
                                               "choose another file");
  }
  if (version != kStoreVersion) {
    const bool newer = version > kStoreVersion;
    throw StoreError(
        StoreFault::kVersion,
        fmt::format("{} was written by {} version (store version {}, this one knows {}); use that "
                    "version to open it{}",
                    path.string(), newer ? "a newer" : "an older", version, kStoreVersion,
                    newer ? "" : ", or choose another file and simulate its points again"));
  }
  return Content::kStore;
}

void create_tables(Database& database) {
  database.execute(kStoreSchema);
  database.execute(("PRAGMA user_version = " + std::to_string(kStoreVersion)).c_str());
  database.execute(("PRAGMA application_id = " + std::to_string(kStoreApplicationId)).c_str());
}

/// WAL needs memory shared between all processes that have the file open, which file systems of
/// several hosts cannot give (SQLite, "Write-Ahead Logging", 1.5); a probe from one host cannot see
/// that. Magic numbers: statfs(2) and the file systems' own sources.
bool may_span_hosts(const fs::path& path) {
  static constexpr std::array<std::uint32_t, 11> kShared = {
      0x00006969,  // NFS
      0x0000517B,  // SMB
      0xFF534D42,  // CIFS
      0xFE534D42,  // SMB2
      0x0BD00BD0,  // Lustre
      0x47504653,  // GPFS
      0x19830326,  // BeeGFS
      0x00C36400,  // Ceph
      0x5346414F,  // AFS
      0x01021997,  // 9P
      0x65735546,  // FUSE, which may be any of them
  };
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return true;
  const auto type = static_cast<std::uint32_t>(info.f_type);
  return std::find(kShared.begin(), kShared.end(), type) != kShared.end();
}

/// Some file systems accept WAL and fail at the first write, so the answer to the PRAGMA is not
/// enough: a transaction that rewrites the header is tried.
void choose_journal(Database& database, const fs::path& path) {
  if (may_span_hosts(path)) return;  // the journal of a rollback is SQLite's default
  try {
    if (database.text("PRAGMA journal_mode = WAL") != "wal") return;
    Transaction probe(database);
    const std::string version = std::to_string(database.integer("PRAGMA user_version"));
    database.execute(("PRAGMA user_version = " + version).c_str());
    probe.commit();
  } catch (const StoreError& error) {
    // Busy: another process writes; the mode stays as that one chose it.
    if (error.fault() == StoreFault::kBusy) return;
    const bool refused = (error.sqlite_code() & 0xff) == SQLITE_IOERR;
    if (error.fault() != StoreFault::kUnreachable && !refused) throw;
    database.execute("PRAGMA journal_mode = DELETE");
  }
}

void limit_size(Database& database, std::uint64_t max_bytes) {
  if (max_bytes == 0) return;
  const auto page = static_cast<std::uint64_t>(database.integer("PRAGMA page_size"));
  const std::string pages = std::to_string(std::max<std::uint64_t>(1, max_bytes / page));
  database.execute(("PRAGMA max_page_count = " + pages).c_str());
}

std::uint64_t big_endian(const unsigned char* bytes, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) value = value << 8U | bytes[i];
  return value;
}

/// Reads the first bytes of a file as SQLite does. To close a file takes all locks of this process
/// from it (fcntl(2)), those of its connections too, and another process then removes the log that
/// they write to; SQLite alone knows to wait with that.
bool read_head(const fs::path& path, void* bytes, std::size_t size) {
  sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
  std::string name(static_cast<std::size_t>(vfs->mxPathname) + 4, '\0');
  if (vfs->xFullPathname(vfs, path.c_str(), vfs->mxPathname, name.data()) != SQLITE_OK)
    return false;
  std::vector<std::max_align_t> room(
      static_cast<std::size_t>(vfs->szOsFile) / sizeof(std::max_align_t) + 1);
  auto* file = reinterpret_cast<sqlite3_file*>(room.data());
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
  const bool opened = vfs->xOpen(vfs, name.c_str(), file, flags, nullptr) == SQLITE_OK;
  const bool read =
      opened && file->pMethods->xRead(file, bytes, static_cast<int>(size), 0) == SQLITE_OK;
  if (file->pMethods != nullptr) file->pMethods->xClose(file);
  return read;
}

/// Bytes that the header of a database says that it has; 0: it does not say (SQLite, "Database File
/// Format", 1.3: the page count holds where the two change counters agree).
std::uint64_t stated_bytes(const fs::path& path) {
  std::array<unsigned char, 100> header{};
  if (!read_head(path, header.data(), header.size())) return 0;
  if (kMagic != std::string_view(reinterpret_cast<char*>(header.data()), kMagic.size())) return 0;
  if (big_endian(&header[24], 4) != big_endian(&header[92], 4)) return 0;
  const std::uint64_t page = big_endian(&header[16], 2);
  return (page == 1 ? 65536 : page) * big_endian(&header[28], 4);
}

bool has_content(const fs::path& path) {
  std::error_code ignored;
  const std::uintmax_t size = fs::file_size(path, ignored);
  return !ignored && size > 0;
}

/// Whether the end of a database is lost. SQLite itself notices whole pages only, and after a
/// commit that grows the file nobody could. While there is a journal, the file may be in the middle
/// of a commit that another process goes on with, or that SQLite takes back.
bool is_cut_off(const fs::path& path) {
  std::error_code ignored;
  const std::uint64_t stated = stated_bytes(path);
  return fs::file_size(path, ignored) < stated && !ignored &&
         !has_content(path.string() + "-wal") && !has_content(path.string() + "-journal");
}

/// @throws StoreError where the file is none or has lost its end
void require_whole(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw StoreError(StoreFault::kUnreachable, path.string() + " is a directory, not a file");
  // Twice, because a commit may have ended between the looks of one.
  if (!is_cut_off(path) || !is_cut_off(path)) return;
  throw StoreError(
      StoreFault::kCorrupt,
      fmt::format("{}: the file has lost its end: it has {} of {} bytes; it was left as it is: "
                  "restore a copy, or choose another file",
                  path.string(), fs::file_size(path, ignored), stated_bytes(path)));
}

Content checked_content(const Database& database, const fs::path& path) {
  try {
    return check_content(database, path);
  } catch (const StoreError& error) {
    if (error.sqlite_code() == 0 || error.fault() != StoreFault::kForeign) throw;
    throw StoreError(StoreFault::kForeign,
                     path.string() + " is not a SQLite database; choose another file",
                     error.sqlite_code());
  }
}

/// Too few file handles are found before a store is made, not by what is left of one: SQLite opens
/// the file, its log and the memory shared of it.
void require_handles(const fs::path& path) {
  constexpr int kHandles = 3;
  std::vector<int> taken;
  while (taken.size() < kHandles) {
    const int handle = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (handle < 0) break;
    taken.push_back(handle);
  }
  const std::string reason = std::strerror(errno);
  for (const int handle : taken) ::close(handle);
  if (taken.size() < kHandles)
    throw StoreError(StoreFault::kOther, path.string() + ": cannot be made: " + reason);
}

}  // namespace

bool is_sqlite_file(const fs::path& path) {
  std::string head(kMagic.size(), '\0');
  return read_head(path, head.data(), head.size()) && head == kMagic;
}

std::unique_ptr<Database> open_store_to_read(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return nullptr;
  require_whole(path);
  auto database = std::make_unique<Database>(path, Database::Mode::kRead);
  try {
    if (checked_content(*database, path) == Content::kNothing) return nullptr;
  } catch (const StoreError& error) {
    if ((error.sqlite_code() & 0xff) != SQLITE_READONLY) throw;
    // Read-only although nothing was written: a writer was killed and left a journal, which only a
    // writer may play back. The first read of a writable connection does it.
    Database(path, Database::Mode::kWrite).integer("PRAGMA user_version");
    database = std::make_unique<Database>(path, Database::Mode::kRead);
    if (checked_content(*database, path) == Content::kNothing) return nullptr;
  }
  return database;
}

std::unique_ptr<Database> open_store_to_write(const fs::path& path, std::uint64_t max_bytes) {
  require_whole(path);
  if (!has_content(path)) require_handles(path);
  auto database = std::make_unique<Database>(path, Database::Mode::kCreate);
  checked_content(*database, path);  // before anything that changes the file
  limit_size(*database, max_bytes);
  choose_journal(*database, path);
  // With WAL a commit is safe from the end of the process without waiting for the disk; only a loss
  // of power may take the last ones, and never half of one. With a rollback journal FULL is needed.
  const bool wal = database->text("PRAGMA journal_mode") == "wal";
  database->execute(wal ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL");
  database->execute("PRAGMA foreign_keys = ON");
  Transaction creation(*database);
  // Again, under the lock: another process may have created the tables meanwhile.
  if (checked_content(*database, path) == Content::kNothing) create_tables(*database);
  update_views(*database);
  creation.commit();
  return database;
}

void settle_store(Database& database) noexcept {
  try {
    database.execute("PRAGMA busy_timeout = 0");
    database.execute("PRAGMA journal_mode = DELETE");
  } catch (const StoreError&) {
    // Others still use the file: the last one settles it.
  }
}

}  // namespace orrery
