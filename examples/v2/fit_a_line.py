# SPDX-License-Identifier: Apache-2.0
"""Predict the price of a house from 13 numbers (UCI housing), with v2."""
import numpy as np

import paddle.v2 as paddle
from book import batches, options, train, verdict

BAR = 30.0  # mean squared error on test; the mean price has 84
BATCH = 20

if __name__ == "__main__":
    args = options(__doc__, 30, "fit_a_line.tar")
    paddle.init(use_gpu=False, trainer_count=1)
    x = paddle.layer.data(name="x", type=paddle.data_type.dense_vector(13))
    price = paddle.layer.fc(input=x, size=1,
                            act=paddle.activation.Linear())
    y = paddle.layer.data(name="y", type=paddle.data_type.dense_vector(1))
    cost = paddle.layer.square_error_cost(input=price, label=y)
    parameters, result = train(
        cost, paddle.optimizer.Momentum(momentum=0, learning_rate=1e-3),
        batches(paddle.dataset.uci_housing.train(), BATCH, args.batches,
                shuffle=500), args.passes, args.model,
        batches(paddle.dataset.uci_housing.test(), BATCH, args.batches))
    some = [row for _, row in zip(range(5),
                                  paddle.dataset.uci_housing.test()())]
    guesses = paddle.infer(output_layer=price, parameters=parameters,
                           input=[(row[0],) for row in some])
    for (_, true), guess in zip(some, guesses):
        print("price %.1f, predicted %.1f" % (np.asarray(true).item(),
                                              guess.item()))
    verdict("mean squared error", result.cost, BAR, args.batches, below=True)
