# SPDX-License-Identifier: Apache-2.0
"""An asynchronous job whose result shows how many pushes it is made of:
python async_job.py STEPS

Every push has the same gradients, so that the parameters depend on the number
of pushes alone, to the last bit. Each server writes what it ended with to
server-N.npz.
"""
import os
import sys

import numpy as np
import paddle.fluid as fluid


def build():
    x = fluid.layers.data("x", [40])
    ids = fluid.layers.data("ids", [1], dtype="int64")
    rows = fluid.layers.embedding(
        ids, [50, 8], is_sparse=True, param_attr=fluid.ParamAttr(
            "rows", initializer=fluid.initializer.Constant(0.5)))
    out = fluid.layers.fc(x, 300, bias_attr=False, param_attr=fluid.ParamAttr(
        "w", initializer=fluid.initializer.Constant(0.1)))
    loss = fluid.layers.mean(out) + fluid.layers.mean(rows)
    rate = fluid.layers.exponential_decay(0.1, 1000, 0.9)
    fluid.optimizer.SGD(rate).minimize(loss)
    return loss


def main(steps):
    endpoints = os.environ["PADDLE_PSERVER_ENDPOINTS"]
    loss = build()
    exe = fluid.Executor(fluid.CPUPlace())
    t = fluid.DistributeTranspiler()
    t.transpile(int(os.environ.get("PADDLE_TRAINER_ID", "0")),
                pservers=endpoints,
                trainers=int(os.environ["PADDLE_TRAINERS_NUM"]),
                sync_mode=False)
    if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
        here = os.environ["PADDLE_CURRENT_ENDPOINT"]
        program, startup = t.get_pserver_programs(here)
        exe.run(startup)
        exe.run(program)
        held = [v.name for v in program.list_vars()
                if v.persistable and v.name.startswith(("w", "rows", "@LR"))
                and "GRAD" not in v.name]
        scope = fluid.global_scope()
        np.savez("server-%d.npz" % endpoints.split(",").index(here),
                 **{n: np.array(scope.find_var(n).get_tensor()) for n in held})
        return
    program = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((2, 40), "float32"),
            "ids": np.arange(20).reshape(20, 1)}
    for _ in range(steps):
        exe.run(program, feed=feed, fetch_list=[loss])
    exe.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
