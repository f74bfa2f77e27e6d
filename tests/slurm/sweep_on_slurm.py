#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sweep on a Slurm cluster that this script starts: tests/slurm/sweep_on_slurm.py ORRERY. Exit code 77: skipped."""
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import HANGS, Cluster, require_packages  # noqa: E402

SWEEP = """sweep: ladder
cases:
  - name: table
    base:
      experiment: inference
      system: dgx_h100
      model: llama_3_1_405b
      phase: decode
      kv_length: 1024
      parallel: {tp: 8}
      batch: {micro: 4}
      precision: fp8
    axes: {grid: {kv_length: {range: {from: 1024, to: 40960, step: 1024}}}}
execution: {executor: slurm, points_per_task: 10, ask_every: 1 s}
"""


def main(program):
    require_packages()
    with Cluster() as cluster, tempfile.TemporaryDirectory(prefix="orrery_slurm_sweep_") as folder:
        def orrery(*words, code=0):
            ran = subprocess.run([program, *words], env=cluster.environment, cwd=folder, capture_output=True, text=True)
            assert ran.returncode == code, f"{words}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}"
            return ran.stdout + ran.stderr

        def same_as_here(store):
            assert orrery("export", store, "--csv") == here, f"{store} differs from the store of a local run"
            assert not os.path.exists(os.path.join(folder, store + ".tasks")), "shards were left behind"

        with open(os.path.join(folder, "sweep.yaml"), "w") as file:
            file.write(SWEEP)
        orrery("sweep", "run", "sweep.yaml", "--db", "here.db", "--executor", "local")
        here = orrery("export", "here.db", "--csv")

        said = orrery("sweep", "run", "sweep.yaml", "--db", "awaited.db")
        assert "40 points: 0 read from the store, 40 simulated" in said, said
        same_as_here("awaited.db")

        said = orrery("sweep", "run", "sweep.yaml", "--db", "left.db", "--no-wait")
        assert "4 tasks wait or run without this process" in said, said
        victims, until = [], time.time() + HANGS
        while not victims and time.time() < until:  # one task is killed meanwhile
            victims = cluster.pids("sweep work")
        assert victims, "no task began"
        os.kill(victims[0], signal.SIGKILL)
        said = orrery("sweep", "resume", "sweep.yaml", "--db", "left.db")
        assert "going on with" in said and "40 points: " in said, said
        same_as_here("left.db")

        said = orrery("sweep", "run", "sweep.yaml", "--db", "refused.db", "--execution", "partition=nope", code=6)
        assert "invalid partition" in said.lower(), said
    print("a sweep on Slurm gives the store of a local one: awaited, left and resumed, with a task killed")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
