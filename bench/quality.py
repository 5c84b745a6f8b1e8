# SPDX-License-Identifier: Apache-2.0
"""Is a model worth as much, however it was trained?

    python quality.py DATA [MODE ...]    local, sync, async; all by default

DATA is what the peers' gen_ctr.py made: 200,000 clicks in ten files of slots,
40,000 to test on. The click model learns for three epochs on one machine and
with 2 servers and 2 trainers that share the files; the AUC on the test is
printed for each. In sync mode the rate is multiplied by the number of trainers,
since gradients of a summed loss are averaged over them.
"""
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler \
    import DistributeTranspilerConfig, fleet

DIM, WIDTH, SLOTS, DENSE = 1000001, 10, 26, 13
BATCH, EPOCHS, RATE, PARTS = 100, 3, 1e-4, 10


def network(seed=1, log=False):
    """The click model of Fluid's examples. Each layer starts from numbers of
    its own: with one seed for all, layers of one size would start alike. log:
    numbers that are not scaled to their range are taken as logarithms."""
    draw = np.random.RandomState(seed)

    def start(initializer, **how):
        return fluid.ParamAttr(initializer=initializer(
            seed=int(draw.randint(1, 2 ** 31 - 1)), **how))
    dense = fluid.layers.data("dense", [DENSE])
    slots = [fluid.layers.data("C%d" % i, [1], dtype="int64", lod_level=1)
             for i in range(SLOTS)]
    label = fluid.layers.data("label", [1], dtype="int64")
    table = start(fluid.initializer.Uniform)
    table.name = "table"
    x = [fluid.layers.sequence_pool(fluid.layers.embedding(
        ids, [DIM, WIDTH], is_sparse=True, param_attr=table), "sum")
        for ids in slots]
    x.append(fluid.layers.log(fluid.layers.relu(dense) + 1.0)
             if log else dense)
    x = fluid.layers.concat(x, axis=1)
    for size, act in [(400, "relu")] * 3 + [(2, "softmax")]:
        x = fluid.layers.fc(x, size, act=act, param_attr=start(
            fluid.initializer.Normal, scale=1 / math.sqrt(x.shape[1])))
    loss = fluid.layers.reduce_sum(fluid.layers.cross_entropy(x, label))
    return [dense] + slots + [label], x, loss


def learn(mode, files, model, epochs, rate, pipe="cat", **how):
    """Train on files, with servers unless the mode is local; the model is saved
    after each epoch as model/1, model/2 and so on."""
    feeds, predict, loss = network(**how)
    startup, saves = fluid.default_startup_program(), True
    if mode == "local":
        fluid.optimizer.SGD(rate).minimize(loss)
    else:
        fleet.init(role_maker.PaddleCloudRoleMaker())
        config = DistributeTranspilerConfig()
        config.sync_mode = mode == "sync"
        if mode == "sync":
            rate *= fleet.worker_num()
        fleet.distributed_optimizer(fluid.optimizer.SGD(rate),
                                    config).minimize(loss)
        if fleet.is_server():
            fleet.init_server()
            return fleet.run_server()
        fleet.init_worker()
        startup, files = fleet.startup_program, fleet.split_files(files)
        saves = fleet.is_first_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var(feeds)
    dataset.set_batch_size(BATCH)
    dataset.set_thread(1)
    dataset.set_pipe_command(pipe)
    dataset.set_filelist(files)
    for epoch in range(epochs):
        exe.train_from_dataset(fluid.default_main_program(), dataset)
        if saves:
            fluid.io.save_inference_model(
                os.path.join(model, str(epoch + 1)),
                [v.name for v in feeds[:-1]], [predict], exe)
    return None if mode == "local" else fleet.stop_worker()


def start(script, mode, log_dir, *words):
    """Run a script alone, or as two servers and two trainers."""
    command = [sys.executable]
    if mode != "local":
        command = ["paddle", "launch", "--quiet", "--python", sys.executable,
                   "--log_dir", log_dir]
    done = subprocess.run(command + [script, "train", mode, *map(str, words)],
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.stderr)


def chances(model, dense, ids):
    """What a saved model thinks of rows: [n, 13] numbers, [n, 26] ids."""
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        program, names, targets = fluid.io.load_inference_model(model, exe)
        feed = {names[0]: dense.astype("float32")}
        for i, name in enumerate(names[1:]):
            feed[name] = fluid.create_lod_tensor(
                ids[:, i:i + 1].astype("int64"), [[1] * len(ids)],
                fluid.CPUPlace())
        return exe.run(program, feed=feed, fetch_list=targets)[0][:, 1]


def auc(chance, clicked):
    """How often a click has a better chance than no click."""
    rank = np.empty(len(chance))
    rank[np.argsort(chance, kind="stable")] = np.arange(1, len(chance) + 1)
    n = clicked.sum()
    return (rank[clicked].sum() - n * (n + 1) / 2) / (n * (len(rank) - n))


def train(mode, data, model):
    learn(mode, [os.path.join(data, "multislot", "part-%d" % i)
                 for i in range(PARTS)], model, EPOCHS, RATE)


def main(data, *modes):
    rows = np.loadtxt(os.path.join(data, "test.multislot"))
    for mode in modes or ("local", "sync", "async"):
        with tempfile.TemporaryDirectory() as folder:
            start(__file__, mode, folder, data, folder)
            chance = chances(os.path.join(folder, str(EPOCHS)), rows[:, 1:14],
                             rows[:, 15:66:2])
        print("%-5s  test AUC after %d epochs: %.4f" % (
            mode, EPOCHS, auc(chance, rows[:, 67] == 1)), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "train":
        train(*sys.argv[2:])
    else:
        main(*map(os.path.abspath, sys.argv[1:2]), *sys.argv[2:])
