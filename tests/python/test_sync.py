# SPDX-License-Identifier: Apache-2.0
"""Synchronous jobs: the same bits every time, and those of one machine."""
import os
import subprocess
import sys

import numpy as np
import pytest

import ahead_job
import sync_job
from cluster import BUILD, LIMIT, Cluster

SCRIPT = sync_job.__file__
QUICK = {"FLUID_LINGER": "0.1", "FLUID_NO_FUSE": "1"}


def load(folder, name):
    with np.load(os.path.join(str(folder), "out-%s.npz" % name)) as f:
        return {key: f[key] for key in f.files}


def alone(folder, *recipes):
    """The same network trained by one process, op by op; one for each recipe."""
    env = dict(os.environ, PYTHONPATH=os.path.join(BUILD, "python"),
               FLUID_NO_FUSE="1")
    env.pop("PADDLE_TRAINING_ROLE", None)
    subprocess.run([sys.executable, SCRIPT, ",".join(recipes), "same"],
                   cwd=folder, env=env, check=True, timeout=LIMIT)
    found = [load(folder, recipe) for recipe in recipes]
    return found[0] if len(found) == 1 else found


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """What one process ends with, by the recipe."""
    recipes = sorted(sync_job.RECIPES)
    return dict(zip(recipes, alone(tmp_path_factory.mktemp("local"),
                                   *recipes)))


def together(folder, recipe, data, servers=2, trainers=2):
    """What each trainer of a job ended with."""
    os.makedirs(folder, exist_ok=True)
    with Cluster(folder, SCRIPT, servers, trainers, env=QUICK,
                 argv=[recipe, data]) as job:
        job.start().finish()
    return [load(folder, i) for i in range(trainers)]


def same_bits(a, b, but=()):
    assert a.keys() == b.keys()
    for key in a.keys() - set(but):
        assert a[key].tobytes() == b[key].tobytes(), key


@pytest.mark.parametrize("recipe", sorted(sync_job.RECIPES))
def test_equal_batches_give_the_bits_of_one_machine(tmp_path, local, recipe):
    first, second = together(tmp_path, recipe, "same")
    same_bits(first, local[recipe])
    same_bits(second, local[recipe])


@pytest.mark.parametrize("recipe", ["sgd", "momentum", "adam", "l2"])
def test_shares_of_a_batch_are_worth_the_whole(tmp_path, local, recipe):
    whole = local[recipe]
    first, second = together(tmp_path, recipe, "split")
    same_bits(first, second, but=["losses"])
    for key in whole.keys() - {"losses"}:
        np.testing.assert_allclose(first[key], whole[key], rtol=1e-5,
                                   atol=1e-5)
    np.testing.assert_allclose((first["losses"] + second["losses"]) / 2,
                               whole["losses"], rtol=1e-5)


def test_runs_are_alike_to_the_last_bit(tmp_path):
    runs = [together(tmp_path / str(i), "momentum", "split")
            for i in range(int(os.environ.get("FLUID_RUNS", "2")))]
    for run in runs[1:]:
        for a, b in zip(run, runs[0]):
            same_bits(a, b)


def click_files(folder, n=2, examples=200):
    """Files of clicks: one to three ids, and a label."""
    draw = np.random.RandomState(5)
    for part in range(n):
        with open(os.path.join(str(folder), "part-%d" % part), "w") as f:
            for _ in range(examples):
                ids = draw.randint(0, 50, draw.randint(1, 4))
                f.write("%d %s 1 %d\n" % (len(ids), " ".join(map(str, ids)),
                                         ids[0] % 2))
    return [os.path.join(str(folder), "part-%d" % i) for i in range(n)]


def test_rows_that_are_asked_for_ahead_change_no_bit(tmp_path):
    files, ends = click_files(tmp_path), []
    for ahead in "01":
        folder = tmp_path / ahead
        os.makedirs(folder)
        with Cluster(folder, ahead_job.__file__, 2, 2, argv=files,
                     env={"FLUID_LINGER": "0.1",
                          "FLUID_PREFETCH": ahead}) as job:
            job.start().finish()
        ends += [load(folder, i) for i in range(2)]
    for end in ends[1:]:
        same_bits(end, ends[0])


def test_four_trainers_and_two_servers(tmp_path, local):
    whole = local["sgd"]
    for out in together(tmp_path, "sgd", "split", trainers=4):
        for key in whole.keys() - {"losses"}:
            np.testing.assert_allclose(out[key], whole[key], rtol=1e-5,
                                       atol=1e-5)
