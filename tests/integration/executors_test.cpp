// SPDX-License-Identifier: Apache-2.0
// Sweeps whose points run elsewhere. The cluster is a few scripts that say what a test has them
// say.
#include <gmock/gmock.h>

#include <sstream>

#include "tests/integration/program.h"

namespace executors_test {
namespace {

using integration::orrery;
using integration::Outcome;
using integration::shell;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// sbatch does what the file `task` says for each task; squeue prints the file `queue`.
class Clusters : public integration::InFolder {
 protected:
  static constexpr const char* kHonest = "SLURM_ARRAY_TASK_ID=$i sh $script > $folder/$i.log 2>&1";

  void SetUp() override {
    InFolder::SetUp();
    write("sweep.yaml",
          "sweep: ladder\ncases:\n  - name: table\n"
          "    base: {experiment: operator, system: dgx_h100, operator: {kind: gemm, m: 64, n: 64, "
          "k: 64}}\n"
          "    axes: {grid: {operator.m: {range: {from: 64, to: 1280, step: 64}}}}\n"
          "execution: {executor: slurm, points_per_task: 10, ask_every: 0.1 s, silent_after: 10 "
          "s}\n");
    std::filesystem::create_directories(folder_ / "bin");
    program("sbatch",
            "for word; do\n"
            "  case $word in\n"
            "    --job-name=*) name=${word#*=} ;;\n"
            "    --array=0-*) last=${word#--array=0-} ;;\n"
            "  esac\n"
            "  script=$word\n"
            "done\n"
            "folder=$(dirname $script)\n"
            "echo \"$@\" >> " +
                path("arguments") +
                "\n"
                "paste -sd' ' $folder/tasks >> " +
                path("given") +
                "\n"
                "for i in $(seq 0 ${last%%%*}); do . " +
                path("task") +
                "; done\n"
                "echo 7\n");
    program("squeue", "cat " + path("queue") + " 2>/dev/null; exit 0");
    program("scancel", "echo \"$@\" >> " + path("cancelled") + "; : > " + path("queue"));
    program("scontrol", "echo 'MaxArraySize            = 11'");
    task(kHonest);
  }

  void program(const std::string& name, const std::string& text) const {
    write("bin/" + name, "#!/bin/sh\n" + text);
    std::filesystem::permissions(folder_ / "bin" / name, std::filesystem::perms::owner_all);
  }
  void task(const std::string& text) const { write("task", text + "\n"); }

  Outcome sweep(const std::string& options = "", const std::string& verb = "run",
                const std::string& before = "") const {
    return shell("export PATH=" + path("bin") + ":$PATH; " + before + " " ORRERY_BINARY " sweep " +
                 verb + " " + path("sweep.yaml") + " --db " + path("s.db") + " " + options);
  }
  /// What tasks were given, a line for each call of sbatch.
  std::vector<std::string> given() const { return lines_of("given"); }
  std::vector<std::string> lines_of(const std::string& name) const {
    std::ifstream file(path(name));
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  void expect_the_store_of_a_local_run() const {
    EXPECT_EQ(
        orrery("sweep run " + path("sweep.yaml") + " --executor local --db " + path("here.db"))
            .code,
        0);
    EXPECT_EQ(orrery("export --csv " + path("s.db"), false).out,
              orrery("export --csv " + path("here.db"), false).out);
    EXPECT_FALSE(std::filesystem::exists(path("s.db.tasks")));
  }
};

TEST_F(Clusters, RunWhatALocalRunDoes) {
  const Outcome run = sweep(
      "--execution partition=cpu --execution 'time=90 s' --execution 'memory=1 GiB' "
      "--execution cpus=2 --execution 'sbatch=[--nice]'");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("20 points: 0 read from the store, 20 simulated"));
  EXPECT_THAT(given(), ElementsAre("0..10 10..20"));
  EXPECT_THAT(lines_of("arguments").at(0),
              AllOf(HasSubstr("--array=0-1 "), HasSubstr("--partition=cpu"), HasSubstr("--time=2 "),
                    HasSubstr("--mem=1024M"), HasSubstr("--cpus-per-task=2"), HasSubstr("--nice")));
  expect_the_store_of_a_local_run();
  EXPECT_THAT(sweep().out, HasSubstr("20 points: 20 read from the store, 0 simulated"));
  EXPECT_EQ(given().size(), 1U);
}

TEST_F(Clusters, AConditionOfTheCommandLineHoldsInTasksToo) {
  const Outcome run = sweep("--where 'operator.m % 128 == 0'");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("10 points: 0 read from the store, 10 simulated"));
  EXPECT_EQ(shell("sqlite3 " + path("s.db") + " 'SELECT count(*) FROM points'").out, "10\n");
}

TEST_F(Clusters, AnArrayIsNotLargerThanTheClusterTakes) {
  EXPECT_EQ(sweep("--execution points_per_task=1").code, 0);
  EXPECT_EQ(given().size(), 2U);  // 11 tasks and 9
  expect_the_store_of_a_local_run();
}

TEST_F(Clusters, ATaskThatIsSaidToBeCompletedAndHasDoneNothingIsGivenAgain) {
  task("test $i = 1 -a ! -e " + path("lied") + " && touch " + path("lied") + " && continue\n" +
       kHonest);
  const Outcome run = sweep();
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(given(), ElementsAre("0..10 10..20", "10..20"));
  expect_the_store_of_a_local_run();
}

TEST_F(Clusters, OfATaskThatWasKilledOnlyWhatItHadNotCommittedIsGivenAgain) {
  // The first call ends its second task behind four of its ten points.
  task("test $i = 1 -a ! -e " + path("killed") + " && touch " + path("killed") +
       " && " ORRERY_BINARY " sweep work " + path("sweep.yaml") +
       " 10..14 --shard $folder/1.db && rm $folder/1.ended && continue\n" + kHonest);
  const Outcome run = sweep();
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(given(), ElementsAre("0..10 10..20", "14..20"));
  expect_the_store_of_a_local_run();
}

TEST_F(Clusters, ATaskThatIsSaidToHaveFailedAndHasDoneItsPointsIsDone) {
  task(std::string(kHonest) + "; rm $folder/$i.ended");  // killed behind its last point
  EXPECT_EQ(sweep().code, 0);
  EXPECT_THAT(given(), ElementsAre("0..10 10..20"));
  expect_the_store_of_a_local_run();
}

TEST_F(Clusters, ATaskThatIsSaidToRunForEverAndIsDoneIsCancelled) {
  task(std::string(kHonest) + "; echo $name 7 $i RUNNING >> " + path("queue"));
  EXPECT_EQ(sweep().code, 0);
  EXPECT_THAT(given(), ElementsAre("0..10 10..20"));
  EXPECT_THAT(lines_of("cancelled").at(0),
              AllOf(HasSubstr("--name=orrery-slurm-"), HasSubstr(" 7_")));
  expect_the_store_of_a_local_run();
}

TEST_F(Clusters, ATaskThatIsSaidToRunAndIsSilentIsGivenAgain) {
  task("test $i = 1 -a ! -e " + path("gone") + " && touch " + path("gone") +
       " && echo $name 7 1 RUNNING >> " + path("queue") + " && continue\n" + kHonest);
  EXPECT_EQ(sweep().code, 0);
  EXPECT_THAT(given(), ElementsAre("0..10 10..20", "10..20"));
  EXPECT_EQ(lines_of("cancelled").size(), 1U);
  expect_the_store_of_a_local_run();
}

TEST_F(Clusters, WhatWaitsOrRunsIsNotGivenAgain) {
  task("echo $name 7 $i PENDING >> " + path("queue") + "; echo $script > " + path("script"));
  const Outcome left = sweep("--no-wait");
  EXPECT_EQ(left.code, 0) << left.out;
  EXPECT_THAT(left.out, AllOf(HasSubstr("2 tasks wait or run without this process"),
                              HasSubstr("go on: orrery sweep resume "),
                              HasSubstr("scancel --name=orrery-slurm-")));
  EXPECT_EQ(sweep("--no-wait", "resume").code, 0);
  EXPECT_EQ(given().size(), 1U);
  // The first one runs. The second one goes, as of a controller that has lost its jobs.
  shell("SLURM_ARRAY_TASK_ID=0 sh $(cat " + path("script") + "); : > " + path("queue"));
  task(kHonest);
  const Outcome resumed = sweep("", "resume");
  EXPECT_EQ(resumed.code, 0) << resumed.out;
  EXPECT_THAT(given(), ElementsAre("0..10 10..20", "10..20"));
  expect_the_store_of_a_local_run();
}

TEST_F(Clusters, AControllerThatDoesNotAnswerLosesNoTask) {
  program("squeue", "test -e " + path("asked") + " && exit 0; touch " + path("asked") + "; exit 1");
  task("test $i = 1 && (sleep 1; " + std::string(kHonest) + ") & test $i = 1 || " + kHonest);
  program("squeue", "exit 1");
  EXPECT_EQ(sweep().code, 0);
  EXPECT_THAT(given(), ElementsAre("0..10 10..20"));
  expect_the_store_of_a_local_run();
}

TEST_F(Clusters, ACtrlCLeavesTheTasksAndSaysHowToGoOn) {
  task("echo $name 7 $i PENDING >> " + path("queue"));
  program("squeue", "kill -INT $PPID; cat " + path("queue"));  // the sweep waits, and asks
  const Outcome left = sweep();
  EXPECT_THAT(left.out, AllOf(HasSubstr("2 tasks wait or run without this process"),
                              HasSubstr("go on: orrery sweep resume ")));
  EXPECT_EQ(lines_of("cancelled").size(), 0U);
}

TEST_F(Clusters, WhatSbatchRefusesIsSaidInItsWords) {
  program("sbatch", "echo 'sbatch: error: invalid partition specified: nope' >&2; exit 1");
  const Outcome run = sweep();
  EXPECT_EQ(run.code, 6);
  EXPECT_THAT(
      run.out,
      HasSubstr("sbatch refused 2 tasks: sbatch: error: invalid partition specified: nope"));
  EXPECT_FALSE(std::filesystem::exists(path("s.db.tasks")));
}

TEST_F(Clusters, OnlyOneProcessAwaitsTheTasksOfAStore) {
  task("echo $name 7 $i PENDING >> " + path("queue"));
  // The first one awaits its tasks once it has given them, and ends after the second one has.
  const Outcome both = shell(
      "export PATH=" + path("bin") + ":$PATH; sweep='" ORRERY_BINARY " sweep resume " +
      path("sweep.yaml") + " --db " + path("s.db") + "'; { $sweep & until test -s " +
      path("queue") + "; do sleep 0.1; done; $sweep; echo code $?; kill -INT $!; wait; } 2>&1");
  EXPECT_THAT(both.out,
              AllOf(HasSubstr("another process awaits the tasks of"), HasSubstr("code 6")));
}

TEST_F(Clusters, PointsThatCannotBeAreNotGivenAgain) {
  write("sweep.yaml",
        "sweep: ladder\ncases:\n  - name: table\n    base: {experiment: inference, system: "
        "dgx_h100, model: "
        "llama_3_1_8b, phase: decode, kv_length: 1024, batch: {micro: 4}, precision: bf16}\n"
        "    axes: {grid: {parallel.tp: [4, 7, 8, 16]}}\n"
        "execution: {executor: slurm, points_per_task: 10, ask_every: 0.1 s}\n");
  const Outcome run = sweep();
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("4 points: 0 read from the store, 2 simulated"));
  EXPECT_THAT(run.out, HasSubstr("table, tp 16: cannot be: "));
  EXPECT_EQ(given().size(), 1U);
  expect_the_store_of_a_local_run();
}

TEST_F(Clusters, AFailedPointStandsInThisRunAndIsTriedByTheNext) {
  write("sweep.yaml",
        "sweep: ladder\ncases:\n  - name: table\n    base: {experiment: operator, system: "
        "dgx_h100, operator: {kind: "
        "gemm, m: 64, n: 64, k: 64}}\n    axes: {grid: {operator.m: [64, 128]}}\n"
        "    limits: {point_memory: 1 MiB}\n"
        "execution: {executor: slurm, ask_every: 0.1 s}\n");
  const Outcome run = sweep();
  EXPECT_EQ(run.code, 3) << run.out;
  EXPECT_THAT(run.out, HasSubstr("FAILED"));
  EXPECT_EQ(given().size(), 1U);
  sweep();
  EXPECT_EQ(given().size(), 2U);
}

TEST_F(Clusters, AnyCommandMayLaunchTasks) {
  const Outcome run = sweep(
      "--launcher 'echo slot {slot} && {work}' --execution points_per_task=4 "
      "--execution at_once=2");
  EXPECT_EQ(run.code, 0) << run.out;
  expect_the_store_of_a_local_run();
}

TEST_F(Clusters, ALauncherMayHandItsWorkToAnotherShell) {
  const Outcome run = sweep("--launcher 'sh -c {quoted_work}'");
  EXPECT_EQ(run.code, 0) << run.out;
  expect_the_store_of_a_local_run();
}

// A launcher such as ssh starts elsewhere; files are named as the user named them all the same.
TEST_F(Clusters, OriginsOfPointsAreAsTypedWhereverALauncherStarts) {
  const auto origins = [&](const std::string& store, const std::string& options) {
    const Outcome run =
        shell("cd " + folder_.string() + " && " ORRERY_BINARY " sweep run sweep.yaml --db " +
              store + " " + options);
    EXPECT_EQ(run.code, 0) << run.out;
    return shell("sqlite3 " + path(store) +
                 " 'SELECT DISTINCT origin FROM v_parameters ORDER BY 1'")
        .out;
  };
  const std::string local = origins("here.db", "--executor local");
  EXPECT_THAT(local, HasSubstr("\nsweep.yaml:"));
  EXPECT_EQ(origins("s.db", "--launcher 'cd / && {work}'"), local);
}

TEST_F(Clusters, ALauncherThatFailsOnceIsTriedAgain) {
  const std::string once = path("once");
  const Outcome run =
      sweep("--launcher 'test -e " + once + " || { touch " + once + "; exit 1; }; {work}'");
  EXPECT_EQ(run.code, 0) << run.out;
  expect_the_store_of_a_local_run();
}

TEST_F(Clusters, ALauncherThatNeverWorksIsGivenUpWithItsLastWords) {
  const Outcome run = sweep("--launcher 'echo no such host; false {work}'");
  EXPECT_EQ(run.code, 3) << run.out;
  EXPECT_THAT(run.out, AllOf(HasSubstr("tasks end without a result"), HasSubstr("no such host")));
}

TEST_F(Clusters, APointThatEndsItsTasksIsFoundByHalvesAndFailsAlone) {
  // A task comes as far as place 13, which ends it.
  program("until13",
          "first=${1%..*}; last=${1#*..}; shard=$2\n"
          "test $first -gt 13 -o $last -le 13 && exec " ORRERY_BINARY " sweep work " +
              path("sweep.yaml") + " $1 --shard $shard\n" +
              "test $first -lt 13 && " ORRERY_BINARY " sweep work " + path("sweep.yaml") +
              " $first..13 --shard $shard\n"
              "rm -f ${shard%db}ended; echo it takes all memory; exit 1\n");
  const Outcome run = sweep("--launcher '" + path("bin/until13") + " {places} {shard}'");
  EXPECT_EQ(run.code, 3) << run.out;
  EXPECT_THAT(run.out, HasSubstr("20 points: 0 read from the store, 20 simulated"));
  EXPECT_THAT(run.out, HasSubstr(", 1 FAILED"));
  EXPECT_THAT(run.out, HasSubstr("its task ended 6 times without a result: "));
  EXPECT_THAT(run.out, HasSubstr("it takes all memory"));
}

TEST_F(Clusters, WrongWordsAreUsageErrors) {
  const auto refused = [&](const std::string& options, const std::string& why) {
    const Outcome run = sweep(options);
    EXPECT_EQ(run.code, 2) << options << run.out;
    EXPECT_THAT(run.out, HasSubstr(why));
    EXPECT_FALSE(std::filesystem::exists(path("s.db.tasks"))) << options;
  };
  refused("--executor local --no-wait", "--no-wait needs an executor with a queue");
  refused("--launcher '{work}' --no-wait", "--no-wait needs an executor with a queue");
  refused("--execution partiton=a", "unknown key 'partiton' in slurm; did you mean 'partition'?");
  refused("--launcher 'echo hello'",
          "a launcher has {work}, {quoted_work}, or {places} and {shard}");
  refused("--executor slrm", "slrm");
  const std::string work = "sweep work " + path("sweep.yaml") + " ";
  EXPECT_THAT(orrery(work + "0..21 --shard " + path("a.db")).out, HasSubstr("has 20 places"));
  EXPECT_THAT(orrery(work + "5..5 --shard " + path("a.db")).out, HasSubstr("are no places"));
  EXPECT_EQ(orrery(work + "0..5").code, 2);
  EXPECT_FALSE(std::filesystem::exists(path("a.db")));
}

TEST_F(Clusters, WorkGoesOnWhereItsShardEnds) {
  const std::string work = "sweep work " + path("sweep.yaml") + " ";
  const std::string shard = " --shard " + path("a.db");
  EXPECT_THAT(orrery(work + "0..5" + shard).out,
              HasSubstr("5 points: 0 read from the store, 5 simulated"));
  EXPECT_THAT(orrery(work + "0..7,9..10" + shard).out,
              HasSubstr("8 points: 5 read from the store, 3 simulated"));
  EXPECT_THAT(orrery("sweep merge " + path("s.db") + " " + path("a.db")).out,
              HasSubstr("8 points added"));
}

}  // namespace
}  // namespace executors_test
