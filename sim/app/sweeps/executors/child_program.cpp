// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/executors/child_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "sim/app/experiments/core/exit_codes.h"

namespace orrery {
namespace {

using ProgramClock = std::chrono::steady_clock;

/// Both ends of a pipe, closed with it.
struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("cannot open a pipe");
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close(std::size_t end) {
    if (ends.at(end) >= 0) ::close(ends.at(end));
    ends.at(end) = -1;
  }
};

[[noreturn]] void become(const std::vector<std::string>& words, const Pipe& out, const Pipe& err) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::setpgid(0, 0);  // a Ctrl-C is for us
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(out.ends[1], STDOUT_FILENO);
  ::dup2(err.ends[1], STDERR_FILENO);
  ::execvp(arguments[0], arguments.data());
  const std::string why = words[0] + ": " + std::strerror(errno) + "\n";
  static_cast<void>(!::write(STDERR_FILENO, why.data(), why.size()));
  ::_exit(127);
}

/// @return false: there is nothing more to be read
bool read_some(Pipe& from, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(from.ends[0], buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return true;
  if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace

ProgramEnd run_program(const std::vector<std::string>& words, std::chrono::seconds limit) {
  Pipe out, err;
  const pid_t child = ::fork();
  if (child < 0) throw_errno("cannot start a process");
  if (child == 0) become(words, out, err);
  out.close(1);
  err.close(1);
  ProgramEnd end;
  const auto until = ProgramClock::now() + limit;
  bool late = false;
  for (bool more_out = true, more_err = true; more_out || more_err;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - ProgramClock::now());
    if (left.count() <= 0) {
      late = true;
      ::kill(-child, SIGKILL);
      break;
    }
    std::array<pollfd, 2> files{
        {{more_out ? out.ends[0] : -1, POLLIN, 0}, {more_err ? err.ends[0] : -1, POLLIN, 0}}};
    if (::poll(files.data(), files.size(), static_cast<int>(left.count())) <= 0) continue;
    if (files[0].revents != 0) more_out = read_some(out, end.out);
    if (files[1].revents != 0) more_err = read_some(err, end.err);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && !late) end.code = WEXITSTATUS(status);
  if (late)
    end.err += words[0] + " did not answer within " + std::to_string(limit.count()) + " s\n";
  return end;
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += " ";
    const bool plain =
        !word.empty() &&
        word.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%") ==
            std::string::npos;
    if (plain) {
      text += word;
      continue;
    }
    text += "'";
    for (const char letter : word) text += letter == '\'' ? "'\\''" : std::string(1, letter);
    text += "'";
  }
  return text;
}

}  // namespace orrery
