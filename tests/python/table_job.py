# SPDX-License-Identifier: Apache-2.0
"""A job with a table that trainers have no copy of: python table_job.py ROWS

Tells how much memory a trainer's start and its steps took, and what it says to
those who want the table. $BY_ID: the table is_distributed; $TWO: there are two
of them; $ASYNC: trainers do not meet.
"""
import os
import re
import sys

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler \
    import DistributeTranspilerConfig, fleet

WIDTH, STEPS = 16, 3


def peak():
    """The most memory that this process had, in MB."""
    with open("/proc/self/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) / 1024


def told(what, act):
    try:
        act()
    except Exception as e:
        print("%s: %s: %s" % (what, type(e).__name__, e))
    else:
        print("%s: nothing" % what)


def network(rows):
    ids = fluid.layers.data("ids", [1], dtype="int64", lod_level=1)
    y = fluid.layers.data("y", [1])
    sums = []
    for name in ["table", "other"] if "TWO" in os.environ else ["table"]:
        table = fluid.layers.embedding(
            ids, [rows, WIDTH], is_sparse=True,
            is_distributed="BY_ID" in os.environ,
            param_attr=fluid.ParamAttr(
                name, initializer=fluid.initializer.Constant(0.25)))
        sums.append(fluid.layers.sequence_pool(table, "sum"))
    out = fluid.layers.fc(sums, 1)
    return fluid.layers.mean(fluid.layers.square_error_cost(out, y))


def feed(rows, step):
    rng = np.random.RandomState(step)
    ids = rng.randint(0, rows, (30, 1)).astype("int64")
    return {"ids": fluid.create_lod_tensor(ids, [[3] * 10], fluid.CPUPlace()),
            "y": rng.randn(10, 1).astype("float32")}


def ask(exe, scope, test, loss, rows):
    value = scope.find_var("table").get_tensor()
    print("shape %s" % value.shape())
    told("read", lambda: np.array(value))
    told("set", lambda: value.set(np.zeros((rows, WIDTH), "float32"),
                                  fluid.CPUPlace()))
    told("fetch", lambda: exe.run(fleet.main_program, feed=feed(rows, 0),
                                  fetch_list=["table"]))
    fluid.io.save_persistables(exe, "cut")
    fluid.io.save_persistables(exe, "uncut", test)
    before = exe.run(test, feed=feed(rows, 9), fetch_list=[loss])[0]
    fluid.io.load_persistables(exe, "cut")
    after = exe.run(test, feed=feed(rows, 9), fetch_list=[loss])[0]
    print("test %s" % ("alike" if before == after else "differs"))
    fluid.io.save_inference_model("model", ["ids", "y"], [
        test.global_block().var(loss.name)], exe, test)
    with fluid.scope_guard(fluid.Scope()):
        program, _, out = fluid.io.load_inference_model("model", exe)
        alone, = exe.run(program, feed=feed(rows, 9), fetch_list=out)
    print("model %s" % ("alike" if before == alone else "differs"))
    fluid.io.load_inference_model("model", exe)


def main(rows):
    loss = network(rows)
    test = fluid.default_main_program().clone(for_test=True)
    fleet.init(role_maker.PaddleCloudRoleMaker())
    config = DistributeTranspilerConfig()
    config.sync_mode = "ASYNC" not in os.environ
    fleet.distributed_optimizer(fluid.optimizer.Adagrad(0.1),
                                config).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        return fleet.run_server()
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    began = peak()
    exe.run(fleet.startup_program)
    first = exe.run(test, feed=feed(rows, 0), fetch_list=[loss])[0]
    for step in range(STEPS):
        got, = exe.run(fleet.main_program, feed=feed(rows, step),
                       fetch_list=[loss])
        if step == 0 and config.sync_mode:
            assert got == first, (got, first)
    print("grew by %d MB" % (peak() - began))
    if fleet.is_first_worker():
        ask(exe, fluid.global_scope(), test, loss, rows)
    return fleet.stop_worker()


if __name__ == "__main__":
    main(int(sys.argv[1]))
