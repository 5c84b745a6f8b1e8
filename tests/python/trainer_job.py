# SPDX-License-Identifier: Apache-2.0
"""A plane, fitted by fluid.Trainer as whatever the environment says.

    python trainer_job.py FOLDER [KEY=VALUE ...]

die=1:3     kill this process in step 3 of epoch 1, after its EndStepEvent
raise=1:3   raise there instead        once=1      not after a restart
                                       rank=1      only trainer 1 dies
hold=1:3    wait there until the file FOLDER/go exists
epochs=3    how many                   parallel=1  on CPU_NUM places
saves=0     without checkpoints        sparse=1    an embedding, too

Prints `step E S LOSS` for every step, and at the end the sum of each parameter.
"""
import hashlib
import os
import signal
import sys
import time

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers

BATCH, STEPS = 12, 6


def samples(sparse):
    rng = np.random.RandomState(5)
    for _ in range(BATCH * STEPS):
        x = rng.uniform(-1, 1, 4).astype("float32")
        word = rng.randint(7)
        y = (x.sum() + 0.1 * word).astype("float32")
        yield (x, [word], [y]) if sparse else (x, [y])


def start(seed):
    return fluid.ParamAttr(
        initializer=fluid.initializer.Uniform(-0.5, 0.5, seed=seed))


def network(sparse):
    x = layers.data(name="x", shape=[4], dtype="float32")
    if sparse:
        word = layers.data(name="word", shape=[1], dtype="int64")
        rows = layers.embedding(word, size=[7, 3], is_sparse=True,
                                param_attr=start(3))
        x = layers.concat([x, rows], axis=1)
    hidden = layers.fc(input=x, size=5, act="tanh", param_attr=start(1))
    out = layers.fc(input=hidden, size=1, param_attr=start(2))
    y = layers.data(name="y", shape=[1], dtype="float32")
    return layers.mean(layers.square_error_cost(input=out, label=y))


def main():
    folder = sys.argv[1]
    said = dict(word.split("=", 1) for word in sys.argv[2:])
    if said.get("once") and os.environ.get("FLUID_RESTARTS"):
        said.pop("die", None)
    sparse = said.get("sparse") == "1"
    names = ["x", "word", "y"] if sparse else ["x", "y"]
    config = None if said.get("saves") == "0" else fluid.CheckpointConfig(
        os.path.join(folder, "saved"), 2, step_interval=2)
    trainer = fluid.Trainer(
        lambda: network(sparse), lambda: fluid.optimizer.Adam(0.05),
        parallel=said.get("parallel") == "1", checkpoint_config=config)

    def batches():
        mine = list(samples(sparse))[trainer.trainer_id::trainer.num_trainers]
        size = BATCH // trainer.num_trainers
        return (mine[i:i + size] for i in range(0, len(mine), size))

    def handler(event):
        if not isinstance(event, fluid.EndStepEvent):
            return
        print("step %d %d %r" % (event.epoch, event.step,
                                 float(np.mean(event.metrics[0]))))
        here = "%d:%d" % (event.epoch, event.step)
        if said.get("die") == here and \
                trainer.trainer_id == int(said.get("rank", 0)):
            os.kill(os.getpid(), signal.SIGKILL)
        if said.get("raise") == here:
            raise RuntimeError("raised at " + here)
        while said.get("hold") == here and \
                not os.path.exists(os.path.join(folder, "go")):
            time.sleep(0.01)

    trainer.train(int(said.get("epochs", 3)), handler, batches, names)
    print("checkpoints left: %d" % len(
        os.listdir(config.checkpoint_dir)) if config and
        os.path.isdir(config.checkpoint_dir) else "no checkpoints")
    out = os.path.join(folder, "params%d" % trainer.trainer_id)
    trainer.save_params(out)
    for name in sorted(os.listdir(out)):
        with open(os.path.join(out, name), "rb") as f:
            print("saved %s %s" % (name, hashlib.md5(f.read()).hexdigest()))


if __name__ == "__main__":
    main()
