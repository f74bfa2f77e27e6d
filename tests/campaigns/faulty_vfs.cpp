// SPDX-License-Identifier: Apache-2.0
#include "tests/campaigns/faulty_vfs.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

namespace orrery {
namespace {

sqlite3_vfs* real = nullptr;  ///< SQLite's own
sqlite3_vfs faulty;
WriteFault fault;
long fault_at = 0;
std::atomic<long>* writes = nullptr;

/// A file of ours; that of SQLite's own follows it in memory.
struct File {
  sqlite3_file base;
  sqlite3_file* inner() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

sqlite3_file* inner(sqlite3_file* file) { return reinterpret_cast<File*>(file)->inner(); }

/// Counts a write. @return whether it goes wrong
bool goes_wrong() {
  const long number = ++*writes;
  if (number == fault_at && (fault == WriteFault::kDie || fault == WriteFault::kTear)) {
    if (fault == WriteFault::kDie) ::_exit(kDied);
    return true;
  }
  if (fault == WriteFault::kErrorOnce) return number == fault_at;
  return number >= fault_at && fault != WriteFault::kDie && fault != WriteFault::kTear;
}

/// The result of a write that goes wrong, or what the write itself gives.
template <class Write>
int unless_wrong(int error, const Write& write) {
  if (!goes_wrong()) return write();
  if (fault == WriteFault::kTear) ::_exit(kDied);
  return fault == WriteFault::kFull ? SQLITE_FULL : error;
}

int write_half(sqlite3_file* file, const void* data, int size, sqlite3_int64 at) {
  if (!goes_wrong()) return inner(file)->pMethods->xWrite(inner(file), data, size, at);
  if (fault == WriteFault::kTear) {
    inner(file)->pMethods->xWrite(inner(file), data, size / 2, at);
    ::_exit(kDied);
  }
  return fault == WriteFault::kFull ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

sqlite3_io_methods methods_of_files() {
  sqlite3_io_methods m{};
  m.iVersion = 2;  // no memory maps: then all writes come through here
  m.xClose = [](sqlite3_file* f) { return inner(f)->pMethods->xClose(inner(f)); };
  m.xRead = [](sqlite3_file* f, void* to, int size, sqlite3_int64 at) {
    return inner(f)->pMethods->xRead(inner(f), to, size, at);
  };
  m.xWrite = write_half;
  m.xTruncate = [](sqlite3_file* f, sqlite3_int64 size) {
    if (fault == WriteFault::kFull) return inner(f)->pMethods->xTruncate(inner(f), size);
    return unless_wrong(SQLITE_IOERR_TRUNCATE,
                        [&] { return inner(f)->pMethods->xTruncate(inner(f), size); });
  };
  m.xSync = [](sqlite3_file* f, int flags) {
    if (fault == WriteFault::kFull) return inner(f)->pMethods->xSync(inner(f), flags);
    return unless_wrong(SQLITE_IOERR_FSYNC,
                        [&] { return inner(f)->pMethods->xSync(inner(f), flags); });
  };
  m.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) {
    return inner(f)->pMethods->xFileSize(inner(f), size);
  };
  m.xLock = [](sqlite3_file* f, int level) { return inner(f)->pMethods->xLock(inner(f), level); };
  m.xUnlock = [](sqlite3_file* f, int to) { return inner(f)->pMethods->xUnlock(inner(f), to); };
  m.xCheckReservedLock = [](sqlite3_file* f, int* out) {
    return inner(f)->pMethods->xCheckReservedLock(inner(f), out);
  };
  m.xFileControl = [](sqlite3_file* f, int what, void* with) {
    return inner(f)->pMethods->xFileControl(inner(f), what, with);
  };
  m.xSectorSize = [](sqlite3_file* f) { return inner(f)->pMethods->xSectorSize(inner(f)); };
  m.xDeviceCharacteristics = [](sqlite3_file* f) {
    return inner(f)->pMethods->xDeviceCharacteristics(inner(f));
  };
  m.xShmMap = [](sqlite3_file* f, int page, int size, int extend, void volatile** at) {
    const auto map = [&] { return inner(f)->pMethods->xShmMap(inner(f), page, size, extend, at); };
    return extend != 0 ? unless_wrong(SQLITE_IOERR_SHMSIZE, map) : map();
  };
  m.xShmLock = [](sqlite3_file* f, int from, int count, int flags) {
    return inner(f)->pMethods->xShmLock(inner(f), from, count, flags);
  };
  m.xShmBarrier = [](sqlite3_file* f) { inner(f)->pMethods->xShmBarrier(inner(f)); };
  m.xShmUnmap = [](sqlite3_file* f, int remove) {
    return inner(f)->pMethods->xShmUnmap(inner(f), remove);
  };
  return m;
}

int open_file(sqlite3_vfs* /*vfs*/, const char* name, sqlite3_file* file, int flags, int* out) {
  static const sqlite3_io_methods methods = methods_of_files();
  const bool creates =
      name != nullptr && (flags & SQLITE_OPEN_CREATE) != 0 && ::access(name, F_OK) != 0;
  const auto open = [&] { return real->xOpen(real, name, inner(file), flags, out); };
  file->pMethods = nullptr;
  int code = creates ? unless_wrong(SQLITE_CANTOPEN, open) : open();
  if (code == SQLITE_FULL) code = SQLITE_CANTOPEN;  // as SQLite's own says it
  if (inner(file)->pMethods != nullptr && code == SQLITE_OK) file->pMethods = &methods;
  return code;
}

int last_error(sqlite3_vfs* /*vfs*/, int size, char* text) {
  if (fault == WriteFault::kFull && *writes >= fault_at) return ENOSPC;
  if (fault != WriteFault::kFull && *writes >= fault_at) return EIO;
  return real->xGetLastError(real, size, text);
}

}  // namespace

void break_write(WriteFault of, long at, std::atomic<long>& count) {
  fault = of;
  fault_at = at;
  writes = &count;
  count = 0;
  real = sqlite3_vfs_find(nullptr);
  faulty = *real;
  faulty.zName = "faulty";
  faulty.szOsFile = static_cast<int>(sizeof(File)) + real->szOsFile;
  faulty.xOpen = open_file;
  faulty.xDelete = [](sqlite3_vfs*, const char* name, int sync) {
    if (fault == WriteFault::kFull) return real->xDelete(real, name, sync);
    return unless_wrong(SQLITE_IOERR_DELETE, [&] { return real->xDelete(real, name, sync); });
  };
  faulty.xGetLastError = last_error;
  if (sqlite3_vfs_register(&faulty, 1) != SQLITE_OK) throw std::runtime_error("no VFS");
}

}  // namespace orrery
