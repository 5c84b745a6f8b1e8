"""A small network that ranks without servers train together.

    python rank_job.py KIND [KEY=VALUE ...]

KIND: compiled (CompiledProgram), executor (ParallelExecutor), program (mode
"collective"), local_sgd, fleet, fleet_sgd; alone (one process, whole batches).
steps=6   how many            sparse=1   with an embedding
fail=2:4  rank 2 raises in step 4
test=1    rank 0 runs a test program by itself after every step

The ranks draw start values of their own: those of rank 0 must count. Prints
`step S LOSS` (the mean over its places), then a sum of each parameter.
"""
import hashlib
import os
import sys

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers

ROWS = 24
KIND, WORDS = sys.argv[1], dict(w.split("=", 1) for w in sys.argv[2:])
RANKS = os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")
RANK = int(os.environ.get("PADDLE_TRAINER_ID", 0))


def network():
    x = layers.data("x", [5])
    y = layers.data("y", [1])
    hidden = layers.fc(x, 4, act="tanh")
    if WORDS.get("sparse"):
        word = layers.data("word", [1], dtype="int64")
        hidden = layers.concat([hidden, layers.embedding(
            word, [9, 3], is_sparse=True)], axis=1)
    return layers.mean(layers.square_error_cost(layers.fc(hidden, 1), y))


def batch(step):
    rng = np.random.RandomState(step)
    feed = {"x": rng.uniform(-1, 1, (ROWS, 5)).astype("float32"),
            "y": rng.uniform(-1, 1, (ROWS, 1)).astype("float32")}
    if WORDS.get("sparse"):
        feed["word"] = rng.randint(0, 9, (ROWS, 1))
    if KIND == "alone":
        return feed
    return {k: v[RANK::len(RANKS)] for k, v in feed.items()}


def transpile(mode, collective_mode=None):
    config = fluid.DistributeTranspilerConfig()
    config.mode, config.collective_mode = mode, collective_mode
    fluid.DistributeTranspiler(config).transpile(RANK, trainers=RANKS)


def build(exe, loss, optimizer):
    """Minimize; gives a function from a feed to the loss."""
    if KIND.startswith("fleet"):
        from paddle.fluid.incubate.fleet.base import role_maker
        from paddle.fluid.incubate.fleet.collective import (
            DistributedStrategy, fleet)
        fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
        strategy = DistributedStrategy()
        strategy.use_local_sgd = KIND == "fleet_sgd"
        fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
        exe.run(fleet.startup_program)
        return lambda feed: exe.run(fleet.main_program, feed, [loss.name])
    optimizer.minimize(loss)
    if KIND in ("compiled", "executor"):
        transpile("nccl2")
    elif KIND != "alone":
        transpile("collective", KIND if KIND == "local_sgd" else None)
    exe.run(fluid.default_startup_program())
    if KIND == "executor":
        pe = fluid.ParallelExecutor(False, loss.name, num_trainers=len(RANKS),
                                    trainer_id=RANK)
        return lambda feed: pe.run([loss.name], feed)
    program = fluid.default_main_program()
    if KIND == "compiled":
        strategy = fluid.BuildStrategy()
        strategy.num_trainers, strategy.trainer_id = len(RANKS), RANK
        program = fluid.CompiledProgram(program).with_data_parallel(
            loss.name, strategy)
    return lambda feed: exe.run(program, feed, [loss.name])


def main():
    fluid.default_startup_program().random_seed = 11 + RANK
    loss = network()
    names = [p.name for p in
             fluid.default_main_program().global_block().all_parameters()]
    test = fluid.default_main_program().clone(for_test=True)
    exe = fluid.Executor()
    run = build(exe, loss, fluid.optimizer.Momentum(0.1, 0.9))
    for step in range(int(WORDS.get("steps", 6))):
        print("step %d %.8f" % (step, np.mean(run(batch(step))[0])))
        if WORDS.get("fail") == "%d:%d" % (RANK, step):
            raise ArithmeticError("the numbers of rank %d" % RANK)
        if WORDS.get("test") and RANK == 0:
            exe.run(test, batch(step), [loss.name])
    for name in names:
        value = np.array(fluid.global_scope().find_var(name).get_tensor())
        print("param %s %s" % (name, hashlib.md5(value).hexdigest()))


if __name__ == "__main__":
    main()
