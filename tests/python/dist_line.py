"""Trains a line: alone, or as a part of a job. Prints what it learned.

    dist_line.py [--optimizer NAME] [--steps N] [--rows N] [--async] [--same]
                 [--sleep S] [--wide] [--fail N]

Of each batch every trainer takes its part; with --same each takes all of it.
"""
import argparse
import os
import time

import numpy as np
import paddle.fluid as fluid

ap = argparse.ArgumentParser()
ap.add_argument("--optimizer", default="SGD")
ap.add_argument("--steps", type=int, default=10)
ap.add_argument("--rows", type=int, default=8)
ap.add_argument("--async", dest="apart", action="store_true")
ap.add_argument("--same", action="store_true")
ap.add_argument("--sleep", type=float, default=0)
ap.add_argument("--wide", action="store_true", help="enough to be cut")
ap.add_argument("--fail", type=int, default=-1, help="at this step")
ap.add_argument("--close", action="store_true")
o = ap.parse_args()

role = os.environ.get("PADDLE_TRAINING_ROLE", "LOCAL")
me = int(os.environ.get("PADDLE_TRAINER_ID", 0))
trainers = int(os.environ.get("PADDLE_TRAINERS_NUM", 1))
width, out = (200, 100) if o.wide else (13, 1)


def start(low, high, seed):
    return fluid.ParamAttr(
        initializer=fluid.initializer.Uniform(low, high, seed=seed))


x = fluid.layers.data(name="x", shape=[width], dtype="float32")
y = fluid.layers.data(name="y", shape=[out], dtype="float32")
predict = fluid.layers.fc(input=x, size=out, param_attr=start(-1, 1, 3),
                          bias_attr=start(-0.1, 0.1, 4))
loss = fluid.layers.mean(
    fluid.layers.square_error_cost(input=predict, label=y))
make = {
    "SGD": lambda: fluid.optimizer.SGD(0.01),
    "Momentum": lambda: fluid.optimizer.Momentum(0.01, 0.9),
    "Adam": lambda: fluid.optimizer.Adam(0.01),
    "Decay": lambda: fluid.optimizer.SGD(
        0.01, regularization=fluid.regularizer.L2Decay(0.1)),
    "Schedule": lambda: fluid.optimizer.SGD(
        fluid.layers.exponential_decay(0.05, 3, 0.5, staircase=True)),
}
make[o.optimizer]().minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())


def batch(i):
    draw = np.random.RandomState(i)
    rows = draw.uniform(-1, 1, (o.rows, width)).astype("float32")
    goal = rows[:, :out] * 2 + 1
    if role == "TRAINER" and not o.same:
        part = slice(me * o.rows // trainers, (me + 1) * o.rows // trainers)
        rows, goal = rows[part], goal[part]
    return {"x": rows, "y": goal}


def train(program):
    exe.run(fluid.default_startup_program())
    print("started", flush=True)
    for i in range(o.steps):
        if i == o.fail:
            raise ArithmeticError("as was asked for")
        got, = exe.run(program, feed=batch(i), fetch_list=[loss])
        print("loss %d %s" % (i, float(got[0]).hex()), flush=True)
        time.sleep(o.sleep)
    for p in fluid.default_main_program().global_block().all_parameters():
        value = np.asarray(fluid.global_scope().find_var(p.name).get_tensor())
        print("param %s %s" % (p.name, value.tobytes().hex()[:4096]))
    if o.close:
        exe.close()


if role == "LOCAL":
    train(fluid.default_main_program())
else:
    t = fluid.DistributeTranspiler()
    t.transpile(trainer_id=me, trainers=trainers, sync_mode=not o.apart,
                pservers=os.environ["PADDLE_PSERVER_ENDPOINTS"])
    if role == "PSERVER":
        mine = os.environ["PADDLE_CURRENT_ENDPOINT"]
        server = t.get_pserver_program(mine)
        exe.run(t.get_startup_program(mine, server))
        exe.run(server)
    else:
        train(t.get_trainer_program())
