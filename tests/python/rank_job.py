# SPDX-License-Identifier: Apache-2.0
"""A small network that ranks without servers train together.

    python rank_job.py KIND [KEY=VALUE ...]

KIND: compiled (CompiledProgram), executor (ParallelExecutor), program (mode
"collective"), local_sgd, fleet, fleet_sgd; alone (one process, whole batches),
places (one process on CPU_NUM places).
steps=6   how many
net=line  the network: line; words (four lookups of one sparse table); clicks
          (its loss is a sum, so alone the rate is divided by `by`); lenet
          (with batch_norm); wide (one gradient fills a call); calls (ranks
          call each other in forward, so also in backward)
fail=2:4  rank 2 raises in step 4
kill=2:backward  SIGKILL ends rank 2 there: start (it has met the others),
          backward, reduce (its last gradient is still missing) or save
test=1    rank 0 runs a test program by itself after every step

The ranks draw start values of their own: those of rank 0 must count. Prints
`step S LOSS` (the mean over its places), then a sum of each parameter.
"""
import fcntl
import hashlib
import os
import signal
import sys
import threading

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers

ROWS = 24
KIND, WORDS = sys.argv[1], dict(w.split("=", 1) for w in sys.argv[2:])
RANKS = os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")
RANK = int(os.environ.get("PADDLE_TRAINER_ID", 0))
NET = WORDS.get("net", "line")
VICTIM, _, PLACE = WORDS.get("kill", "").partition(":")


def line(y):
    hidden = layers.fc(layers.data("x", [16]), 4, act="tanh")
    return layers.mean(layers.square_error_cost(layers.fc(hidden, 1), y))


def wide(y):
    hidden = layers.fc(layers.data("x", [16]), 256, act="tanh")
    hidden = layers.fc(hidden, 256, act="tanh")
    return layers.mean(layers.square_error_cost(layers.fc(hidden, 1), y))


def words(y):
    ids = [layers.data("id%d" % i, [1], dtype="int64") for i in range(4)]
    rows = [layers.embedding(i, [9, 3], is_sparse=True, param_attr="table")
            for i in ids]
    hidden = layers.fc(layers.concat(rows, axis=1), 6, act="sigmoid")
    chosen = layers.fc(hidden, 9, act="softmax")
    return layers.mean(layers.cross_entropy(
        chosen, layers.data("next", [1], dtype="int64")))


def clicks(y):
    ids = [layers.data("id%d" % i, [1], dtype="int64") for i in range(2)]
    rows = [layers.embedding(i, [9, 3], is_sparse=True) for i in ids]
    hidden = layers.fc(layers.concat(rows + [layers.data("x", [16])], axis=1),
                       5, act="relu")
    return layers.reduce_sum(layers.square_error_cost(
        layers.fc(hidden, 1), y))


def lenet(y):
    maps = layers.data("picture", [1, 28, 28])
    for filters in (6, 16):
        maps = layers.conv2d(maps, num_filters=filters, filter_size=5)
        maps = layers.batch_norm(maps, act="relu")
        maps = layers.pool2d(maps, pool_size=2, pool_stride=2)
    chosen = layers.fc(layers.fc(maps, 84, act="relu"), 9, act="softmax")
    return layers.mean(layers.cross_entropy(
        chosen, layers.data("next", [1], dtype="int64")))


def calls(y):
    """Rows go to all ranks and back, and lose their mean over all ranks."""
    hidden = layers.fc(layers.data("x", [16]), 4, act="tanh")
    mean = layers.reduce_mean(hidden, dim=0)
    if KIND != "alone":
        ranks = len(RANKS)
        hidden = layers.scale(layers.collective._c_reducescatter(
            layers.collective._c_allgather(hidden, ranks), ranks), 1 / ranks)
        mean = layers.scale(layers.collective._c_allreduce(mean), 1 / ranks)
    return layers.mean(layers.square_error_cost(
        layers.fc(layers.elementwise_sub(hidden, mean), 1), y))


def network():
    return globals()[NET](layers.data("y", [1]))


def batch(step):
    rng = np.random.RandomState(step)
    feed = {"x": rng.uniform(-1, 1, (ROWS, 16)).astype("float32"),
            "y": rng.uniform(-1, 1, (ROWS, 1)).astype("float32"),
            "next": rng.randint(0, 9, (ROWS, 1))}
    if NET == "lenet":
        feed["picture"] = rng.uniform(-1, 1, (ROWS, 1, 28, 28)).astype(
            "float32")
    feed.update(("id%d" % i, rng.randint(0, 9, (ROWS, 1))) for i in range(4))
    used = fluid.default_main_program().global_block().vars
    # Place n of a process alone sees the rows that rank n sees.
    share = ROWS // len(RANKS)
    return {k: v if KIND in ("alone", "places") else
            v[RANK * share:(RANK + 1) * share]
            for k, v in feed.items() if k in used}


def transpile(mode, collective_mode=None):
    config = fluid.DistributeTranspilerConfig()
    config.mode, config.collective_mode = mode, collective_mode
    fluid.DistributeTranspiler(config).transpile(RANK, trainers=RANKS)


# --- SIGKILL at a place of a program ---

SIGN = "the place to die; "


def print_op(name):
    """All ranks have the same program, so all of them print."""
    return dict(type="print", inputs={"In": [name]}, outputs={"Out": [name]},
                attrs={"message": 1000 * SIGN, "print_phase": "FORWARD",
                       "summarize": 1})


def mark(where, loss):
    """Print at this place of the startup or the main program."""
    block = (fluid.default_startup_program() if where == "start" else
             fluid.default_main_program()).global_block()
    types = [op.type for op in block.ops]
    at, name = {
        "start": lambda: (types.index("c_broadcast"), "learning_rate_0"),
        "backward": lambda: (types.index("tanh_grad"), loss.name),
        "reduce": lambda: (len(types) - 1 - types[::-1].index(
            "c_allreduce_sum"), loss.name),
    }[where]()
    block._insert_op(at, **print_op(name))


def die_when_printing():
    """The text is longer than the pipe, so whoever prints it is still there
    when its beginning has been read."""
    end, stderr = os.pipe()
    fcntl.fcntl(stderr, fcntl.F_SETPIPE_SZ, 4096)
    os.dup2(stderr, 2)

    def listen():
        while SIGN.encode() not in os.read(end, 1024):
            pass
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=listen, daemon=True).start()


def save(exe, names, folder):
    """Write parameters, and print after the first."""
    program = fluid.Program()
    block = program.global_block()
    for name in names:
        block.create_var(name=name, persistable=True)
        block.append_op(type="save", inputs={"X": [name]}, outputs={},
                        attrs={"file_path": os.path.join(folder, name)})
    block._insert_op(1, **print_op(names[0]))
    exe.run(program)


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
    elif KIND not in ("alone", "places"):
        transpile("collective", KIND if KIND == "local_sgd" else None)
    if PLACE not in ("", "save"):
        mark(PLACE, loss)
    exe.run(fluid.default_startup_program())
    if KIND == "executor":
        pe = fluid.ParallelExecutor(False, loss.name, num_trainers=len(RANKS),
                                    trainer_id=RANK)
        return lambda feed: pe.run([loss.name], feed)
    program = fluid.default_main_program()
    if KIND in ("compiled", "places"):
        strategy = fluid.BuildStrategy()
        if KIND == "compiled":
            strategy.num_trainers, strategy.trainer_id = len(RANKS), RANK
        program = fluid.CompiledProgram(program).with_data_parallel(
            loss.name, strategy)
    return lambda feed: exe.run(program, feed, [loss.name])


def main():
    if VICTIM == str(RANK):
        die_when_printing()
    fluid.default_startup_program().random_seed = 11 + RANK
    loss = network()
    names = [p.name for p in
             fluid.default_main_program().global_block().all_parameters()
             if p.trainable]
    test = fluid.default_main_program().clone(for_test=True)
    exe = fluid.Executor()
    rate = (0.01 if NET == "clicks" else 0.1) / int(WORDS.get("by", 1))
    run = build(exe, loss, fluid.optimizer.Momentum(rate, 0.9))
    for step in range(int(WORDS.get("steps", 6))):
        print("step %d %.8f" % (step, np.mean(run(batch(step))[0])))
        if WORDS.get("fail") == "%d:%d" % (RANK, step):
            raise ArithmeticError("the numbers of rank %d" % RANK)
        if PLACE == "save" and VICTIM == str(RANK):
            save(exe, names, "saved")
        if WORDS.get("test") and RANK == 0:
            exe.run(test, batch(step), [loss.name])
    for name in names:
        value = np.array(fluid.global_scope().find_var(name).get_tensor())
        print("param %s %s" % (name, hashlib.md5(value).hexdigest()))


if __name__ == "__main__":
    main()
