// SPDX-License-Identifier: Apache-2.0
#include "sim/config/input_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "sim/units/sha256.h"

namespace orrery::config {
namespace {

/// Whether a path, and not the machine, is why a file cannot be used.
bool is_about_the_path(int error) {
  const int about[] = {ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, ELOOP, ENAMETOOLONG, ENXIO, EINVAL};
  return std::find(std::begin(about), std::end(about), error) != std::end(about);
}

/// What a path is at fault for. @throws std::system_error where it is not
std::string fault_of(int error, const std::string& path) {
  if (!is_about_the_path(error)) throw std::system_error(error, std::generic_category(), path);
  if (error == ENOENT || error == ENOTDIR) return "no such file";
  if (error == EISDIR) return "is a directory, not a file";
  return std::string("cannot be read: ") + std::strerror(error);
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return file_ >= 0; }
  bool is_pipe() const {
    struct stat status {};
    return ::fstat(file_, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
  }
  /// Bytes of a regular file, as far as it says; 0 for others.
  std::size_t size() const {
    struct stat status {};
    const bool known = ::fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
    return known ? static_cast<std::size_t>(status.st_size) : 0;
  }
  /// Appends up to `most` bytes. False after an error, which errno tells.
  bool append(std::string& text, std::size_t most) const {
    constexpr std::size_t kStep = std::size_t{1} << 16U;
    std::size_t step = std::min(most, size() + 1);
    while (text.size() < most) {
      const std::size_t before = text.size();
      step = std::min(std::max(step, kStep), most - before);
      text.resize(before + step);
      const ssize_t got = ::read(file_, text.data() + before, step);
      text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      if (got == 0) return true;
      if (got < 0 && errno != EINTR) return false;
    }
    return true;
  }

 private:
  int file_;
};

}  // namespace

FileText InputFiles::read(const std::string& path, std::size_t most_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto pipe = pipes_.find(path); pipe != pipes_.end()) return pipe->second;
  const Descriptor file(path);
  if (!file.is_open()) return {{}, {}, fault_of(errno, path)};
  FileText read;
  // One byte more than allowed tells a larger file; the size itself is unknown for pipes.
  if (!file.append(read.text, most_bytes + 1)) return {{}, {}, fault_of(errno, path)};
  if (read.text.size() > most_bytes)
    return {{}, {}, "larger than " + std::to_string(most_bytes / kMebibyte) + " MiB"};
  read.sha256 = sha256_hex(read.text);
  hashes_[path] = read.sha256;
  if (file.is_pipe()) pipes_[path] = read;
  return read;
}

void InputFiles::remember(const std::string& path, const std::string& sha256) {
  const std::lock_guard<std::mutex> lock(mutex_);
  hashes_[path] = sha256;
}

std::string InputFiles::sha256(const std::string& path) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = hashes_.find(path);
  return known == hashes_.end() ? std::string() : known->second;
}

std::map<std::string, std::string> InputFiles::hashes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return hashes_;
}

InputFiles& input_files() {
  static InputFiles files;
  return files;
}

}  // namespace orrery::config
