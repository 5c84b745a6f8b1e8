# SPDX-License-Identifier: Apache-2.0
"""Level `host`: servers whose processes are killed and whose memory, the state
directory, is removed, as a loss of the host does. They are made again from the
journal, and the job ends with the bits of a run that nobody disturbed."""
import glob
import os
import shutil
import subprocess

import pytest

import async_job
import sync_job
import test_recovery
from cluster import Cluster
from kills import scene_word
from test_recovery import compare, results

HOST = {"FLUID_LINGER": "0.1", "FLUID_NO_FUSE": "1", "FLUID_DURABILITY": "host",
        "FLUID_RESTART": "60"}
# A small journal has a new base after every few pushes.
SMALL = {"FLUID_JOURNAL_BYTES": "20000"}
SCENES = [
    ("adam", {0: "journal.write:9"}, {}), ("adam", {1: "journal.sync:8"}, {}),
    ("noam", {0: "owner.live:13", 1: "image.selected:9"}, {}),
    ("rows", {0: "journal.base:2"}, SMALL),
    ("table", {0: "owner.applied:40", 1: "journal.sync:12"}, SMALL),
    ("table", {1: "journal.base:2"}, SMALL),
]
ASYNC = [
    ("1", {1: "owner.live:21"}, {}), ("2", {0: "journal.sync:15"}, {}),
    ("1", {0: "journal.write:20", 1: "journal.base:2"}, SMALL),
]
if "FLUID_KILL_MATRIX" not in os.environ:
    SCENES, ASYNC = SCENES[2::2], ASYNC[::2]


def sync(folder, recipe, env):
    return Cluster(folder, sync_job.__file__, 2, 2, argv=[recipe, "split"],
                   env={**HOST, **env, "FLUID_JOURNAL_DIR":
                        os.path.join(str(folder), "journal")})


def asynchronous(folder, owners, env):
    return Cluster(folder, async_job.__file__, 2, 2, argv=["25"],
                   env={**HOST, **env, "FLUID_OWNERS": owners,
                        "FLUID_JOURNAL_DIR":
                        os.path.join(str(folder), "journal")})


def lose_memory(job, server):
    """What a reboot takes."""
    found = glob.glob(os.path.join(job.folder, "state", "*-server-%d" % server))
    assert len(found) == 1
    shutil.rmtree(found[0])


def play(job, killed):
    """Play a job; killed: the failpoint of each server's first process."""
    played = test_recovery.play(job, killed, lose_memory,
                                "the state was made again from")
    assert not os.listdir(os.path.join(job.folder, "journal"))
    # Pushes that meet a new base wait at the server, not for their repeat.
    assert "the journal begins anew" not in "".join(
        p.text() for p in job.started)
    return played


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    made = {}

    def result(kind, recipe):
        if (kind, recipe) not in made:
            made[kind, recipe] = play(
                kind(tmp_path_factory.mktemp(recipe), recipe, {}), {})
        return made[kind, recipe]

    return result


@pytest.mark.parametrize("recipe, killed, env", SCENES, ids=scene_word)
def test_a_lost_host_changes_no_bit(tmp_path, calm, recipe, killed, env):
    compare(play(sync(tmp_path, recipe, env), killed), calm(sync, recipe))


@pytest.mark.parametrize("owners, killed, env", ASYNC, ids=scene_word)
def test_every_push_survives_a_lost_host_once(tmp_path, calm, owners, killed,
                                              env):
    compare(play(asynchronous(tmp_path, owners, env), killed),
            calm(asynchronous, owners))


@pytest.mark.parametrize("kind, recipe, points", [
    (sync, "table", ["owner.applied:40", "owner.applied:3"]),
    (sync, "adam", ["owner.live:13", "recover.replay:1"]),
    (asynchronous, "1", ["owner.live:21", "owner.done:2", "owner.done:3"])])
def test_a_server_is_killed_while_it_is_made_again(tmp_path, calm, kind,
                                                   recipe, points):
    """What the journal has and the killed process had not done yet must not be
    lost. points: where server 1 is killed, one process after the other."""
    with kind(tmp_path, recipe, {}) as job:
        job.start_server(0)
        job.start_server(1, FLUID_FAILPOINT=points[0])
        for i in range(2):
            job.start_trainer(i)
        job.server[1].end(code=-9)
        lose_memory(job, 1)
        for point in points[1:]:
            job.start_server(1, FLUID_FAILPOINT=point).end(code=-9)
        job.start_server(1).says("the state was made again from")
        job.finish()
    compare(results(job.folder), calm(kind, recipe))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own for the journals."""
    path = tmp_path / "journal"
    path.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m,mode=700", "none", path]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        pytest.skip("root may mount here, and nobody else")
    yield path
    subprocess.run(["umount", path], check=True)


def fill(disk, spare):
    """Leave `spare` bytes of room on the disk."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "filler").write_bytes(bytes(free - spare))


def test_a_full_disk_makes_pushes_wait(tmp_path, calm, small_disk):
    job = sync(tmp_path, "adam", {})
    with job:
        for i in range(2):
            job.start_server(i).says("the journal is in")
        fill(small_disk, spare=16384)
        for i in range(2):
            job.start_trainer(i)
        full = "the journal has no room"
        job.server[0]._until(lambda: any(full in p.text() for p in job.server),
                             None, "and server 1 have room")
        (small_disk / "filler").unlink()
        job.finish()
        for p in job.server:
            assert p.text().count(full) <= 2
    assert not os.listdir(small_disk)
    compare(results(job.folder), calm(sync, "adam"))


def test_a_journal_that_others_may_write_is_refused(tmp_path):
    """Its content would become the parameters of the server."""
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal").chmod(0o777)
    with sync(tmp_path, "adam", {}) as job:
        job.start_server(0).end(code=1)
        assert "journal is not a directory that only its owner" in \
            job.server[0].text()
        assert not os.listdir(tmp_path / "state")
