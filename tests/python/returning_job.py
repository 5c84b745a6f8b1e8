# SPDX-License-Identifier: Apache-2.0
"""A synchronous job for the launcher: each trainer makes its batches from its
id and the number of the step. Trainer 0 saves the model to the folder "model".

    paddle launch returning_job.py STEPS
"""
import os
import sys
import time

import numpy as np

import paddle.fluid as fluid


def network():
    x = fluid.layers.data(name="x", shape=[6], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    hidden = fluid.layers.fc(x, 8, act="tanh", param_attr=fluid.ParamAttr(
        initializer=fluid.initializer.Constant(0.1)))
    guess = fluid.layers.fc(hidden, 1, param_attr=fluid.ParamAttr(
        initializer=fluid.initializer.Constant(0.2)))
    loss = fluid.layers.mean(fluid.layers.square_error_cost(guess, y))
    fluid.optimizer.Adam(0.01).minimize(loss)
    return loss


def train(program, loss, trainer, steps):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for step in range(steps):
        rng = np.random.RandomState(1000 * trainer + step)
        x = rng.rand(4, 6).astype("float32")
        exe.run(program, feed={"x": x, "y": x.sum(1, keepdims=True)},
                fetch_list=[loss])
        time.sleep(0.01)  # so that there is time to be killed in
    if trainer == 0:
        fluid.io.save_persistables(exe, "model", program)
    exe.close()


def main(steps):
    loss = network()
    trainer = int(os.environ.get("PADDLE_TRAINER_ID", 0))
    t = fluid.DistributeTranspiler()
    t.transpile(trainer, pservers=os.environ["PADDLE_PSERVER_ENDPOINTS"],
                trainers=int(os.environ["PADDLE_TRAINERS"]))
    if os.environ["TRAINING_ROLE"] == "PSERVER":
        here = os.environ["PADDLE_CURRENT_ENDPOINT"]
        program = t.get_pserver_program(here)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(t.get_startup_program(here, program))
        exe.run(program)
    else:
        train(t.get_trainer_program(), loss, trainer, steps)


if __name__ == "__main__":
    main(int(sys.argv[1]))
