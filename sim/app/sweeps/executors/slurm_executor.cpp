// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/sweeps/executors/child_program.h"
#include "sim/app/sweeps/executors/execution.h"
#include "sim/app/sweeps/executors/task_executor.h"

namespace orrery {
namespace {

/// A controller that is busy answers late; one that is gone does not.
constexpr std::chrono::seconds kSlurmAnswers{60};

/// Keys have the names of sbatch's options.
struct SlurmExecution final : ExecutionConfig {
  std::string partition, account, qos;
  Seconds time;               ///< 0: as the partition has it
  Bytes memory;               ///< memory of a task; 0: as the cluster has it
  int array_parallelism = 0;  ///< tasks that run at a time; 0: as many as can
  int most_tasks = 1000;
  std::vector<std::string> sbatch, setup;

  std::unique_ptr<TaskExecutor> make() const override;
  static const config::Schema<SlurmExecution>& schema();
};

const config::Schema<SlurmExecution>& SlurmExecution::schema() {
  using S = SlurmExecution;
  static const auto schema =
      execution_schema<S>("slurm", "array jobs of a Slurm cluster")
          .optional("partition", &S::partition, "partition of the cluster")
          .optional("account", &S::account, "account that pays")
          .optional("qos", &S::qos, "quality of service")
          .optional("time", &S::time, "limit of a task's time; without it that of the partition",
                    config::positive())
          .optional("memory", &S::memory, "memory of a task; without it the default of the cluster",
                    config::positive())
          .optional("array_parallelism", &S::array_parallelism,
                    "tasks of an array that run at a time; without it as many as can",
                    config::between(1, 1e6))
          .optional("most_tasks", &S::most_tasks, "tasks that wait or run at a time",
                    config::between(1, 1e6))
          .optional("sbatch", &S::sbatch, "further arguments of sbatch: [--constraint=avx512]")
          .optional("setup", &S::setup, "lines of shell before a task: [module load gcc]");
  return schema;
}

constexpr std::string_view kJob = "orrery-";

std::string job_of(const TaskFolder& folder) { return std::string(kJob) + folder.name(); }

/// Array jobs, by sbatch, squeue and scancel. A job is told by the name of its folder: its number
/// may be given again by a controller that was killed.
class SlurmExecutor final : public TaskExecutor {
 public:
  explicit SlurmExecutor(SlurmExecution config) : config_(std::move(config)) {}

  std::size_t most_tasks() const override { return static_cast<std::size_t>(config_.most_tasks); }
  std::size_t most_in_folder() const override;
  bool has_queue() const override { return true; }
  void start(const TaskFolder& folder, const TaskWork& work) override;
  std::optional<TaskStates> ask(const std::vector<const TaskFolder*>& folders) override;
  void end(const TaskFolder& folder, std::size_t task) override;
  std::string how_to_end(const TaskFolder& folder) const override {
    return "scancel --name=" + job_of(folder);
  }

 private:
  std::vector<std::string> sbatch_words(const TaskFolder& folder) const;

  SlurmExecution config_;
  std::map<std::pair<std::string, std::size_t>, std::string> ids_;  ///< "1234_7", as last heard
};

/// As sbatch replaces what follows a percent sign.
std::string doubled(const std::string& text, char letter) {
  std::string all;
  for (const char each : text) all.append(each == letter ? 2 : 1, each);
  return all;
}

/// MaxArraySize of the cluster: 1001, where an administrator has not changed it (slurm.conf(5)).
std::size_t SlurmExecutor::most_in_folder() const {
  const ProgramEnd end = run_program({"scontrol", "show", "config"}, kSlurmAnswers);
  std::istringstream lines(end.out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("MaxArraySize")) continue;
    std::size_t size = 0;
    if (std::istringstream(line.substr(line.find('=') + 1)) >> size && size > 0) return size;
  }
  return 1001;
}

std::vector<std::string> SlurmExecutor::sbatch_words(const TaskFolder& folder) const {
  std::string array = "--array=0-" + std::to_string(folder.tasks().size() - 1);
  if (config_.array_parallelism > 0) array += "%" + std::to_string(config_.array_parallelism);
  std::vector<std::string> words = {"sbatch",
                                    "--parsable",
                                    "--job-name=" + job_of(folder),
                                    std::move(array),
                                    "--output=" + doubled(folder.path().string(), '%') + "/%a.log",
                                    "--open-mode=append",
                                    "--requeue",  // a task goes on where it was
                                    "--ntasks=1",
                                    "--cpus-per-task=" + std::to_string(config_.cpus)};
  const auto add = [&words](const std::string& option, const std::string& value) {
    if (!value.empty()) words.push_back("--" + option + "=" + value);
  };
  const auto whole = [](double number) {
    return number > 0 ? std::to_string(static_cast<std::int64_t>(std::ceil(number))) : "";
  };
  add("partition", config_.partition);
  add("account", config_.account);
  add("qos", config_.qos);
  add("time", whole(config_.time.base() / 60));  // minutes
  const std::string mebibytes = whole(config_.memory.base() / (1024 * 1024));
  add("mem", mebibytes.empty() ? "" : mebibytes + "M");
  words.insert(words.end(), config_.sbatch.begin(), config_.sbatch.end());
  words.push_back((folder.path() / "job.sh").string());
  return words;
}

void SlurmExecutor::start(const TaskFolder& folder, const TaskWork& work) {
  std::ofstream script(folder.path() / "job.sh");
  script << "#!/bin/sh\n";
  for (const std::string& line : config_.setup) script << line << "\n";
  const std::vector<std::string> path = {folder.path().string()};
  script << "folder=" << shell_words(path) << "\n"
         << "places=$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" \"$folder/tasks\")\n"
         << "exec";
  std::vector<std::string> words = work.words("PLACES", "SHARD");
  for (const std::string& word : words) {
    if (word == "PLACES") {
      script << " \"$places\"";
    } else if (word == "SHARD") {
      script << " \"$folder/$SLURM_ARRAY_TASK_ID.db\"";
    } else {
      script << " " << shell_words({word});
    }
  }
  script << "\n";
  script.close();
  if (!script) throw ResourceError((folder.path() / "job.sh").string() + " cannot be written");
  const ProgramEnd end = run_program(sbatch_words(folder), kSlurmAnswers);
  if (end.code != 0)
    throw ResourceError("sbatch refused " + std::to_string(folder.tasks().size()) +
                        " tasks: " + (end.err.empty() ? "it said nothing" : end.err));
}

std::optional<TaskStates> SlurmExecutor::ask(const std::vector<const TaskFolder*>& folders) {
  TaskStates states;
  if (folders.empty()) return states;
  std::string names;
  for (const TaskFolder* folder : folders)
    names.append(names.empty() ? "" : ",").append(job_of(*folder));
  const ProgramEnd end =
      run_program({"squeue", "--noheader", "--array", "--name=" + names, "--format=%j %F %K %T"},
                  kSlurmAnswers);
  if (end.code != 0) return std::nullopt;
  std::istringstream lines(end.out);
  std::string name, job, task, state;
  while (lines >> name >> job >> task >> state) {
    std::size_t index = 0;
    if (!name.starts_with(kJob) || !(std::istringstream(task) >> index)) continue;
    name.erase(0, kJob.size());
    const bool waits = state == "PENDING" || state == "REQUEUED" || state == "SUSPENDED" ||
                       state == "CONFIGURING" || state == "REQUEUE_HOLD";
    states[{name, index}] = waits ? TaskState::kWaits : TaskState::kRuns;
    ids_[{name, index}].assign(job).append("_").append(task);
  }
  return states;
}

void SlurmExecutor::end(const TaskFolder& folder, std::size_t task) {
  const auto id = ids_.find({folder.name(), task});
  if (id == ids_.end()) return;
  run_program({"scancel", "--name=" + job_of(folder), id->second}, kSlurmAnswers);
}

std::unique_ptr<TaskExecutor> SlurmExecution::make() const {
  return std::make_unique<SlurmExecutor>(*this);
}

const config::Registered<ExecutionConfig>::Add<SlurmExecution> added_slurm(
    "slurm", "array jobs of a Slurm cluster, by sbatch");

}  // namespace
}  // namespace orrery
