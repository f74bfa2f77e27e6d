// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/workers/task_guards.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iterator>

#include "sim/app/experiments/core/exit_codes.h"

namespace orrery {
namespace {

volatile std::sig_atomic_t signal_came = 0;

}  // namespace

LeavesOnSignals::LeavesOnSignals() {
  signal_came = 0;
  struct sigaction note {};
  note.sa_handler = [](int) { signal_came = 1; };
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &note, &before_[i]);
}

LeavesOnSignals::~LeavesOnSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  signal_came = 0;
}

bool LeavesOnSignals::leaves() { return signal_came != 0; }

AwaitsAlone::AwaitsAlone(const std::filesystem::path& folder) : folder_(folder) {
  for (struct stat found{}; file_ < 0 || found.st_nlink == 0;) {  // 0: who had it removed it
    if (file_ >= 0) ::close(file_);
    std::filesystem::create_directories(folder);
    file_ = ::open(lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0) throw_errno(lock().string());
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      ::close(file_);
      throw ResourceError("another process awaits the tasks of " + folder.string() +
                          "; wait for it, or end it");
    }
    if (::fstat(file_, &found) != 0) throw_errno(lock().string());
  }
}

AwaitsAlone::~AwaitsAlone() {
  std::error_code none;
  const std::filesystem::directory_iterator entries(folder_, none);
  if (!none && std::distance(begin(entries), end(entries)) == 1) {  // the lock
    ::unlink(lock().c_str());
    ::rmdir(folder_.c_str());
  }
  ::close(file_);
}

}  // namespace orrery
