# SPDX-License-Identifier: Apache-2.0
"""Fit a line with fluid.Trainer, alone or in a job, as the environment says.

    python trainer.py                                       alone
    paddle launch --server_num 2 --worker_num 2 trainer.py  with servers
    python -m paddle.distributed.launch --nproc_per_node 2 trainer.py

The last one is a collective job: trainers average their gradients among
themselves. Killed and started again in any of these ways, the script goes on
from its last checkpoint. Every trainer learns from its own part of each batch
of 20 houses, so all three ways learn the same.
"""
import argparse
import os

import numpy as np

import paddle
import paddle.fluid as fluid

HOUSES = 20  # of a batch, over all trainers


def infer_func():
    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    start = fluid.initializer.Constant(0.0)
    return fluid.layers.fc(input=x, size=1, param_attr=start)


def train_func():
    price = infer_func()
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    return fluid.layers.mean(
        fluid.layers.square_error_cost(input=price, label=y))


def optimizer_func():
    return fluid.optimizer.SGD(learning_rate=0.01)


def mine(trainer):
    """A reader of this trainer's houses: of n trainers, each takes every n-th
    house. The order is always the same, as checkpoints need it."""
    def houses():
        n = trainer.num_trainers
        everything = list(paddle.dataset.uci_housing.train()())
        return iter(everything[trainer.trainer_id:
                               len(everything) // n * n:n])

    return paddle.batch(houses, max(1, HOUSES // trainer.num_trainers))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--model", default="trainer.model",
                        help="the folder of parameters and checkpoints")
    args = parser.parse_args()
    trainer = fluid.Trainer(
        train_func, optimizer_func,
        checkpoint_config=fluid.CheckpointConfig(
            os.path.join(args.model, "checkpoints"), epoch_interval=5))

    def handler(event):
        if isinstance(event, fluid.EndStepEvent) and event.step == 0 and \
                event.epoch % 10 == 0:
            print("pass %d, loss %.4f" % (event.epoch,
                                          np.mean(event.metrics[0])))

    trainer.train(args.passes, handler, mine(trainer), ["x", "y"])
    loss, = trainer.test(paddle.batch(paddle.dataset.uci_housing.test(), 102),
                         ["x", "y"])
    print("mean squared error %.4f on houses never seen" % loss)
    if trainer.trainer_id == 0:
        params = os.path.join(args.model, "params")
        trainer.save_params(params)
        house, price = next(paddle.dataset.uci_housing.test()())
        guess, = fluid.Inferencer(infer_func, params).infer(
            {"x": np.array([house], "float32")})
        print("guess %.2f, price %.2f" % (guess[0][0], price[0]))


if __name__ == "__main__":
    main()
