// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/sweeps/executors/child_program.h"
#include "sim/app/sweeps/executors/execution.h"
#include "sim/app/sweeps/executors/task_executor.h"

namespace orrery {
namespace {

/// What a launcher has in braces, and what stands there in the place of it.
using Blanks = std::map<std::string, std::string>;

std::string filled(const std::string& text, const Blanks& blanks) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text[at] == '{' ? text.find('}', at) : std::string::npos;
    const auto blank =
        end == std::string::npos ? blanks.end() : blanks.find(text.substr(at + 1, end - at - 1));
    if (blank == blanks.end()) {
      result += text[at++];
    } else {
      result += blank->second;
      at = end + 1;
    }
  }
  return result;
}

struct CommandExecution final : ExecutionConfig {
  std::string launcher;
  int at_once = 1;

  CommandExecution() { ask_every = Seconds(1); }  // it costs nothing
  std::unique_ptr<TaskExecutor> make() const override;
  static const config::Schema<CommandExecution>& schema();
};

bool says_where(const CommandExecution& config) {
  const auto has = [&config](const char* blank) {
    return config.launcher.find(blank) != std::string::npos;
  };
  return has("{work}") || has("{quoted_work}") || (has("{places}") && has("{shard}"));
}

const config::Schema<CommandExecution>& CommandExecution::schema() {
  using C = CommandExecution;
  static const auto schema =
      execution_schema<C>("command", "any command that runs a task and ends with it")
          .required("launcher", &C::launcher,
                    "shell command of a task, with {work} where that of the work stands: 'srun -n1 "
                    "{work}', 'ssh node{slot} {quoted_work}'; or with {sweep}, {places}, {shard}")
          .optional("at_once", &C::at_once, "tasks that run at a time", config::between(1, 4096))
          .check("a launcher has {work}, {quoted_work}, or {places} and {shard}", says_where,
                 "launcher");
  return schema;
}

/// Processes of a shell, each in a session of its own, so that they outlive this one. Each holds
/// the lock of a file as long as it or what it started lives, whoever asks.
class CommandExecutor final : public TaskExecutor {
 public:
  explicit CommandExecutor(CommandExecution config) : config_(std::move(config)) {}

  std::size_t most_tasks() const override { return static_cast<std::size_t>(config_.at_once); }
  bool has_queue() const override { return false; }
  void start(const TaskFolder& folder, const TaskWork& work) override;
  std::optional<TaskStates> ask(const std::vector<const TaskFolder*>& folders) override;
  void end(const TaskFolder& folder, std::size_t task) override;
  std::string how_to_end(const TaskFolder& folder) const override {
    return "pkill -f " + folder.name() + " (on this machine)";
  }

 private:
  struct Process {
    pid_t id = 0;
    int slot = 0;
  };

  static std::string lock_of(const TaskFolder& folder, std::size_t task) {
    return (folder.path() / (std::to_string(task) + ".lock")).string();
  }
  /// Opens and locks the file of a task. @return -1: a process holds it
  static int locked(const TaskFolder& folder, std::size_t task);
  void start_one(const TaskFolder& folder, std::size_t task, const TaskWork& work);
  int free_slot() const;
  void reap();

  CommandExecution config_;
  std::map<std::pair<std::string, std::size_t>, Process> processes_;  ///< those of this process
};

int CommandExecutor::locked(const TaskFolder& folder, std::size_t task) {
  const int file = ::open(lock_of(folder, task).c_str(), O_RDWR | O_CREAT, 0644);
  if (file < 0) throw_errno(lock_of(folder, task));
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  ::close(file);
  return -1;
}

int CommandExecutor::free_slot() const {
  std::set<int> taken;
  for (const auto& [task, process] : processes_) taken.insert(process.slot);
  int slot = 1;
  while (taken.count(slot) > 0) ++slot;
  return slot;
}

void CommandExecutor::start(const TaskFolder& folder, const TaskWork& work) {
  for (std::size_t task = 0; task < folder.tasks().size(); ++task) start_one(folder, task, work);
}

void CommandExecutor::start_one(const TaskFolder& folder, std::size_t task, const TaskWork& work) {
  const int lock = locked(folder, task);
  if (lock < 0) throw std::logic_error("a new task runs already: " + lock_of(folder, task));
  const std::string places = to_text(folder.tasks()[task]);
  const std::string shard = folder.shard(task).string();
  const std::string words = shell_words(work.words(places, shard));
  const int slot = free_slot();
  const std::string command =
      filled(config_.launcher,
             {{"work", words},
              {"quoted_work", shell_words({words})},
              {"places", places},
              {"shard", shell_words({shard})},
              {"sweep", shell_words({(std::filesystem::path(work.from) / work.sweep).string()})},
              {"slot", std::to_string(slot)}});
  const std::string log = folder.log(task).string();
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();  // a Ctrl-C is not for it
    const int nothing = ::open("/dev/null", O_RDONLY);
    const int said = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(said, STDOUT_FILENO);
    ::dup2(said, STDERR_FILENO);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(lock);  // the child has it
  if (child < 0) throw_errno("cannot start a process");
  processes_[{folder.name(), task}] = {child, slot};
}

void CommandExecutor::reap() {
  for (auto process = processes_.begin(); process != processes_.end();) {
    const bool over = ::waitpid(process->second.id, nullptr, WNOHANG) != 0;
    process = over ? processes_.erase(process) : std::next(process);
  }
}

std::optional<TaskStates> CommandExecutor::ask(const std::vector<const TaskFolder*>& folders) {
  reap();
  TaskStates states;
  for (const TaskFolder* folder : folders) {
    for (std::size_t task = 0; task < folder->tasks().size(); ++task) {
      if (folder->is_merged(task)) continue;
      const int lock = locked(*folder, task);
      if (lock < 0) {
        states[{folder->name(), task}] = TaskState::kRuns;
      } else {
        ::close(lock);
      }
    }
  }
  return states;
}

void CommandExecutor::end(const TaskFolder& folder, std::size_t task) {
  const auto process = processes_.find({folder.name(), task});
  if (process != processes_.end()) ::kill(-process->second.id, SIGKILL);
}

std::unique_ptr<TaskExecutor> CommandExecution::make() const {
  return std::make_unique<CommandExecutor>(*this);
}

const config::Registered<ExecutionConfig>::Add<CommandExecution> added_command(
    "command", "a command of your own for each task: ssh, srun, any queue", "launcher");

}  // namespace

}  // namespace orrery
