// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/workers/worker_stderr.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "sim/units/printable.h"

namespace orrery {
namespace {

constexpr off_t kTail = 4096;

bool redirected = false;  ///< whether standard error of this process is such a file

/// Plain ASCII: half a character of another encoding is no text that a store or JSON would take.
std::string plain(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  return printable(text, "\n\t");
}

/// The end of a file as plain text.
std::string tail_of(int file) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  if (size <= 0) return {};
  const off_t begin = std::max<off_t>(0, size - kTail);
  std::string text(static_cast<std::size_t>(size - begin), '\0');
  const ssize_t count = ::pread(file, text.data(), text.size(), begin);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  return plain(std::move(text));
}

}  // namespace

WorkerStderr::WorkerStderr() : file_(::memfd_create("stderr of a worker", MFD_CLOEXEC)) {}

WorkerStderr::~WorkerStderr() {
  if (file_ >= 0) ::close(file_);
}

void WorkerStderr::redirect() const {
  redirected = file_ >= 0 && ::dup2(file_, STDERR_FILENO) >= 0;
}

void WorkerStderr::begin_point() {
  if (!redirected || ::lseek(STDERR_FILENO, 0, SEEK_CUR) <= 0) return;
  if (::ftruncate(STDERR_FILENO, 0) == 0) ::lseek(STDERR_FILENO, 0, SEEK_SET);
}

std::string WorkerStderr::said_of_point() {
  std::fflush(stderr);
  return redirected ? tail_of(STDERR_FILENO) : std::string();
}

std::string WorkerStderr::take() const {
  if (file_ < 0) return {};
  std::string text = tail_of(file_);
  if (::ftruncate(file_, 0) == 0) ::lseek(file_, 0, SEEK_SET);
  std::fputs(text.c_str(), stderr);
  return text;
}

}  // namespace orrery
