// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace orrery {

/// The program, running at the root of the source tree; what it prints goes to files.
class ProgramRun {
 public:
  ProgramRun(const std::vector<std::string>& words, const std::string& out,
             const std::string& error = "/dev/null")
      : process_(::fork()) {
    if (process_ != 0) return;
    std::vector<char*> arguments = {const_cast<char*>(ORRERY_BINARY)};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const int to = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int errors = ::open(error.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const bool ready = ::chdir(ORRERY_SOURCE_DIR) == 0 && ::dup2(to, STDOUT_FILENO) >= 0 &&
                       ::dup2(errors, STDERR_FILENO) >= 0;
    if (ready) ::execv(ORRERY_BINARY, arguments.data());
    ::_exit(127);
  }
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;
  ~ProgramRun() { kill(); }

  /// @return exit code; -1: a signal ended it
  int wait() {
    if (process_ == 0) return code_;
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = 0;
    return code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// Ends it here and now. @return what wait() does
  int kill() {
    if (process_ != 0) ::kill(process_, SIGKILL);
    return wait();
  }
  bool is_running() {
    siginfo_t info{};
    return process_ != 0 &&
           ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  }
  /// Processes that it has started.
  std::vector<pid_t> children() const {
    const std::string id = std::to_string(process_);
    std::ifstream file("/proc/" + id + "/task/" + id + "/children");
    std::vector<pid_t> all;
    for (pid_t child = 0; file >> child;) all.push_back(child);
    return all;
  }

 private:
  pid_t process_;
  int code_ = -1;
};

inline std::string text_of(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// 500 products of matrices: a fraction of a second.
inline constexpr const char* kManyGemms =
    "sweep: many\ncases:\n  - name: table\n    base: {experiment: operator, system: dgx_h100, "
    "operator: {kind: gemm, m: 64, n: 64, k: 64}}\n"
    "    axes: {grid: {operator.m: {range: {from: 64, to: 640, step: 64}}, operator.n: "
    "{range: {from: 64, to: 640, step: 64}}, operator.k: [64, 128, 256, 512, 1024]}}\n";

}  // namespace orrery
