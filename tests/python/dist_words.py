# SPDX-License-Identifier: Apache-2.0
"""Trains an embedding: alone, or as a part of a job. Prints what it learned.

    dist_words.py [--optimizer NAME] [--steps N] [--async] [--cut-late]
                  [--table] [--padding N] [--test]

Every trainer gets the same batches, of sentences of 0 to 4 words; in batch 3
all sentences of one input are empty. --test: a program that was cloned before
it was cut is run after every step, too.
"""
import argparse
import os

import numpy as np
import paddle.fluid as fluid

ap = argparse.ArgumentParser()
ap.add_argument("--optimizer", default="SGD")
ap.add_argument("--steps", type=int, default=8)
ap.add_argument("--async", dest="apart", action="store_true")
ap.add_argument("--cut-late", action="store_true", help="in send and recv")
ap.add_argument("--table", action="store_true", help="is_distributed")
ap.add_argument("--padding", type=int)
ap.add_argument("--test", action="store_true")
o = ap.parse_args()

WORDS, WIDTH = 1000, 16
role = os.environ.get("PADDLE_TRAINING_ROLE", "LOCAL")
me = int(os.environ.get("PADDLE_TRAINER_ID", -1))  # -1: any
trainers = int(os.environ.get("PADDLE_TRAINERS_NUM", 1))


def start(seed, name=None):
    low = fluid.initializer.Uniform(-1, 1, seed=seed)
    if o.table and name:  # rows are made when they are first asked for
        low = fluid.initializer.Constant(0.5)
    return fluid.ParamAttr(name=name, initializer=low)


words = [fluid.layers.data(name=n, shape=[1], dtype="int64", lod_level=1)
         for n in ("one", "two")]
y = fluid.layers.data(name="y", shape=[1], dtype="float32")
pooled = [fluid.layers.sequence_pool(
    fluid.layers.embedding(
        w, [WORDS, WIDTH], is_sparse=True, is_distributed=o.table,
        padding_idx=o.padding, param_attr=start(3, "words")), "sum")
    for w in words]
predict = fluid.layers.fc(fluid.layers.concat(pooled, axis=1), 1,
                          param_attr=start(4), bias_attr=start(5))
loss = fluid.layers.mean(
    fluid.layers.square_error_cost(input=predict, label=y))
test = fluid.default_main_program().clone(for_test=True)
getattr(fluid.optimizer, o.optimizer)(0.01).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())


def batch(i):
    draw = np.random.RandomState(i)
    feed = {"y": draw.uniform(-1, 1, (6, 1)).astype("float32")}
    for w in ("one", "two"):
        sizes = draw.randint(0, 5, 6).tolist()
        if i == 3 and w == "one":
            sizes = [0] * 6
        ids = draw.randint(0, WORDS, (sum(sizes), 1)).astype("int64")
        ids[::3] = 7  # often
        feed[w] = fluid.create_lod_tensor(ids, [sizes], fluid.CPUPlace())
    return feed


def train(program):
    exe.run(fluid.default_startup_program())
    print("started", flush=True)
    for i in range(o.steps):
        got, = exe.run(program, feed=batch(i), fetch_list=[loss])
        print("loss %d %s" % (i, float(got[0]).hex()), flush=True)
        if o.test:
            got, = exe.run(test, feed=batch(i + 100), fetch_list=[loss])
            print("test %d %s" % (i, float(got[0]).hex()), flush=True)
    exe.close()


if role == "LOCAL":
    train(fluid.default_main_program())
else:
    config = fluid.DistributeTranspilerConfig()
    config.runtime_split_send_recv = o.cut_late
    t = fluid.DistributeTranspiler(config)
    t.transpile(trainer_id=me, trainers=trainers, sync_mode=not o.apart,
                pservers=os.environ["PADDLE_PSERVER_ENDPOINTS"])
    if role == "PSERVER":
        mine = os.environ["PADDLE_CURRENT_ENDPOINT"]
        server = t.get_pserver_program(mine)
        exe.run(t.get_startup_program(mine, server))
        exe.run(server)
    else:
        train(t.get_trainer_program())
