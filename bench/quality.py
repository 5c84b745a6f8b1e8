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
import shutil
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


def network():
    dense = fluid.layers.data("dense", [DENSE])
    slots = [fluid.layers.data("C%d" % i, [1], dtype="int64", lod_level=1)
             for i in range(SLOTS)]
    label = fluid.layers.data("label", [1], dtype="int64")
    pools = [fluid.layers.sequence_pool(fluid.layers.embedding(
        ids, [DIM, WIDTH], is_sparse=True, param_attr=fluid.ParamAttr(
            "table", initializer=fluid.initializer.Uniform())), "sum")
        for ids in slots]
    x = fluid.layers.concat(pools + [dense], axis=1)
    for size, act in [(400, "relu")] * 3 + [(2, "softmax")]:
        x = fluid.layers.fc(x, size, act=act, param_attr=fluid.ParamAttr(
            initializer=fluid.initializer.Normal(
                scale=1 / math.sqrt(x.shape[1]))))
    loss = fluid.layers.reduce_sum(fluid.layers.cross_entropy(x, label))
    return [dense] + slots + [label], x, loss


def train(data, mode, model):
    fluid.default_startup_program().random_seed = 1
    feeds, predict, loss = network()
    files = [os.path.join(data, "multislot", "part-%d" % i)
             for i in range(PARTS)]
    startup = fluid.default_startup_program()
    if mode == "local":
        fluid.optimizer.SGD(RATE).minimize(loss)
    else:
        fleet.init(role_maker.PaddleCloudRoleMaker())
        config = DistributeTranspilerConfig()
        config.sync_mode = mode == "sync"
        rate = RATE * (fleet.worker_num() if mode == "sync" else 1)
        fleet.distributed_optimizer(fluid.optimizer.SGD(rate),
                                    config).minimize(loss)
        if fleet.is_server():
            fleet.init_server()
            return fleet.run_server()
        fleet.init_worker()
        startup, files = fleet.startup_program, fleet.split_files(files)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var(feeds)
    dataset.set_batch_size(BATCH)
    dataset.set_thread(1)
    dataset.set_filelist(files)
    for _ in range(EPOCHS):
        exe.train_from_dataset(fluid.default_main_program(), dataset)
    if mode == "local" or fleet.is_first_worker():
        fluid.io.save_inference_model(model, [v.name for v in feeds[:-1]],
                                      [predict], exe)
    return None if mode == "local" else fleet.stop_worker()


def score(data, model):
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        program, names, targets = fluid.io.load_inference_model(model, exe)
        rows = np.loadtxt(os.path.join(data, "test.multislot"))
        feed = {"dense": rows[:, 1:14].astype("float32")}
        for i, name in enumerate(names[1:]):
            feed[name] = fluid.create_lod_tensor(
                rows[:, 15 + 2 * i:16 + 2 * i].astype("int64"),
                [[1] * len(rows)], fluid.CPUPlace())
        chance = exe.run(program, feed=feed, fetch_list=targets)[0][:, 1]
    clicked = rows[:, 67] == 1
    rank = np.empty(len(chance))
    rank[np.argsort(chance)] = np.arange(1, len(chance) + 1)
    n = clicked.sum()
    return (rank[clicked].sum() - n * (n + 1) / 2) / (n * (len(rank) - n))


def main(data, *modes):
    for mode in modes or ("local", "sync", "async"):
        folder = tempfile.mkdtemp()
        model = os.path.join(folder, "model")
        command = [__file__, "train", data, mode, model]
        if mode == "local":
            subprocess.run([sys.executable] + command, check=True,
                           stderr=subprocess.DEVNULL)
        else:
            subprocess.run(["paddle", "launch", "--quiet", "--python",
                            sys.executable, "--log_dir", folder] + command,
                           check=True, stderr=subprocess.DEVNULL)
        print("%-5s  test AUC after %d epochs: %.4f"
              % (mode, EPOCHS, score(data, model)), flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "train":
        train(*sys.argv[2:])
    else:
        main(*map(os.path.abspath, sys.argv[1:2]), *sys.argv[2:])
