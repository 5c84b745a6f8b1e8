# SPDX-License-Identifier: Apache-2.0
"""Clicks: a model with sparse features, trained by servers and trainers.

    python clicks.py make DIR [LINES]          write generated click logs
    paddle launch clicks.py train DIR          train: 2 servers, 2 trainers
    python clicks.py train DIR                 train in one process
    python clicks.py score DIR                 test the model on other clicks

A line of a log has eight features and whether it was clicked. Every value of
a feature has a hidden weight, and the sum of the weights makes a click likely
or not. The AUC measures how much of this the model has learnt: guesses reach
0.5, and the hidden weights themselves reach 0.92, since clicks are random.
"""
import os
import sys

import numpy as np

import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler \
    import DistributeTranspilerConfig, fleet

FEATURES, VALUES, WIDTH = 8, 20000, 8
FILES = 8  # the last one is kept for the score
EPOCHS, BATCH = 2, 100


# --- the logs ----------------------------------------------------------------

def rule(values):
    """How likely a click is, as a logit, for rows of values."""
    weights = np.random.RandomState(1).randn(FEATURES, VALUES)
    return weights[np.arange(FEATURES), values].sum(1) - 1


def make(folder, lines=40000):
    """Lines of slots: `1 id` for every feature, `1 label` at the end."""
    os.makedirs(folder, exist_ok=True)
    lines = int(lines)  # of a file
    rng = np.random.RandomState(2)
    for part in range(FILES):
        # a few values are common, most are rare
        ids = (VALUES * rng.rand(lines, FEATURES) ** 4).astype("int64")
        label = rng.rand(lines) < 1 / (1 + np.exp(-rule(ids)))
        with open(os.path.join(folder, "part-%d" % part), "w") as f:
            for row, clicked in zip(ids.tolist(), label.tolist()):
                f.write("".join("1 %d " % (i * VALUES + v)
                                for i, v in enumerate(row)))
                f.write("1 %d\n" % clicked)
    print("%d lines in %s" % (FILES * lines, folder))


def parts(folder):
    names = [os.path.join(folder, "part-%d" % i) for i in range(FILES)]
    return names[:-1], names[-1:]


# --- the network -------------------------------------------------------------

def network():
    """The feeds, the chance of a click, the loss and the AUC."""
    feeds = [fluid.layers.data("f%d" % i, [1], dtype="int64", lod_level=1)
             for i in range(FEATURES)]
    label = fluid.layers.data("label", [1], dtype="int64")
    embedded = [fluid.layers.sequence_pool(fluid.layers.embedding(
        x, [FEATURES * VALUES, WIDTH], is_sparse=True,
        param_attr=fluid.ParamAttr("table")), "sum") for x in feeds]
    hidden = fluid.layers.fc(fluid.layers.concat(embedded, axis=1), 32,
                             act="relu")
    predict = fluid.layers.fc(hidden, 2, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(predict, label))
    auc = fluid.layers.auc(predict, label, num_thresholds=2 ** 12)[0]
    return feeds + [label], predict, loss, auc


def dataset_of(feeds, files):
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var(feeds)
    dataset.set_batch_size(BATCH)
    dataset.set_thread(1)
    dataset.set_filelist(files)
    return dataset


# --- training ----------------------------------------------------------------

def train(folder):
    feeds, predict, loss, auc = network()
    optimizer = fluid.optimizer.Adagrad(0.05)
    files, _ = parts(folder)
    if not {"TRAINING_ROLE", "PADDLE_TRAINING_ROLE"} & set(os.environ):
        optimizer.minimize(loss)
        return run(fluid.default_startup_program(), feeds, predict, loss, auc,
                   files, folder, True)
    fleet.init(role_maker.PaddleCloudRoleMaker())
    strategy = DistributeTranspilerConfig()
    strategy.sync_mode = False
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        return fleet.run_server()
    fleet.init_worker()
    run(fleet.startup_program, feeds, predict, loss, auc,
        fleet.split_files(files), folder, fleet.is_first_worker())
    return fleet.stop_worker()


def run(startup, feeds, predict, loss, auc, files, folder, saves):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    dataset = dataset_of(feeds, files)
    for epoch in range(EPOCHS):
        exe.train_from_dataset(fluid.default_main_program(), dataset,
                               fetch_list=[auc, loss],
                               fetch_info=["auc", "loss"], print_period=10**9)
    if saves:
        model = os.path.join(folder, "model")
        fluid.io.save_inference_model(
            model, [v.name for v in feeds[:-1]], [predict], exe)
        print("the model is in %s" % model)


# --- the score ---------------------------------------------------------------

def auc_of(chance, clicked):
    """How often a click has a better chance than no click."""
    rank = np.empty(len(chance))
    rank[np.argsort(chance)] = np.arange(1, len(chance) + 1)
    n = clicked.sum()
    return (rank[clicked].sum() - n * (n + 1) / 2) / (n * (len(chance) - n))


def score(folder):
    exe = fluid.Executor(fluid.CPUPlace())
    program, names, targets = fluid.io.load_inference_model(
        os.path.join(folder, "model"), exe)
    with open(parts(folder)[1][0]) as f:
        rows = np.array([line.split()[1::2] for line in f], "int64")
    feed = {name: fluid.create_lod_tensor(
        rows[:, i:i + 1], [[1] * len(rows)], fluid.CPUPlace())
        for i, name in enumerate(names)}
    predict, = exe.run(program, feed=feed, fetch_list=targets)
    clicked = rows[:, -1] == 1
    known = rule(rows[:, :-1] - VALUES * np.arange(FEATURES))
    print("AUC on %d lines that were kept aside: %.3f; a guess has 0.5, the "
          "rule itself %.3f" % (len(rows), auc_of(predict[:, 1], clicked),
                                auc_of(known, clicked)))


DO = {"make": make, "train": train, "score": score}

if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in DO:
        sys.exit(__doc__)
    DO[sys.argv[1]](*sys.argv[2:])
