# SPDX-License-Identifier: Apache-2.0
"""What the v2 chapters share: options, and training that ends with a tar."""
import os
import sys

import paddle.v2 as paddle

# options, batches and verdict are those of the Fluid examples
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import batches, options, verdict  # noqa: E402,F401


def train(cost, update, reader, passes, tar, test=None, every=200):
    """Train, print what events say, save: the parameters that the tar has,
    and the last result of the test."""
    parameters = paddle.parameters.create(cost)
    trainer = paddle.trainer.SGD(cost=cost, parameters=parameters,
                                 update_equation=update)
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
                event.pass_id, last[0].cost, last[0].metrics))

    trainer.train(reader=reader, num_passes=passes, event_handler=handler)
    with open(tar, "wb") as f:
        trainer.save_parameter_to_tar(f)
    with open(tar, "rb") as f:
        return paddle.parameters.Parameters.from_tar(f), last[0]
