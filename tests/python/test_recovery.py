# SPDX-License-Identifier: Apache-2.0
"""Servers that are killed and started again: the job goes on with what they
held, and a synchronous one ends with the bits of a run that nobody disturbed."""
import os
import time

import pytest

import sync_job
from cluster import Cluster
from test_sync import load, same_bits

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
if "FLUID_KILL_MATRIX" not in os.environ:
    SCENES = SCENES[::3]


def start(folder, recipe):
    os.makedirs(folder, exist_ok=True)
    job = Cluster(folder, sync_job.__file__, 2, 2, env=KEPT,
                  argv=[recipe, "split"], seconds=120)
    return job


def results(folder):
    return [load(folder, i) for i in range(2)]


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """What a job ends with that nobody disturbs; by recipe."""
    made = {}

    def result(recipe):
        if recipe not in made:
            folder = tmp_path_factory.mktemp(recipe)
            with start(folder, recipe) as job:
                job.start().finish()
            assert not os.listdir(os.path.join(folder, "state"))
            made[recipe] = results(folder)
        return made[recipe]

    return result


def play(folder, recipe, killed):
    """Play a job; killed: the failpoint of each server's first process."""
    with start(folder, recipe) as job:
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
    assert not os.listdir(os.path.join(str(folder), "state"))
    return results(folder)


@pytest.mark.parametrize("recipe, killed", SCENES)
def test_a_killed_server_changes_no_bit(tmp_path, calm, recipe, killed):
    got = play(tmp_path, recipe, killed)
    for mine, theirs in zip(got, calm(recipe)):
        same_bits(mine, theirs)
