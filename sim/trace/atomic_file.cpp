// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace orrery {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(), path.string());
}

bool is_plain_or_new(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status) ||
         std::filesystem::is_directory(status);  // which the rename refuses
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)),
      replaced_(is_plain_or_new(path_)),
      // In the same folder, because a rename does not cross file systems.
      temporary_(replaced_ ? path_.string() + "." + std::to_string(::getpid()) : path_.string()) {
  errno = 0;
  stream_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!stream_) fail(path_);
}

AtomicFile::~AtomicFile() {
  if (committed_ || !replaced_) return;
  stream_.close();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void AtomicFile::commit() {
  errno = 0;
  stream_.close();
  if (!stream_) fail(path_);
  if (!replaced_) return;
  const int file = ::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(path_);
  const bool on_disk = ::fsync(file) == 0;
  const int error = errno;
  ::close(file);
  errno = error;
  if (!on_disk) fail(path_);
  std::filesystem::rename(temporary_, path_);
  committed_ = true;
}

}  // namespace orrery
