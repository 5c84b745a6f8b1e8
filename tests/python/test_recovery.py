# SPDX-License-Identifier: Apache-2.0
"""Servers that are killed and started again: the job goes on with what they
held, and ends with the bits of a run that nobody disturbed."""
import os
import time

import numpy as np
import pytest

import async_job
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
