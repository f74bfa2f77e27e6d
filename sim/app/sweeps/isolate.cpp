// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/isolate.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace orrery {
namespace {

void write_all(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // the parent is gone: nobody is left to tell
    done += static_cast<std::size_t>(count);
  }
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// Never returns: the child must not run the parent's exit handlers.
[[noreturn]] void run_child(int file, const std::function<std::string()>& work) {
  int code = 0;
  std::string text;
  try {
    text = work();
  } catch (...) {
    const Failure failure = classify(std::current_exception());
    code = static_cast<int>(failure.code);
    text = failure.message;
  }
  write_all(file, text);
  ::close(file);
  std::fflush(nullptr);
  ::_exit(code);
}

Failure failure_of(int status, std::string text) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const ExitCode code = signal == SIGKILL ? ExitCode::kResource : ExitCode::kBug;
    return {code, std::string("the simulation was ended by ") + strsignal(signal)};
  }
  return {static_cast<ExitCode>(WEXITSTATUS(status)), std::move(text)};
}

}  // namespace

std::variant<std::string, Failure> run_isolated(const std::function<std::string()>& work) {
  std::array<int, 2> pipe_ends{};
  if (::pipe(pipe_ends.data()) != 0)
    throw ResourceError("cannot open a pipe: " + std::string(strerror(errno)));
  std::fflush(nullptr);  // or the child prints what is still buffered a second time
  const pid_t child = ::fork();
  if (child < 0) throw ResourceError("cannot start a process: " + std::string(strerror(errno)));
  if (child == 0) {
    ::close(pipe_ends[0]);
    run_child(pipe_ends[1], work);
  }
  ::close(pipe_ends[1]);
  std::string text = read_all(pipe_ends[0]);
  ::close(pipe_ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  return failure_of(status, std::move(text));
}

}  // namespace orrery
