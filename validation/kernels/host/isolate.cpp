// SPDX-License-Identifier: Apache-2.0
#include "host/isolate.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <system_error>
#include <thread>

namespace orrery::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kThrewCode = 1;

[[noreturn]] void run_child(const std::function<std::string()>& work, int pipe_end) {
  std::string text;
  int code = 0;
  try {
    text = work();
  } catch (const std::exception& error) {
    text = error.what();
    code = kThrewCode;
  }
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t written = write(pipe_end, text.data() + sent, text.size() - sent);
    if (written <= 0 && errno != EINTR) break;
    sent += static_cast<std::size_t>(std::max<ssize_t>(written, 0));
  }
  // No destructors: what the parent had in memory at the fork is the parent's to tear down.
  _exit(code);
}

/// Reads until the child closes its end. @returns false when the time is up first.
bool read_all(int pipe_end, Clock::time_point deadline, std::string& text) {
  std::array<char, 4096> chunk{};
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{pipe_end, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min<long long>(left.count(), 60000)));
    if (ready <= 0) continue;
    const ssize_t size = read(pipe_end, chunk.data(), chunk.size());
    if (size == 0) return true;
    if (size > 0) text.append(chunk.data(), static_cast<std::size_t>(size));
  }
}

/// Waits for the child's end. A process stuck in the driver outlives even SIGKILL: after `patience`
/// it is left alone. @returns its wait status, or -1.
int reap(pid_t child, std::chrono::seconds patience) {
  const auto deadline = Clock::now() + patience;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() >= deadline) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status;
}

}  // namespace

Ending isolate(const std::function<std::string()>& work, double limit_s) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const auto limit = std::chrono::duration<double>(limit_s);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    close(ends[0]);
    run_child(work, ends[1]);
  }
  close(ends[1]);
  Ending ending;
  const bool in_time = read_all(ends[0], deadline, ending.text);
  close(ends[0]);
  if (!in_time) kill(child, SIGKILL);
  const int status = reap(child, std::chrono::seconds(20));
  if (!in_time) {
    return {Ending::Kind::kTimedOut, "killed after " + std::to_string(static_cast<int>(limit_s)) +
                                         " s: it did not end by itself"};
  }
  if (status >= 0 && WIFEXITED(status)) {
    const int code = WEXITSTATUS(status);
    if (code == kThrewCode) ending.kind = Ending::Kind::kThrew;
    if (code == 0 || code == kThrewCode) return ending;
    return {Ending::Kind::kCrashed, "ended with exit code " + std::to_string(code)};
  }
  const int signal = status >= 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return {Ending::Kind::kCrashed, "ended by signal " + std::to_string(signal)};
}

}  // namespace orrery::measure
