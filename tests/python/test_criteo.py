# SPDX-License-Identifier: Apache-2.0
"""Real clicks: from Criteo's raw lines, still packed, to a model that knows
something of rows it never saw."""
import gzip
import os
import subprocess

import numpy as np
import pytest

from cluster import LIMIT
import paddle.fluid as fluid
from paddle.fluid import layers

DIM, PIPE = 100003, "paddle read criteo --hash crc32 --dim 100003"


@pytest.fixture
def samples(shared):
    folder = os.path.join(shared, "criteo")
    if not os.path.exists(os.path.join(folder, "kaggle.test.txt.gz")):
        pytest.skip("no samples of Criteo in FLUID_SHARED")
    return folder


def network():
    dense = layers.data("dense", [13])
    slots = [layers.data("C%d" % i, [1], dtype="int64", lod_level=1)
             for i in range(26)]
    label = layers.data("label", [1], dtype="int64")
    pools = [layers.sequence_pool(layers.embedding(
        ids, [DIM, 8], is_sparse=True, param_attr=fluid.ParamAttr(
            "table", initializer=fluid.initializer.Uniform(-.1, .1, 5))),
        "sum") for ids in slots]
    x = layers.concat(pools + [layers.log(layers.relu(dense) + 1.0)], axis=1)
    for size, act, seed in (32, "relu", 7), (2, "softmax", 9):
        x = layers.fc(x, size, act=act, param_attr=fluid.initializer.Xavier(
            seed=seed))
    return ([dense] + slots + [label], x,
            layers.mean(layers.cross_entropy(x, label)))


def held_out(path, feeds):
    """A batch of all rows, through the command, and who clicked."""
    with gzip.open(path) as f:
        text = subprocess.run(PIPE.split(), input=f.read(), check=True,
                              stdout=subprocess.PIPE, timeout=LIMIT).stdout
    rows = np.array([line.split() for line in text.splitlines()], "float64")
    batch = {"dense": rows[:, 1:14].astype("float32"),
             "label": rows[:, [67]].astype("int64")}
    for i, v in enumerate(feeds[1:-1]):
        batch[v.name] = fluid.create_lod_tensor(
            rows[:, [15 + 2 * i]].astype("int64"), [[1] * len(rows)],
            fluid.CPUPlace())
    return batch, rows[:, 67] == 1


def auc(chance, clicked):
    """How often a click has a better chance than no click."""
    return np.mean(chance[clicked][:, None] > chance[~clicked])


def test_one_pass_over_raw_clicks_tells_clicks_apart(samples, programs, exe):
    feeds, predict, loss = network()
    test = programs[0].clone(for_test=True)
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    exe.run(programs[1])
    batch, clicked = held_out(os.path.join(samples, "kaggle.test.txt.gz"),
                              feeds)
    assert (len(clicked), clicked.sum()) == (391, 86)

    def score():
        chance, = exe.run(test, feed=batch, fetch_list=[predict])
        return auc(chance[:, 1], clicked)
    before = score()
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var(feeds)
    dataset.set_batch_size(100)
    dataset.set_thread(1)
    dataset.set_pipe_command(PIPE)
    dataset.set_filelist([os.path.join(samples, "kaggle.train.txt.gz")])
    exe.train_from_dataset(programs[0], dataset)
    assert before < 0.6 < 0.68 < score()
