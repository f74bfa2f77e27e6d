#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills everything that a sweep on a cluster rests on, and compares the store in the end.

    tests/slurm/campaign.py ORRERY [--kills 100] [--seed 1]

`--kills` tasks are ended by kill -9 at random instants; beside them a tenth as many slurmstepd, slurmctld, slurmd,
processes that wait for the sweep and processes that merge, and as many jobs are requeued and cancelled. Sweeps follow
each other until all that is done. Then the store must have what that of an undisturbed run has, and all that was ever
seen committed must be in it."""
import argparse
import glob
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import HANGS, Cluster, lives  # noqa: E402

# A point takes some hundredths of a second; with 3 ranks it cannot be.
SWEEP = """sweep: killed
cases:
  - name: decode
    base:
      experiment: inference
      system: dgx_h100
      model: llama_3_1_405b
      phase: decode
      kv_length: 1024
      parallel: {tp: 8}
      batch: {micro: 4}
      precision: fp8
    axes:
      grid:
        parallel.tp: [3, 8]
        batch.micro: {range: {from: 1, to: 20, step: 1}}
        kv_length: {range: {from: 1024, to: 16384, step: 1024}}
execution:
  executor: slurm
  points_per_task: 20
  ask_every: 1 s
  silent_after: 10 s
"""


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return int(stat.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


class Campaign:
    def __init__(self, program, cluster, folder, seed):
        self.program, self.cluster, self.folder = program, cluster, folder
        self.random = random.Random(seed)
        self.done = {}
        self.seen = set()
        self.waiting = None
        self.round = 0

    def file(self, name):
        return os.path.join(self.folder, name)

    def store(self):
        return self.file(f"{self.round}.db")

    def orrery(self, *words):
        return subprocess.run([self.program, *words], env=self.cluster.environment, cwd=self.folder,
                              capture_output=True, text=True)

    def export(self, store):
        answer = self.orrery("export", store, "--csv")
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    # What runs.

    def start_waiting(self):
        with open(self.file("waiting.log"), "a") as log:
            self.waiting = subprocess.Popen(
                [self.program, "sweep", "resume", "sweep.yaml", "--db", self.store()],
                env=self.cluster.environment, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=log)

    def log(self):
        with open(self.file("waiting.log")) as log:
            return log.read()

    def tasks(self):
        """Processes of tasks, without their workers."""
        all_of_them = [pid for pid in self.cluster.pids("sweep work") if lives(pid)]
        return [pid for pid in all_of_them if parent_of(pid) not in all_of_them]

    def jobs(self, state):
        answer = self.cluster.ask("squeue", "--noheader", "--array", "--format=%F_%K", "--states=" + state)
        return answer.stdout.split()

    # What is done to it. Each says whether there was anything to do it to.

    def kill_one(self, pids):
        if not pids:
            return False
        try:
            os.kill(self.random.choice(pids), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def task_killed(self):
        tasks = self.tasks()  # the last one is let through now and then
        return (len(tasks) > 1 or self.random.random() < 0.2) and self.kill_one(tasks)

    def slurmstepd_killed(self):
        return self.kill_one([pid for pid in self.cluster.pids("slurmstepd") if lives(pid)])

    def slurmctld_killed(self):
        self.cluster.kill("slurmctld")
        time.sleep(self.random.uniform(0, 2))
        self.cluster.start_controller()
        return True

    def slurmd_killed(self):
        self.cluster.kill("slurmd")
        time.sleep(self.random.uniform(0, 2))
        self.cluster.start_node()
        return True

    def job_requeued(self):
        jobs = self.jobs("RUNNING")
        return bool(jobs) and self.cluster.ask("scontrol", "requeue", self.random.choice(jobs)).returncode == 0

    def job_cancelled(self):
        jobs = self.jobs("RUNNING,PENDING")
        return bool(jobs) and self.cluster.ask("scancel", self.random.choice(jobs)).returncode == 0

    def waiting_killed(self):
        if self.waiting.poll() is not None:
            return False
        self.waiting.kill()
        self.waiting.wait()
        self.start_waiting()
        return True

    def merger_killed(self):
        shards = [shard for shard in glob.glob(self.store() + ".tasks/*/*.db") if os.path.getsize(shard)]
        if not shards:
            return False
        merger = subprocess.Popen([self.program, "sweep", "merge", self.store(), *shards], cwd=self.folder,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.random.uniform(0, 0.1))
        in_time = merger.poll() is None
        merger.kill()
        merger.wait()
        return in_time

    def administer(self):
        """What an administrator does after a controller was killed: it holds jobs and drains nodes that it is not
        sure of."""
        state = self.cluster.ask("sinfo", "--noheader", "--format=%T").stdout
        if "drain" in state or "down" in state:
            self.cluster.ask("scontrol", "update", "nodename=" + self.cluster.node, "state=resume")
        for line in self.cluster.ask("squeue", "--noheader", "--array", "--format=%F_%K %r",
                                     "--states=PENDING").stdout.splitlines():
            job, reason = line.split(None, 1)
            if "held" in reason.lower():
                self.cluster.ask("scontrol", "release", job)
            if "BeginTime" in reason:  # two minutes after a requeue
                self.cluster.ask("scontrol", "update", "jobid=" + job, "starttime=now")

    # What must hold.

    def identities(self):
        """Identities with a result, committed in the store or in a shard that is there."""
        found = set()
        for path in [self.store(), *glob.glob(self.store() + ".tasks/*/*.db")]:
            try:
                with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10) as database:
                    found |= {row[0] for row in database.execute("SELECT identity FROM points WHERE status != 'failed'")}
                database.close()
            except sqlite3.Error:
                pass  # not made yet, or about to go
        return found

    def is_over(self):
        """Whether the sweep is through. One that gave up, as points were killed time after time, is gone on with."""
        code = self.waiting.poll()
        if code == 3:
            self.done["given up and resumed"] = self.done.get("given up and resumed", 0) + 1
            self.start_waiting()
            return False
        assert code in (None, 0), f"round {self.round}: exit code {code}"
        return code == 0

    def end_round(self):
        until = time.time() + HANGS
        while not self.is_over():
            assert time.time() < until, f"round {self.round} does not end"
            time.sleep(1)
            self.administer()
        lost = self.seen - self.identities()
        assert not lost, f"{len(lost)} committed points are lost"
        reference, got = self.export(self.file("undisturbed.db")), self.export(self.store())
        assert got == reference, f"round {self.round}: the store differs from that of an undisturbed run"
        assert not os.path.exists(self.store() + ".tasks"), "shards were left behind"
        with sqlite3.connect(self.store()) as database:
            points, tries = (database.execute("SELECT count(*) FROM " + table).fetchone()[0]
                             for table in ("points", "attempts"))
        print(f"round {self.round}: {points} points equal to those of an undisturbed run, "
              f"{tries - points} simulated again", flush=True)

    def begin_round(self):
        self.round += 1
        self.seen = set()
        self.start_waiting()

    def run(self, kills):
        few = max(1, kills // 10)
        plan = [self.task_killed] * kills
        for action in (self.slurmstepd_killed, self.slurmctld_killed, self.slurmd_killed, self.job_requeued,
                       self.job_cancelled, self.waiting_killed, self.merger_killed):
            plan += [action] * few
        self.random.shuffle(plan)
        with open(self.file("sweep.yaml"), "w") as file:
            file.write(SWEEP)
        answer = self.orrery("sweep", "run", "sweep.yaml", "--db", "undisturbed.db", "--executor", "local")
        assert answer.returncode == 0, answer.stdout + answer.stderr
        self.begin_round()
        for action in plan:
            until = time.time() + HANGS
            while True:
                assert time.time() < until, "nothing to do this to: " + action.__name__
                time.sleep(self.random.uniform(0.05, 0.6))
                if self.is_over():
                    self.end_round()
                    self.begin_round()
                if action():
                    break
                self.administer()
            name = action.__name__
            self.done[name] = self.done.get(name, 0) + 1
            self.seen |= self.identities()
        self.end_round()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="build/release/orrery")
    parser.add_argument("--kills", type=int, default=100, help="tasks that are killed")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    began = time.time()
    with Cluster(cpus=4) as cluster, tempfile.TemporaryDirectory(prefix="orrery_campaign_") as folder:
        campaign = Campaign(os.path.abspath(arguments.program), cluster, folder, arguments.seed)
        try:
            campaign.run(arguments.kills)
        except BaseException:
            print(campaign.log()[-3000:], campaign.done, file=sys.stderr)
            print(*(cluster.ask(word, "--all").stdout for word in ("squeue", "sinfo")), file=sys.stderr)
            raise
        finally:
            if campaign.waiting and campaign.waiting.poll() is None:
                campaign.waiting.kill()
    for name, times in sorted(campaign.done.items()):
        print(f"{times:5} times {name.replace('_', ' ')}")
    print(f"{campaign.round} sweeps, 0 lost, 0 doubled, {time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
