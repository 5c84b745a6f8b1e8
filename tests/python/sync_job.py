# SPDX-License-Identifier: Apache-2.0
"""A small classifier, trained alone or as a job: python sync_job.py RECIPE DATA

RECIPE names an optimiser below. DATA: `same` gives every trainer the whole
batch, `split` each its share. What came out is in out-N.npz: losses, parameters.
Alone, RECIPE may be several with commas between them, each trained by itself;
what came out is in out-RECIPE.npz.
"""
import os
import sys

import numpy as np
import paddle.fluid as fluid

STEPS, BATCH, WIDTH = 8, 12, 40

RATE = 0.05
DECAY = {
    "exponential": lambda: fluid.layers.exponential_decay(RATE, 3, 0.7, True),
    "natural_exp": lambda: fluid.layers.natural_exp_decay(RATE, 3, 0.7),
    "inverse_time": lambda: fluid.layers.inverse_time_decay(RATE, 3, 0.7),
    "polynomial": lambda: fluid.layers.polynomial_decay(RATE, 5, 0.001),
    "piecewise": lambda: fluid.layers.piecewise_decay([2, 5],
                                                      [0.1, 0.05, 0.01]),
    "noam": lambda: fluid.layers.noam_decay(64, 4),
    "cosine": lambda: fluid.layers.cosine_decay(RATE, 2, 3),
}
RECIPES = {
    "sgd": lambda: fluid.optimizer.SGD(RATE),
    "momentum": lambda: fluid.optimizer.Momentum(RATE, 0.9),
    "adam": lambda: fluid.optimizer.Adam(RATE),
    "l2": lambda: fluid.optimizer.SGD(
        RATE, regularization=fluid.regularizer.L2Decay(0.01)),
    "data_norm": lambda: fluid.optimizer.Momentum(RATE, 0.9),
    **{name: (lambda rate: lambda: fluid.optimizer.SGD(rate()))(rate)
       for name, rate in DECAY.items()},
}
# With an embedding besides: a tensor that gets selected rows, or a table.
EMBEDDED = {
    "rows": lambda: fluid.optimizer.Adagrad(RATE),
    "table": lambda: fluid.optimizer.Adagrad(RATE),
}


def build(recipe):
    x = fluid.layers.data("x", [WIDTH])
    y = fluid.layers.data("y", [1], dtype="int64")
    if recipe == "data_norm":
        x = fluid.layers.data_norm(x)
    if recipe in EMBEDDED:
        ids = fluid.layers.data("ids", [1], dtype="int64")
        x = fluid.layers.concat([x, fluid.layers.embedding(
            ids, [5000, 20], is_sparse=True,
            is_distributed=recipe == "table")], axis=1)
    h = fluid.layers.fc(x, 300, act="tanh")  # large enough to be cut in two
    loss = fluid.layers.mean(fluid.layers.cross_entropy(
        fluid.layers.fc(h, 5, act="softmax"), y))
    {**RECIPES, **EMBEDDED}[recipe]().minimize(loss)
    return loss


def batches(trainer, trainers, split, embedded=False):
    rng = np.random.RandomState(3)
    for _ in range(STEPS):
        x = rng.randn(BATCH, WIDTH).astype("float32")
        y = rng.randint(0, 5, (BATCH, 1)).astype("int64")
        if split:
            n = BATCH // trainers
            x, y = (a[trainer * n:(trainer + 1) * n] for a in (x, y))
        feed = {"x": x, "y": y}
        if embedded:
            feed["ids"] = rng.randint(0, 5000, (len(x), 1)).astype("int64")
        yield feed


def train(exe, program, loss, feeds, path):
    losses = [exe.run(program, feed=feed, fetch_list=[loss])[0]
              for feed in feeds]
    scope = fluid.global_scope()
    values = {p.name: np.array(scope.find_var(p.name).get_tensor())
              for p in program.global_block().all_parameters()
              if not p.name.startswith("embedding")}
    np.savez(path, losses=np.array(losses), **values)


def train_alone(recipe):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 11
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        loss = build(recipe)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        train(exe, main, loss, batches(0, 1, False), "out-%s.npz" % recipe)


def main(recipe, data):
    role = os.environ.get("PADDLE_TRAINING_ROLE", "LOCAL")
    me = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    trainers = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
    if role == "LOCAL":
        for one in recipe.split(","):
            train_alone(one)
        return None
    fluid.default_startup_program().random_seed = 11
    fluid.default_main_program().random_seed = 11
    loss = build(recipe)
    exe = fluid.Executor(fluid.CPUPlace())
    t = fluid.DistributeTranspiler()
    t.transpile(me, pservers=os.environ["PADDLE_PSERVER_ENDPOINTS"],
                trainers=trainers)
    if role == "PSERVER":
        here = os.environ["PADDLE_CURRENT_ENDPOINT"]
        program, startup = t.get_pserver_programs(here)
        exe.run(startup)
        exe.run(program)
        return None
    program = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    train(exe, program, loss, batches(me, trainers, data == "split",
                                      recipe in EMBEDDED), "out-%d.npz" % me)
    exe.close()
    return None


if __name__ == "__main__":
    main(*sys.argv[1:3])
