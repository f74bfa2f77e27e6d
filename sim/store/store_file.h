// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "sim/store/sqlite.h"

namespace orrery {

/// Opens a file that must be a result store of a version we know, without changing it.
/// Null where no store has been made yet: no file, an empty one, or a creation that was killed.
/// @throws StoreError when it is something else; the message says what to do.
std::unique_ptr<Database> open_store_to_read(const std::filesystem::path& path);

/// Whether a file begins as SQLite's do.
bool is_sqlite_file(const std::filesystem::path& path);

/// Opens for writing; creates the file and its tables.
/// @param max_bytes limit of the file's size; 0: none
/// @throws StoreError as above; a file that is not ours is left as it is.
std::unique_ptr<Database> open_store_to_write(const std::filesystem::path& path,
                                              std::uint64_t max_bytes);

/// Leaves the file as one piece (no -wal beside it), so that it can be copied and read from
/// anywhere. Does nothing while others have it open.
void settle_store(Database& database) noexcept;

}  // namespace orrery
