# SPDX-License-Identifier: Apache-2.0
"""Snapshots of the servers of real jobs: a job whose server has lost its state
goes back to one, and one is what a new job may begin with."""
import glob
import os
import re
import shutil
import subprocess
import time

import pytest

import counted_job
from cluster import Cluster, Process, own_addresses
from kills import scene_word

ENV = {"FLUID_LINGER": "0.1", "FLUID_REJOIN": "300", "FLUID_LEASE": "60",
       "FLUID_RESTART": "300", "FLUID_START": "300",
       "FLUID_SNAPSHOT_EVERY": "0.02"}


def counted(folder, kind, env, servers=2, lines=90):
    files = counted_job.write_files(folder, 6, lines)
    return Cluster(folder, counted_job.__file__, servers, 2,
                   env={"FLUID_SNAPSHOT_DIR": os.path.join(str(folder), "snap"),
                        **ENV, **env},
                   argv=[kind, "2", *files])


def paddle(*words, code=0):
    done = subprocess.run(["paddle", *words], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == code, done.stdout
    return done.stdout


def digest(folder):
    return paddle("digest", os.path.join(str(folder), "model")).split()[0]


def stop_at(step):
    return {"FLUID_FAILPOINT": "step.begin:%d:stop" % step} if step else {}


def start_all(job, stop=None, stop_both=None):
    """stop: the step at which trainer 1 is stopped, and with it a synchronous
    job; stop_both: the step at which each trainer is."""
    for i in range(job.servers):
        job.start_server(i)
    job.start_trainer(0, **stop_at(stop_both))
    job.start_trainer(1, **stop_at(stop or stop_both))


def finish(job, points=()):
    """Until all have ended well; trainers of the time before the job went back
    are started again. points: for each server, where it is killed, one process
    after the other; it was started with the first one."""
    limit = time.monotonic() + job.seconds
    points = {i: [*at] for i, at in dict(points).items()}
    while any(p.code() != 0 for p in job.server + job.trainer):
        assert time.monotonic() < limit, "the job does not end"
        for i, at in points.items():
            if at and job.server[i].code() == -9:
                job.start_server(i, FLUID_FAILPOINT=[*at[1:], None][0])
                del at[0]
        for i, p in enumerate(job.trainer):
            if p.code() not in (None, 0):
                assert re.search("rewound|has lost its parameters", p.text()), \
                    p.text()
                job.start_trainer(i)
        for p in job.server:
            assert p.code() in (None, 0), p.text()
        time.sleep(0.01)
    assert not any(points.values())
    return digest(job.folder)


def lose_state(job, i, **env):
    """Server i is killed, its state is gone, and it is started again."""
    job.server[i].kill()
    for base in "state", "journal":
        for path in glob.glob(os.path.join(job.folder, base,
                                           "*-server-%d" % i)):
            shutil.rmtree(path)
    return job.start_server(i, **env)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """The digest of the model of a job that nobody disturbs."""
    made = {}

    def result(kind):
        if kind not in made:
            with counted(tmp_path_factory.mktemp(kind), kind,
                         {"FLUID_SNAPSHOT_DIR": ""}) as job:
                start_all(job)
                made[kind] = finish(job)
            assert "no snapshots are taken" in job.server[0].text()
        return made[kind]

    return result


def snapshots(job):
    return sorted(name for name in os.listdir(os.path.join(job.folder, "snap"))
                  if name != "lock")


@pytest.mark.parametrize("kind, level", [
    ("sync", "memory"), ("sync-table", "process"), ("async-table", "memory")])
def test_snapshots_are_taken_while_the_job_trains(tmp_path, calm, kind, level):
    with counted(tmp_path, kind, {"FLUID_DURABILITY": level}) as job:
        start_all(job, stop=100)
        job.server[0].says("snapshot 1 of")
        job.trainer[1].go_on()
        assert finish(job) == calm(kind)
        assert 1 <= len(snapshots(job)) <= 3
    folder = os.path.join(job.folder, "snap")
    listed = paddle("ckpt", "ls", folder)
    if kind.startswith("async"):  # has no rounds
        assert "whole, asynchronous, 2 servers" in listed
        assert "version" not in listed
    else:
        assert re.search("whole, version [1-9][0-9]*, synchronous", listed)
    assert "is as it was saved" in paddle("ckpt", "verify", folder)


@pytest.mark.parametrize("kind, level, lost", [
    ("sync", "process", 1), ("sync-table", "memory", 0),
    ("sync", "memory", 1)])
def test_a_job_goes_back_when_a_state_is_lost(tmp_path, calm, kind, level,
                                              lost):
    with counted(tmp_path, kind, {"FLUID_DURABILITY": level}) as job:
        start_all(job, stop=100)
        job.server[0].says("snapshot 1 of version")
        job.trainer[1].stopped()
        lose_state(job, lost)
        job.trainer[1].go_on()
        assert finish(job) == calm(kind)
        said = "".join(p.text() for p in job.server)
        assert re.search("went back to snapshot|going on from snapshot", said)


def take_one_more(job):
    """Wait for a snapshot that begins after this call; gives its number."""
    now = [int(n) for n in re.findall(r"^\S+ .*snapshot (\d+) of version",
                                      job.server[0].text(), re.M)]
    number = max(now, default=0) + 2  # the next one may have begun
    job.server[0].says("snapshot %d of version" % number)
    return number


class NoMore:
    """While it lasts, no snapshot can be written."""

    def __init__(self, job):
        self._path = os.path.join(job.folder, "snap")

    def __enter__(self):
        os.rename(self._path, self._path + ".kept")
        with open(self._path, "w"):
            pass

    def __exit__(self, *unused):
        os.remove(self._path)
        os.rename(self._path + ".kept", self._path)


@pytest.mark.parametrize("kind, level, lost", [
    ("async", "process", 1), ("async-table", "memory", 0),
    ("async-table", "host", 1)])
def test_an_asynchronous_job_goes_back_and_says_what_is_lost(
        tmp_path, calm, kind, level, lost):
    """Both trainers are stopped before their 30th step, so the snapshot has the
    pushes of 58 steps. That number once was 76 and 89 pushes were lost, because
    the failpoint stopped the process and not the thread that met it, which then
    made 18 steps more (src/base/failpoint.c). A snapshot always contains what
    its image says: a_cut_knows_its_pushes in src/protocol/server_test.c and
    a_cut_has_what_was_given_before_it in src/pserver/store_test.c."""
    env = {"FLUID_DURABILITY": level, "FLUID_JOURNAL_BYTES": "20000",
           "FLUID_JOURNAL_DIR": str(tmp_path / "journal")}
    with counted(tmp_path, kind, env) as job:
        start_all(job, stop_both=30)
        for p in job.trainer:
            p.stopped()
        take_one_more(job)
        with NoMore(job):
            job.trainer[0].go_on()
            job.trainer[0].says("^trained")  # 107 of 136 steps since
            job.server[lost].kill()  # so that none is complete from here on
        lose_state(job, lost)
        job.trainer[1].go_on()
        assert finish(job) == calm(kind)
        said = job.server[1 - lost].text()
        lost = re.search(r"about (\d+) pushes that this server had applied "
                         "since are lost", said).group(1)
        assert int(lost) > 100  # of 107


# Where servers are killed; the last ones of each list with FLUID_KILL_MATRIX=1.
WRITES = [
    ("sync", {0: "snapshot.block:1"}), ("sync-table", {1: "snapshot.block:2"}),
    ("sync", {0: "snapshot.rename:1"}), ("async", {0: "snapshot.rename:1"}),
    ("async-table", {0: "snapshot.block:2", 1: "snapshot.block:1"})]
REWINDS = [
    ({1: ["rewind.restore:1", "rewind.image:1"]}, "process", "sync-table"),
    ({0: ["rewind.mark:1"]}, "process", "sync-table"),
    ({0: ["rewind.begin:1", "rewind.restore:1", "rewind.restore:2"]},
     "process", "sync-table"),
    ({0: ["rewind.restore:2", "rewind.image:1"]}, "process", "sync-table"),
    ({0: ["rewind.begin:1", "rewind.restore:1"]}, "memory", "sync-table"),
    ({0: ["rewind.image:1"], 1: ["rewind.restore:1"]}, "process", "sync-table"),
    ({1: ["rewind.restore:1", "rewind.image:1"]}, "process", "async-table"),
    ({0: ["rewind.mark:1", "rewind.image:1"]}, "process", "async"),
    ({0: ["rewind.begin:1", "rewind.restore:1"]}, "memory", "async-table")]
if "FLUID_KILL_MATRIX" not in os.environ:
    WRITES, REWINDS = WRITES[:1], REWINDS[:6]


@pytest.mark.parametrize("kind, points", WRITES, ids=scene_word)
def test_servers_are_killed_while_they_write_a_snapshot(tmp_path, calm, kind,
                                                        points):
    with counted(tmp_path, kind, {"FLUID_DURABILITY": "process"}) as job:
        for i in 0, 1:
            job.start_server(i, FLUID_FAILPOINT=points.get(i))
        for i in 0, 1:
            job.start_trainer(i, **stop_at(100))
        for i in points:
            job.server[i].end(code=-9)
            job.start_server(i)
        for p in job.trainer:
            p.go_on()
        assert finish(job) == calm(kind)
    assert "is as it was saved" in paddle("ckpt", "verify",
                                          os.path.join(job.folder, "snap"))


@pytest.mark.parametrize("points, level, kind", REWINDS, ids=scene_word)
def test_servers_are_killed_while_the_job_goes_back(tmp_path, calm, points,
                                                    level, kind):
    """Trainers are started again meanwhile: nobody but the directory of the
    snapshots knows what the job was doing."""
    with counted(tmp_path, kind, {"FLUID_DURABILITY": level}) as job:
        job.start_server(0, FLUID_FAILPOINT=[*points.get(0, []), None][0])
        job.start_server(1)
        job.start_trainer(0)
        job.start_trainer(1, **stop_at(100)).stopped()
        job.server[0].says("snapshot 1 of version")
        for p in job.trainer:
            p.kill()
        lose_state(job, 1, FLUID_FAILPOINT=[*points.get(1, []), None][0])
        job.server[min(points)].end(code=-9)
        job.start_trainer(0)
        job.start_trainer(1)
        assert finish(job, points) == calm(kind)
        said = "".join(p.text() for p in job.server)
        assert "going on from snapshot" in said
        assert "begins anew" not in said
        assert not os.path.exists(tmp_path / "snap" / "going-back")


def flip(path):
    with open(path, "r+b") as f:
        byte = f.read(1)
        f.seek(0)
        f.write(bytes([byte[0] ^ 1]))


def start_until(job, commits, **second):
    """Server 0 is killed when it has made this many snapshots, and so many are
    whole. Trainers are stopped at their 30th step or before."""
    job.start_server(0, FLUID_FAILPOINT="snapshot.rename:%d" % (commits + 1))
    job.start_server(1, **second)
    for i in 0, 1:
        job.start_trainer(i, **stop_at(30))
    job.server[0].end(code=-9)


@pytest.mark.parametrize("kind, level, lost, damaged, run", [
    ("async", "process", 1, 1, ""), ("async-table", "process", 1, 0, ""),
    ("async-table", "memory", 0, 1, ""), ("async", "memory", 0, 0, "launched")])
def test_a_damaged_snapshot_is_replaced_by_an_older_one(
        tmp_path, calm, kind, level, lost, damaged, run):
    env = {"FLUID_DURABILITY": level, "FLUID_JOB": run}
    with counted(tmp_path, kind, env) as job:
        start_until(job, 2)
        flip(tmp_path / "snap" / "snapshot-2" / ("server-%d" % damaged) / "data")
        if lost:
            job.start_server(0)
        lose_state(job, lost)
        for p in job.trainer:
            p.go_on()
        assert finish(job) == calm(kind)
        assert re.search("(cannot restore snapshot 2|snapshot 2 cannot be "
                         "restored): .*snapshot-2/server-%d/data.* snapshot 1$"
                         % damaged, job.server[0].text(), re.M)
        assert "snapshot-2.damaged" in job.server[0].text()
        assert re.search("going on from snapshot 1 ", job.server[1].text())


def test_without_an_older_snapshot_the_job_ends(tmp_path):
    with counted(tmp_path, "async", {}) as job:
        start_until(job, 1)
        flip(tmp_path / "snap" / "snapshot-1" / "server-1" / "data")
        job.start_server(0)
        lose_state(job, 1)
        for p in job.trainer:
            p.go_on()
        job.server[0].end(code=1)
        assert re.search(r"server 1 \(\S+\) cannot restore snapshot 1, and there "
                         "is no older one of this job: .*snapshot-1/server-1/"
                         "data", job.server[0].text())


@pytest.mark.parametrize("whole, damaged", [(2, 0), (2, 1), (1, 0)])
def test_a_job_does_not_begin_with_a_damaged_snapshot(tmp_path, calm, whole,
                                                      damaged):
    env = {"FLUID_DURABILITY": "memory", "FLUID_RESTORE": "1"}
    with counted(tmp_path, "async", {"FLUID_DURABILITY": "memory"}) as job:
        start_until(job, whole)
        for p in job.server + job.trainer:
            p.kill()
        newest = tmp_path / "snap" / ("snapshot-%d" % whole)
        flip(newest / ("server-%d" % damaged) / "data")
        job.env.update(env)
        start_all(job)
        if whole == 1:
            job.server[0].end(code=1)
            assert "no older snapshot of this job was found" in \
                job.server[0].text()
            assert "remove %s" % newest in job.server[0].text()
            return
        assert finish(job) == calm("async")
        assert "going on from snapshot 1 " in job.server[0].text()


def node_flags(addresses, i):
    """For the launcher of a host among several."""
    return ["--cluster_node_ips", ",".join(addresses), "--node_ip",
            addresses[i]]


def test_two_jobs_do_not_share_a_directory(tmp_path):
    """They would remove each other's snapshots."""
    refused = r"FLUID_SNAPSHOT_DIR is \S+, where process \d+ writes"
    for name in "one", "two", "three":
        (tmp_path / name).mkdir()
    snap = {"FLUID_SNAPSHOT_DIR": str(tmp_path / "snap")}
    with counted(tmp_path / "one", "sync", snap) as one, \
            counted(tmp_path / "two", "sync", snap) as two:
        one.start_server(0).says("listening")
        two.start_server(0)
        ssh = tmp_path / "ssh"
        ssh.write_text("#!/bin/sh\nexec paddle agent\n")
        ssh.chmod(0o755)
        launched = [
            Process("launch%d" % i, [
                "paddle", "launch", *more, "--server_num", "1", "--worker_num",
                "1", counted_job.__file__], str(tmp_path / "three"),
                {**os.environ, **snap})
            for i, more in enumerate((
                [], ["--hosts", "127.0.0.1", "--ssh", str(ssh)],
                node_flags(own_addresses(), 0)))]
        for p in launched:
            with p:
                p.end(code=1)
                assert re.search(refused, p.text())
        two.server[0].end(code=1)
        assert re.search(refused, two.server[0].text())
        assert not os.path.exists(tmp_path / "snap" / "resume")
        one.server[0].kill()
        two.start_server(0).says("listening")


def test_resume_keeps_the_variables_that_all_hosts_get(tmp_path):
    env = {**os.environ, "FLUID_SNAPSHOT_DIR": str(tmp_path / "snap"),
           "CLICKS": "/data", "CLICKS_KEY": "no", "OTHER": "no",
           "GLOG_v": "1", "FLUID_TLS_KEY": "/key"}
    with Process("launch", [
            "paddle", "launch", "--server_num", "1", "--worker_num", "1",
            "--export", "CLICKS,CLICKS_KEY", "true"], str(tmp_path), env) as p:
        p.end()
    kept = (tmp_path / "snap" / "resume").read_text().splitlines()
    for line in "set CLICKS=/data", "set GLOG_v=1", "set FLUID_TLS_KEY=/key":
        assert line in kept
    assert not [k for k in kept if k.startswith(("set CLICKS_KEY",
                                                 "set OTHER"))]


def test_only_the_launcher_of_server_0_can_be_resumed(tmp_path):
    env = {**os.environ, "FLUID_SNAPSHOT_DIR": str(tmp_path / "snap")}
    for i in 1, 0:
        with Process("launch%d" % i, [
                "paddle", "launch", *node_flags(own_addresses(), i),
                "--server_num", "1", "--worker_num", "1", "true"],
                str(tmp_path), env) as p:
            p.end()
        assert os.path.exists(tmp_path / "snap" / "resume") == (i == 0)


@pytest.mark.parametrize("missing", [False, True])
def test_servers_have_directories_of_their_own(tmp_path, calm, missing):
    own = {"FLUID_SNAPSHOT_DIR": str(tmp_path / "own")}
    with counted(tmp_path, "async-table", {}) as job:
        start_until(job, 2, **own)
        assert not os.path.exists(tmp_path / "snap" / "snapshot-2" / "server-1")
        job.start_server(0)
        if missing:
            shutil.rmtree(tmp_path / "own" / "snapshot-2")
        lose_state(job, 1, **own)
        for p in job.trainer:
            p.go_on()
        assert finish(job) == calm("async-table")
        assert "going on from snapshot %d " % (1 if missing else 2) in \
            job.server[1].text()


@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_state_is_noticed_though_no_trainer_asks(tmp_path, calm, lost):
    """Signs of life are too rare for this: a new process reports itself."""
    with counted(tmp_path, "sync", {"FLUID_DURABILITY": "memory",
                                    "FLUID_LEASE": "600",
                                    "FLUID_STALL": "600"}) as job:
        start_all(job, stop_both=60)
        for p in job.trainer:
            p.stopped()
        job.server[0].says("snapshot 1 of version")
        lose_state(job, lost)
        job.server[0].says("generation 1")
        for p in job.trainer:
            p.go_on()
        assert finish(job) == calm("sync")


@pytest.mark.parametrize("lost", [0, 1])
def test_a_job_goes_back_twice(tmp_path, calm, lost):
    """The second time before the next snapshot, or just after it."""
    with counted(tmp_path, "sync", {}) as job:
        start_all(job, stop=60)
        job.trainer[1].stopped()
        job.server[0].says("snapshot 1 of version")
        lose_state(job, 1)
        job.server[0].says("generation 1")
        for p in job.trainer:
            p.go_on() if p is job.trainer[1] else None
            p.end(code=1)
        job.start_trainer(0)
        job.start_trainer(1, **stop_at(40)).stopped()
        lose_state(job, lost).says("generation 2")
        job.trainer[1].go_on()
        assert finish(job) == calm("sync")


def test_server_0_loses_its_state_before_the_next_snapshot(tmp_path, calm):
    """Its state began with a snapshot that another state took."""
    with counted(tmp_path, "sync", {}) as job:
        start_all(job, stop=60)
        job.trainer[1].stopped()
        job.server[0].says("snapshot 1 of version")
        for i in 1, 2, 3:
            lose_state(job, 0)
            job.server[1].says("generation %d" % i)  # it knows the new state
        job.trainer[1].go_on()
        assert finish(job) == calm("sync")


def test_an_incomplete_snapshot_is_not_used(tmp_path, calm):
    """Server 1 is killed while it writes the newest one."""
    with counted(tmp_path, "sync", {}) as job:
        start_all(job, stop=50)
        job.trainer[1].stopped()
        job.server[0].says(r"snapshot \d+ of version")
        for p in job.server:
            p.kill()
        job.start_server(0)
        job.start_server(1, FLUID_FAILPOINT="snapshot.block")
        job.trainer[1].go_on()
        job.server[1].end(code=-9)
        newest = max(int(name.partition("-")[2]) for name in snapshots(job)
                     if name.startswith("snapshot-"))
        assert not (tmp_path / "snap" / ("snapshot-%d" % newest)
                    / "__manifest__").exists()
        lose_state(job, 1)
        assert finish(job) == calm("sync")
        back = job.server[0].says(r"went back to snapshot (\d+)").group(1)
        assert int(back) < newest


def start_as(job, other):
    """Start a job with the snapshots of another one that was killed."""
    for p in other.server + other.trainer:
        p.kill()
    job.env.update({"FLUID_SNAPSHOT_DIR": other.env["FLUID_SNAPSHOT_DIR"],
                    "FLUID_RESTORE": "1"})
    job.argv = other.argv
    start_all(job)


@pytest.mark.parametrize("kind, servers", [("sync-table", 3), ("sync", 1)])
def test_a_snapshot_restores_on_another_number_of_servers(tmp_path, calm, kind,
                                                          servers):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with counted(tmp_path / "a", kind, {}) as first, \
            counted(tmp_path / "b", kind, {}, servers=servers) as job:
        start_all(first, stop=100)
        first.server[0].says("snapshot 1 of version")
        start_as(job, first)
        assert finish(job) == calm(kind)
        assert "going on from snapshot" in job.server[0].text()


def test_without_a_snapshot_the_job_ends(tmp_path):
    with counted(tmp_path, "sync", {"FLUID_SNAPSHOT_EVERY": "1000"}) as job:
        start_all(job, stop=100)
        job.server[0].says("version 1: the job trains")
        job.trainer[1].stopped()
        lose_state(job, 1)
        job.trainer[1].go_on()
        assert job.server[0].end(code=1)
        assert "has lost its parameters" in job.server[0].text()


def launcher(folder, job, words):
    env = {**os.environ, **job.env, "FLUID_DURABILITY": "memory"}
    return Process("launch%d" % len(os.listdir(folder)), ["paddle", *words],
                   folder, {k: str(v) for k, v in env.items()}, 90)


def kill_tree(p):
    """Kill all processes of the launcher's job, and the launcher."""
    mark = ("FLUID_SNAPSHOT_DIR=%s\0" % p.snapshots).encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % name, "rb") as f:
                if mark in f.read():
                    os.kill(int(name), 9)
        except OSError:
            pass
    p.end(code=None)


def test_resume_goes_on_after_everything_was_killed(tmp_path, calm):
    folder = str(tmp_path)
    job = counted(folder, "sync", {})
    job.env["FLUID_FAILPOINT"] = "step.begin:100:stop"
    words = ["launch", "--server_num", "2", "--worker_num", "2",
             counted_job.__file__, *job.argv]
    with job, launcher(folder, job, words) as first:
        first.snapshots = job.env["FLUID_SNAPSHOT_DIR"]
        log = os.path.join(folder, "logs", "serverlog.0")
        first._until(lambda: os.path.exists(log) and "snapshot 1 of" in
                     open(log).read(), None, "takes no snapshot")
        kill_tree(first)
        assert not os.path.exists(os.path.join(folder, "model"))
        env = {k: v for k, v in os.environ.items() if "FLUID_" not in k}
        with Process("resume", ["paddle", "resume", first.snapshots], folder,
                     env, 90) as again:
            again.end()
        assert "going on from snapshot" in open(log).read()
        assert digest(folder) == calm("sync")
        with open(os.path.join(first.snapshots, "resume")) as f:
            kept = f.read()
        assert "word launch" in kept and "RESTORE" not in kept


def test_there_is_nothing_to_resume(tmp_path):
    assert "has no whole snapshot" in paddle("resume", str(tmp_path), code=1)
    missing = str(tmp_path / "none")
    assert ("folder %s: No such file or directory; name the folder of the job's "
            "snapshots" % missing) in paddle("resume", missing, code=1)
