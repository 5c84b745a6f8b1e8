# SPDX-License-Identifier: Apache-2.0
"""What the v2 chapters share: options, and training that ends with a tar.

With PADDLE_CLUSTER_TRAIN=True and the PADDLE_INIT_* variables of paddle.init a
chapter trains with parameter servers, on its share of the samples, and trainer
0 writes output/pass-00000.tar and so on.
"""
import itertools
import os
import sys

import paddle.v2 as paddle

# options, batches and verdict are those of the Fluid examples
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import batches, options, verdict  # noqa: E402,F401


CLUSTER = os.environ.get("PADDLE_CLUSTER_TRAIN", "").lower() in (
    "true", "1", "yes")
ME, TRAINERS = (int(os.environ.get("PADDLE_INIT_" + name, value)) for name, value
                in (("TRAINER_ID", 0), ("NUM_GRADIENT_SERVERS", 1)))


def mine(samples):
    """A reader of the samples that are this trainer's."""
    if not CLUSTER:
        return samples
    return lambda: itertools.islice(samples(), ME, None, TRAINERS)


def save(trainer, path):
    with open(path, "wb") as f:
        trainer.save_parameter_to_tar(f)


def train(cost, update, reader, passes, tar, test=None, every=200):
    """Train, print what events say, save: the parameters that the tar has,
    and the last result of the test."""
    parameters = paddle.parameters.create(cost)
    trainer = paddle.trainer.SGD(cost=cost, parameters=parameters,
                                 update_equation=update, is_local=not CLUSTER)
    last = [None]

    def handler(event):
        if isinstance(event, paddle.event.EndIteration):
            if event.batch_id % every == 0:
                print("Pass %d, Batch %d, Cost %f, %s" % (
                    event.pass_id, event.batch_id, event.cost,
                    event.metrics))
        if isinstance(event, paddle.event.EndPass) and test:
            last[0] = trainer.test(reader=test)
            print("Test with Pass %d, Cost %f, %s" % (
                event.pass_id, last[0].cost, last[0].metrics), flush=True)
        if isinstance(event, paddle.event.EndPass) and CLUSTER and ME == 0:
            os.makedirs("output", exist_ok=True)
            save(trainer, "output/pass-%05d.tar" % event.pass_id)

    trainer.train(reader=reader, num_passes=passes, event_handler=handler)
    if ME:
        return parameters, last[0]
    save(trainer, tar)
    with open(tar, "rb") as f:
        return paddle.parameters.Parameters.from_tar(f), last[0]
