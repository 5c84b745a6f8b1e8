# SPDX-License-Identifier: Apache-2.0
"""Trainers on files that are killed and started again: every example is used
once, and the model is that of a job that nobody disturbed."""
import os
import subprocess

import pytest

import counted_job
from cluster import Cluster
from kills import scene_word

ENV = {"FLUID_LINGER": "0.1", "FLUID_REJOIN": "300", "FLUID_LEASE": "4"}
KEPT = {"FLUID_DURABILITY": "process", "FLUID_RESTART": "300"}
MEMORY = {"DATASET": "InMemoryDataset"}


def counted(folder, kind, env):
    files = counted_job.write_files(folder, 6, 18)
    return Cluster(folder, counted_job.__file__, 2, 2,
                   env={**ENV, **env}, argv=[kind, "2", *files])


def digest(folder):
    return subprocess.run(["paddle", "digest", os.path.join(folder, "model")],
                          check=True, text=True, stdout=subprocess.PIPE,
                          ).stdout.split()[0]


def play(job, killed):
    """Play a job; killed: the failpoints of each trainer's processes, one
    after the other."""
    with job:
        for i in range(2):
            job.start_server(i)
        for i in range(2):
            for at in killed.get(i, ()):
                job.start_trainer(i, FLUID_FAILPOINT=at).end(code=-9)
            job.start_trainer(i)
        job.finish()
        return digest(job.folder)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """The digest of the model of a job that nobody disturbs."""
    made = {}

    def result(kind, env):
        key = kind, *env
        if key not in made:
            made[key] = play(counted(tmp_path_factory.mktemp(kind), kind, env),
                             {})
        return made[key]

    return result


# What a trainer is killed at, each time that it is started.
SCENES = [
    ("sync", {}, ["step.push:3", "step.sent:4"]),
    ("sync", MEMORY, ["step.end:8"]),
    ("sync-table", KEPT, ["step.begin:5", "step.push:2"]),
    ("async", {}, ["step.push:3", "step.push:1", "step.end:9"]),
    ("async", {**KEPT, **MEMORY}, ["step.push:7", "step.sent:2"]),
    ("async-table", KEPT, ["step.push:5", "step.sent:1"]),
    ("async-groups", {}, ["push.sent:3", "push.sent:1", "push.end:4"]),
    ("async-groups", {**KEPT, **MEMORY}, ["push.applied:3", "push.commit:2"]),
    ("async-groups-table", KEPT, ["push.sent:5", "push.applied:1"]),
    ("async-groups-table", MEMORY, ["push.commit:4", "push.end:6"]),
]
if "FLUID_KILL_MATRIX" not in os.environ:
    SCENES = SCENES[::4]


@pytest.mark.parametrize("kind, env, killed", SCENES, ids=scene_word)
def test_a_killed_trainer_uses_every_example_once(tmp_path, calm, kind, env,
                                                  killed):
    want = calm(kind, {k: v for k, v in env.items() if k in MEMORY})
    assert play(counted(tmp_path, kind, env), {1: killed}) == want


def test_a_trainer_that_was_stopped_uses_every_example_once(tmp_path, calm):
    """It makes its batch again, unless it has joined before it sends."""
    with counted(tmp_path, "sync", {"FLUID_LEASE": "1"}) as job:
        for i in range(2):
            job.start_server(i)
        job.start_trainer(0)
        job.start_trainer(1, FLUID_FAILPOINT="step.push:7:stop")
        job.server[0].says("trainer 1 .* is lost: its lease ran out")
        job.trainer[1].go_on()
        job.finish()
        assert "it joins again" in job.trainer[1].text()
        assert digest(job.folder) == calm("sync", {})


def test_other_data_than_before_is_refused(tmp_path):
    with counted(tmp_path, "sync", {}) as job:
        job.start_server(0)
        job.start_server(1)
        job.start_trainer(0)
        job.start_trainer(1, FLUID_FAILPOINT="step.end:9").end(code=-9)
        other = job.start_trainer(1, argv=job.argv[:-1])
        other.end(code=1)
        assert "began with other data" in other.text()
