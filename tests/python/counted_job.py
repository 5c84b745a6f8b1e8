# SPDX-License-Identifier: Apache-2.0
"""A job on files whose model shows how often each example was used:
python counted_job.py KIND PASSES FILE ...

KIND: sync or async; async-groups is async with a communicator, which sends the
gradients of 3 batches together; each with -table as well. Trainer i takes every
so many-th file. In an asynchronous job all gradients are small integers, so that
the model depends on how often each example was used and on nothing else. When
all trainers have trained, trainer 0 saves the model to the folder "model".
"""
import os
import sys
import time

import paddle.fluid as fluid
from paddle.fluid.communicator import Communicator

IDS, BATCH = 400, 4


def write_files(folder, n, lines):
    """n files of examples, each with an id of its own; gives their names."""
    names = []
    for f in range(n):
        names.append(os.path.join(str(folder), "data-%d.txt" % f))
        with open(names[-1], "w") as out:
            for i in range(f * lines, (f + 1) * lines):
                out.write("1 %d 3 %d %d %d\n" % (i % IDS, i % 5, i % 3, i % 7))
    return names


def network(kind):
    ids = fluid.layers.data("ids", [1], dtype="int64", lod_level=1)
    x = fluid.layers.data("x", [3])
    rows = fluid.layers.embedding(
        ids, [IDS, 4], is_sparse=True, is_distributed="table" in kind,
        param_attr=fluid.ParamAttr(
            "rows", initializer=fluid.initializer.Constant(0.5)))
    h = fluid.layers.fc(x, 50, bias_attr=False, param_attr=fluid.ParamAttr(
        "w", initializer=fluid.initializer.Constant(0.25)))
    if "async" in kind:
        loss = fluid.layers.reduce_sum(rows) + fluid.layers.reduce_sum(h)
        fluid.optimizer.SGD(0.5).minimize(loss)
    else:
        loss = fluid.layers.mean(fluid.layers.tanh(rows)) + \
            fluid.layers.mean(fluid.layers.square(fluid.layers.tanh(h)))
        fluid.optimizer.Adagrad(0.05).minimize(loss)
    return [ids, x], loss


def train(program, feeds, passes, files, me, trainers):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    data = fluid.DatasetFactory().create_dataset(
        os.environ.get("DATASET", "QueueDataset"))
    data.set_use_var(feeds)
    data.set_filelist(files[me::trainers])
    data.set_batch_size(BATCH)
    data.set_thread(int(os.environ.get("THREADS", "1")))
    loaded = "DATASET" in os.environ
    if loaded:
        data.load_into_memory()
    for _ in range(passes):
        if loaded:
            data.local_shuffle()
        exe.train_from_dataset(program, data)
    with open("trained-%d" % me, "w"):
        print("trained", flush=True)
    while me == 0 and not all(os.path.exists("trained-%d" % i)
                              for i in range(trainers)):
        time.sleep(0.01)
    if me == 0:
        fluid.io.save_persistables(exe, "model", program)
    exe.close()


def main(kind, passes, *files):
    me = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    trainers = int(os.environ["PADDLE_TRAINERS_NUM"])
    feeds, _ = network(kind)
    config = fluid.DistributeTranspilerConfig()
    config.runtime_split_send_recv = "groups" in kind
    t = fluid.DistributeTranspiler(config)
    t.transpile(me, pservers=os.environ["PADDLE_PSERVER_ENDPOINTS"],
                trainers=trainers, sync_mode="async" not in kind)
    if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
        here = os.environ["PADDLE_CURRENT_ENDPOINT"]
        program, startup = t.get_pserver_programs(here)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        exe.run(program)
        return
    program = t.get_trainer_program()
    if "groups" in kind:
        os.environ.setdefault("FLAGS_communicator_max_merge_var_num", "3")
        Communicator(program).start()
    train(program, feeds, int(passes), files, me, trainers)


if __name__ == "__main__":
    main(*sys.argv[1:])
