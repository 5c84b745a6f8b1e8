# SPDX-License-Identifier: Apache-2.0
"""paddle launch --slurm: jobs of a real Slurm on hosts of their own."""
import contextlib
import os
import shutil
import sys
import time

import pytest

import sync_job
from cluster import BUILD, FOREIGN, LIMIT, Hosts, Process
from sshd import BOOT
from test_sync import QUICK, load, same_bits, together
from three_hosts import ENV, JOBS

PATH = "/usr/sbin:" + os.environ.get("PATH", "")
lacking = [what for what in ("munged", "slurmctld", "slurmd", "srun", "salloc")
           if not shutil.which(what, path=PATH)]
if not Hosts.can_be():
    lacking.append("root and iproute2")
pytestmark = pytest.mark.skipif(
    bool(lacking), reason="needs %s: scripts/deps cluster" % ", ".join(lacking))
PADDLE = os.path.join(BUILD, "bin", "paddle")
NODES = 3  # host 3 is the controller, where users sit

CONF = """
ClusterName=test
SlurmctldHost=host3
AuthType=auth/munge
AuthInfo=socket={0}/munge.sock
SlurmUser=root
StateSaveLocation={0}/state
SlurmdSpoolDir={0}/spool.%n
SlurmctldPidFile={0}/ctld.pid
SlurmdPidFile={0}/slurmd.%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
KillWait=2
NodeName=host[0-2] CPUs={1} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm(Hosts):
    """Three hosts with slurmd, and one with slurmctld."""

    def __init__(self, folder):
        self.folder = folder
        super().__init__(NODES + 1)
        (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
            "%s host%d\n" % (self.address(i), i) for i in range(NODES + 1)))
        (folder / "slurm.conf").write_text(
            CONF.format(folder, os.cpu_count()))
        (folder / "cgroup.conf").write_text(
            "CgroupPlugin=cgroup/v1\nCgroupMountpoint=%s/cg\n" % folder)
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o400)
        for name in "state", "cg", *("spool.host%d" % i for i in range(NODES)):
            (folder / name).mkdir()
        self._ends = contextlib.ExitStack()
        self.start(NODES, "munged", "--foreground", "--force", *(
            "--%s=%s/munge.%s" % (flag, folder, end) for flag, end in (
                ("key-file", "key"), ("socket", "sock"), ("pid-file", "pid"),
                ("log-file", "log"), ("seed-file", "seed"))))
        until(lambda: (folder / "munge.sock").exists())
        self.start(NODES, "slurmctld", "-D")
        for i in range(NODES):
            self.start(i, "slurmd", "-D")
        until(lambda: self.said("sinfo", "-h", "-t", "idle", "-o", "%D")
              == "%d\n" % NODES)

    def home(self, i):
        """The folder that host i sees as /home."""
        return self.folder / ("home%d" % i)

    def words(self, i, argv):
        self.home(i).mkdir(exist_ok=True)
        return [*self.enter(i), *BOOT, "host%d" % i, str(self.home(i)), "sh", "-ec",
                'mount --bind "$0" /etc/hosts; exec "$@"',
                str(self.folder / "hosts"), *argv]

    def start(self, i, *argv, **more):
        env = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
        process = Process("%s%d" % (os.path.basename(argv[0]), i),
                          self.words(i, argv), str(self.folder), {
            **env, "PATH": PATH, "SLURM_CONF": str(self.folder / "slurm.conf"),
            **more})
        self._ends.callback(process.clear)
        return process

    def said(self, *argv):
        process = self.start(NODES, *argv)
        process.end(code=None)
        return process.text()

    def __exit__(self, *unused):
        self._ends.close()
        super().__exit__(*unused)


def until(true):
    limit = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.1)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with Slurm(tmp_path_factory.mktemp("slurm")) as made:
        yield made


def end_well(job):
    """What it said."""
    try:
        job.end()
    finally:
        print(job.text())
    assert "3 trainers and 3 servers finished" in job.text()
    return job.text()


def test_salloc_gives_the_bits_of_one_machine(slurm, tmp_path):
    """salloc starts one launcher. All hosts have one workspace."""
    local = together(tmp_path / "local", "adam", "split", NODES, NODES)
    end_well(slurm.start(
        NODES, "salloc", "-N", str(NODES), PADDLE, "launch", "--slurm",
        "--job_workspace", str(tmp_path), "--log_dir", str(tmp_path / "logs"),
        "--server_num", "1", "--worker_num", "1", "--python", sys.executable,
        sync_job.__file__, "adam", "split",
        PYTHONPATH=os.path.join(BUILD, "python"), **QUICK))
    for i in range(NODES):
        same_bits(load(tmp_path, i), local[i])
        log = (tmp_path / "logs" / ("serverlog.%d" % i)).read_text()
        assert "plain text" not in log and "server %d of 3" % i in log


@pytest.mark.parametrize("name", JOBS)
def test_srun_gives_the_bits_of_one_machine(slurm, tmp_path, name):
    """srun starts a launcher on every host. Workspaces are sent."""
    job = JOBS[name](tmp_path / "job")
    end_well(slurm.start(
        NODES, "srun", "-N", str(NODES), PADDLE, "launch", "--slurm",
        "--job_dispatch_package", str(job.package), "--job_root",
        "/home/" + name, "--log_dir", str(tmp_path / "logs"), "--server_num",
        "1", "--worker_num", "1", "--python", sys.executable, *job.words,
        PYTHONPATH=ENV["PYTHONPATH"], FLUID_LINGER="0.2"))
    for i in range(NODES):
        folder, = (slurm.home(i) / name).iterdir()
        assert (folder / "nodefile").read_text() == str(i)
        assert (folder / "log" / "server.log").read_text()
        assert (folder / "log" / "train.log").read_text()
        if not i:
            job.check(folder, tmp_path / "logs")


def test_the_first_failure_of_all_hosts_is_the_verdict(slurm, tmp_path):
    job = slurm.start(NODES, "srun", "-N", str(NODES), PADDLE, "launch",
                      "--slurm", "--job_workspace", "/home", "--log_dir",
                      str(tmp_path / "logs"), "--server_num", "1",
                      "--worker_num", "1", "sh", "-c",
                      '[ "$PADDLE_TRAINER_ID" != 1 ] || '
                      '{ hostname; exit 7; }')
    job.end(7)
    said = job.text()
    assert "trainer 1 failed first: exit code 7" in said
    assert "it ran on host host1 in /home" in said
    assert "    host1\n" in said


def test_without_slurm_it_is_said_so(tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
    with Process("launch", [PADDLE, "launch", "--slurm", "true"],
                 str(tmp_path), env) as job:
        job.end(1)
        assert "SLURM_JOB_NODELIST is not set; --slurm needs a job of Slurm" in job.text()
