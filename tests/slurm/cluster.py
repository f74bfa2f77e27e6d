# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of one node in a folder of its own, which is gone when the `with` block ends.

    with Cluster() as cluster:
        subprocess.run(["sbatch", ...], env=cluster.environment)

Several may run side by side: each has its own keys, ports and folders."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
HANGS = 600  # s that a busy machine may take for one thing before it counts as hanging
PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "munged": "munge"}


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def require_packages():
    """Ends the test as skipped where Slurm is not installed, or cannot be run."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program, path=path)})
    if missing:
        skip("not installed: " + " ".join(missing))
    if os.geteuid() != 0:
        skip("slurmd starts jobs as root only")
    os.environ["PATH"] = path


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def children_of(pid):
    """Processes of a process and theirs, by /proc."""
    parents = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as stat:
                parents.setdefault(int(stat.read().rsplit(")", 1)[1].split()[1]), []).append(int(entry))
        except OSError:
            pass
    found, to_do = [], [pid]
    while to_do:
        below = parents.get(to_do.pop(), [])
        found += below
        to_do += below
    return found


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def lives(pid):
    """Whether there is such a process, and not only its exit code."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def end(pids, signals=(signal.SIGTERM, signal.SIGKILL)):
    for number in signals:
        for pid in pids:
            try:
                os.kill(pid, number)
            except OSError:
                pass
        until = time.time() + 5
        while time.time() < until and any(lives(pid) for pid in pids):
            time.sleep(0.05)


class Cluster:
    def __init__(self, cpus=2):
        require_packages()
        self.cpus = cpus
        self.folder = tempfile.mkdtemp(prefix="orrery_slurm_", dir="/tmp")
        self.environment = dict(os.environ, SLURM_CONF=self.file("slurm.conf"))
        self.processes = {}

    def file(self, name):
        return os.path.join(self.folder, name)

    def __enter__(self):
        for number in (signal.SIGTERM, signal.SIGHUP):  # the block ends, and with it the cluster
            signal.signal(number, lambda *_: sys.exit(1))
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        os.chmod(self.folder, 0o755)
        with open(self.file("munge.key"), "wb") as key:
            key.write(os.urandom(1024))
        os.chmod(self.file("munge.key"), 0o400)
        self.spawn("munged", ["munged", "--foreground", "--force", "--key-file", self.file("munge.key"),
                              "--socket", self.file("munge.socket"), "--pid-file", self.file("munge.pid"),
                              "--log-file", self.file("munge.log"), "--seed-file", self.file("munge.seed")])
        for name in ("state", "spool"):
            os.mkdir(self.file(name))
        self.configure()
        self.start_controller()
        self.start_node()
        self.await_idle()

    def configure(self):
        host = socket.gethostname().split(".")[0]
        controller, node = free_ports(2)
        self.node = host
        with open(self.file("slurm.conf"), "w") as conf:
            conf.write(f"""ClusterName=orrerytest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.file("munge.socket")}
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmctldPidFile={self.file("slurmctld.pid")}
SlurmdPidFile={self.file("slurmd.pid")}
StateSaveLocation={self.file("state")}
SlurmdSpoolDir={self.file("spool")}
SlurmctldLogFile={self.file("slurmctld.log")}
SlurmdLogFile={self.file("slurmd.log")}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=batch_sched_delay=0,sched_interval=2,requeue_delay=1
MaxArraySize=101
KillWait=2
MessageTimeout=5
SlurmctldTimeout=10
SlurmdTimeout=20
NodeName={host} NodeAddr=127.0.0.1 Port={node} CPUs={self.cpus} State=UNKNOWN
PartitionName=batch Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
""")

    def spawn(self, name, words):
        log = open(self.file(name + ".out"), "a")
        self.processes[name] = subprocess.Popen(words, env=self.environment, stdout=log, stderr=log,
                                                stdin=subprocess.DEVNULL, start_new_session=True)
        log.close()

    def start_controller(self):
        self.spawn("slurmctld", ["slurmctld", "-D"])

    def start_node(self):
        self.spawn("slurmd", ["slurmd", "-D", "-N", self.node])

    def ask(self, *words, seconds=30):
        try:
            return subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 1, "", "no answer")

    def await_idle(self, seconds=HANGS):
        until = time.time() + seconds
        while time.time() < until:
            state = self.ask("sinfo", "--noheader", "--format=%T").stdout.strip()
            if state in ("idle", "mixed", "allocated"):
                return
            if state.startswith("down"):
                self.ask("scontrol", "update", "nodename=" + self.node, "state=resume")
            time.sleep(0.2)
        logs = ""
        for name in ("munged.out", "slurmctld.log", "slurmd.log", "slurmctld.out", "slurmd.out"):
            if os.path.exists(self.file(name)):
                logs += f"\n-- {name}\n" + open(self.file(name), errors="replace").read()[-1500:]
        raise RuntimeError("the cluster does not start: " + logs)

    def kill(self, name):
        """kill -9 of slurmctld or slurmd."""
        process = self.processes[name]
        process.kill()
        process.wait()

    def pids(self, word):
        """Processes of this cluster whose command line has the word."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit() and word in command_of(entry):
                try:
                    with open(f"/proc/{entry}/environ", "rb") as file:
                        if self.folder.encode() in file.read():
                            found.append(int(entry))
                except OSError:
                    pass
        return found

    def __exit__(self, *_):
        leaders = [process.pid for process in self.processes.values()]
        own = leaders + [pid for leader in leaders for pid in children_of(leader)]
        end(own + self.pids(""))
        for process in self.processes.values():
            process.wait()
        end(self.pids(""))  # what was started meanwhile
        shutil.rmtree(self.folder, ignore_errors=True)
