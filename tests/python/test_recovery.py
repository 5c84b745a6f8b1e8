# SPDX-License-Identifier: Apache-2.0
"""Servers that are killed and started again: the job goes on with what they
held, and ends with the bits of a run that nobody disturbed."""
import os
import re
import signal
import subprocess
import time

import numpy as np
import pytest

import async_job
import returning_job
import sync_job
from cluster import Cluster
from test_sync import same_bits

KEPT = {"FLUID_LINGER": "0.1", "FLUID_NO_FUSE": "1",
        "FLUID_DURABILITY": "process", "FLUID_RESTART": "60"}

# Who is killed at which store, and which time it passes there. All of them with
# FLUID_KILL_MATRIX=1, otherwise every third.
SCENES = [
    ("adam", {0: "stage.bytes:3"}), ("adam", {1: "stage.entry:5"}),
    ("adam", {1: "stage.count:4"}), ("adam", {0: "image.written:9"}),
    ("adam", {0: "image.selected:12"}), ("adam", {1: "owner.undo:9"}),
    ("adam", {0: "owner.live:13"}), ("adam", {1: "owner.applied:20"}),
    ("adam", {0: "owner.next:31", 1: "owner.live:40"}),
    ("noam", {1: "owner.rates:3"}), ("noam", {0: "owner.done:4"}),
    ("noam", {0: "round.version:2"}), ("noam", {1: "round.dropped:5"}),
    ("rows", {0: "owner.live:19"}), ("rows", {1: "owner.applied:22"}),
    ("table", {0: "table.row:7"}), ("table", {1: "table.count:11"}),
    ("table", {0: "table.redo:1"}), ("table", {1: "table.dir:1"}),
    ("table", {0: "owner.live:60", 1: "owner.applied:70"}),
]
ASYNC = [
    ("1", {1: "owner.live:21"}), ("1", {0: "owner.rates:5"}),
    ("1", {0: "owner.window:9", 1: "owner.marked:12"}),
    ("2", {1: "owner.applied:40"}), ("2", {0: "owner.done:7"}),
    ("1", {0: "image.selected:4"}),
]
if "FLUID_KILL_MATRIX" not in os.environ:
    SCENES, ASYNC = SCENES[::4], ASYNC[::4]


def sync(folder, recipe):
    return Cluster(folder, sync_job.__file__, 2, 2, env=KEPT,
                   argv=[recipe, "split"], seconds=120)


def asynchronous(folder, owners):
    return Cluster(folder, async_job.__file__, 2, 2, seconds=120, argv=["25"],
                   env={**KEPT, "FLUID_OWNERS": owners})


def results(folder):
    """What trainers and servers have written, by name of the file."""
    found = {}
    for name in sorted(os.listdir(str(folder))):
        if name.endswith(".npz"):
            with np.load(os.path.join(str(folder), name)) as f:
                found[name] = {key: f[key] for key in f.files}
    assert len(found) == 2
    return found


def play(job, killed):
    """Play a job; killed: the failpoint of each server's first process."""
    with job:
        for i in range(2):
            job.start_server(i, FLUID_FAILPOINT=killed.get(i))
        for i in range(2):
            job.start_trainer(i)
        first = list(job.server)
        while any(first[i] is job.server[i] for i in killed):
            for i in killed:
                if first[i] is job.server[i] and first[i].code() is not None:
                    first[i].end(code=-9)
                    job.start_server(i).says("going on at version")
            time.sleep(0.01)
        job.finish()
    assert not os.listdir(os.path.join(job.folder, "state"))
    return results(job.folder)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """What a job ends with that nobody disturbs; by kind and recipe."""
    made = {}

    def result(kind, recipe):
        if (kind, recipe) not in made:
            made[kind, recipe] = play(kind(tmp_path_factory.mktemp(recipe),
                                           recipe), {})
        return made[kind, recipe]

    return result


def compare(got, want):
    assert got.keys() == want.keys()
    for name in got:
        same_bits(got[name], want[name])


@pytest.mark.parametrize("recipe, killed", SCENES)
def test_a_killed_server_changes_no_bit(tmp_path, calm, recipe, killed):
    compare(play(sync(tmp_path, recipe), killed), calm(sync, recipe))


@pytest.mark.parametrize("owners, killed", ASYNC)
def test_every_asynchronous_push_counts_once(tmp_path, calm, owners, killed):
    compare(play(asynchronous(tmp_path, owners), killed),
            calm(asynchronous, owners))


def launch(folder, servers, kill=()):
    """Launch returning_job.py; each server of `kill` is killed once, when the
    one before it is back. The digest of the model, and what was printed."""
    env = {**os.environ, **KEPT, "FLUID_STATE_DIR": str(folder / "state")}
    job = subprocess.Popen(
        ["paddle", "launch", "--server_num", str(servers), "--max_restarts",
         "2", returning_job.__file__, "120"], cwd=folder, env=env, text=True,
        stderr=subprocess.PIPE)
    seen = ""
    waits = ["trainer 1 is process"] + ["going on at version"] * len(kill)
    for at, wait in enumerate(waits):
        log = folder / "logs" / ("serverlog.%d" % kill[at - 1]) if at else None
        while wait not in (log.read_text() if at else seen):
            seen += "" if at else job.stderr.readline()
            time.sleep(0.01 if at else 0)
        if at < len(kill):
            until_trained(folder / "logs" / ("serverlog.%d" % kill[at]))
            pid = re.search(r"server %d at \S+ is process (\d+)" % kill[at],
                            seen).group(1)
            os.kill(int(pid), signal.SIGKILL)
    seen += job.communicate(timeout=120)[1]
    assert job.returncode == 0, seen
    assert not os.listdir(str(folder / "state"))
    return paddle("digest", folder / "model").split()[0], seen


def until_trained(log):
    while "the job trains" not in (log.read_text() if log.exists() else ""):
        time.sleep(0.01)


def paddle(*words):
    return subprocess.run(["paddle"] + [str(w) for w in words], check=True,
                          text=True, stdout=subprocess.PIPE).stdout


def test_the_launcher_brings_killed_servers_back(tmp_path):
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    for folder in calm, killed:
        folder.mkdir()
    want, _ = launch(calm, servers=1)
    got, seen = launch(killed, servers=2, kill=[0, 1])
    assert got == want  # whatever was killed, and however many servers
    for i in range(2):
        assert re.search(r"launch: server %d ended after .* signal 9 .*; it is "
                         r"started again in 1 s" % i, seen)
    assert paddle("ckpt", "diff", calm / "model", killed / "model") == \
        "the folders are equal\n"
    assert "is as it was saved" in paddle("ckpt", "verify", killed / "model")
