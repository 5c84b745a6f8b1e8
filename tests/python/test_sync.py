# SPDX-License-Identifier: Apache-2.0
"""Synchronous jobs: the same bits every time, and those of one machine."""
import os
import subprocess
import sys

import numpy as np
import pytest

import sync_job
from cluster import BUILD, Cluster

SCRIPT = sync_job.__file__
QUICK = {"FLUID_LINGER": "0.1", "FLUID_NO_FUSE": "1"}


def load(folder, name):
    with np.load(os.path.join(str(folder), "out-%s.npz" % name)) as f:
        return {key: f[key] for key in f.files}


def alone(folder, recipe):
    """The same network trained by one process, op by op."""
    env = dict(os.environ, PYTHONPATH=os.path.join(BUILD, "python"),
               FLUID_NO_FUSE="1")
    env.pop("PADDLE_TRAINING_ROLE", None)
    subprocess.run([sys.executable, SCRIPT, recipe, "same"], cwd=folder,
                   env=env, check=True, timeout=120)
    return load(folder, "local")


def together(folder, recipe, data, servers=2, trainers=2):
    """What each trainer of a job ended with."""
    os.makedirs(folder, exist_ok=True)
    with Cluster(folder, SCRIPT, servers, trainers, env=QUICK,
                 argv=[recipe, data], seconds=120) as job:
        job.start().finish()
    return [load(folder, i) for i in range(trainers)]


def same_bits(a, b, but=()):
    assert a.keys() == b.keys()
    for key in a.keys() - set(but):
        assert a[key].tobytes() == b[key].tobytes(), key


@pytest.mark.parametrize("recipe", sorted(sync_job.RECIPES))
def test_equal_batches_give_the_bits_of_one_machine(tmp_path, recipe):
    local = alone(tmp_path, recipe)
    first, second = together(tmp_path, recipe, "same")
    same_bits(first, local)
    same_bits(second, local)


@pytest.mark.parametrize("recipe", ["sgd", "momentum", "adam", "l2"])
def test_shares_of_a_batch_are_worth_the_whole(tmp_path, recipe):
    local = alone(tmp_path, recipe)
    first, second = together(tmp_path, recipe, "split")
    same_bits(first, second, but=["losses"])
    for key in local.keys() - {"losses"}:
        np.testing.assert_allclose(first[key], local[key], rtol=1e-5,
                                   atol=1e-5)
    np.testing.assert_allclose((first["losses"] + second["losses"]) / 2,
                               local["losses"], rtol=1e-5)


def test_runs_are_alike_to_the_last_bit(tmp_path):
    runs = [together(tmp_path / str(i), "momentum", "split")
            for i in range(int(os.environ.get("FLUID_RUNS", "3")))]
    for run in runs[1:]:
        for a, b in zip(run, runs[0]):
            same_bits(a, b)


def test_four_trainers_and_two_servers(tmp_path):
    local = alone(tmp_path, "sgd")
    for out in together(tmp_path, "sgd", "split", trainers=4):
        for key in local.keys() - {"losses"}:
            np.testing.assert_allclose(out[key], local[key], rtol=1e-5,
                                       atol=1e-5)
