# SPDX-License-Identifier: Apache-2.0
"""Fit a line: the price of a house from thirteen figures about it."""
import numpy as np

import paddle
import paddle.fluid as fluid
from common import batches, options, verdict

BAR = 25.0  # mean squared error on houses never seen, in (1000 dollars)^2


def train(args):
    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    price = fluid.layers.fc(input=x, size=1)
    loss = fluid.layers.mean(
        fluid.layers.square_error_cost(input=price, label=y))
    fluid.optimizer.SGD(learning_rate=0.01).minimize(loss)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=[x, y], place=fluid.CPUPlace())
    reader = batches(paddle.dataset.uci_housing.train(), 20, args.batches,
                     shuffle=500)
    for number in range(args.passes):
        losses = [exe.run(feed=feeder.feed(batch), fetch_list=[loss])[0]
                  for batch in reader()]
        if number % 20 == 19 or number == args.passes - 1:
            print("pass %d, mean loss %.3f" % (number + 1, np.mean(losses)))
    fluid.io.save_inference_model(args.model, ["x"], [price], exe)


def infer(folder):
    """The mean squared error of the saved model on the test data."""
    scope = fluid.core.Scope()
    with fluid.scope_guard(scope):
        exe = fluid.Executor(fluid.CPUPlace())
        program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
        houses = list(paddle.dataset.uci_housing.test()())
        figures = np.array([h[0] for h in houses], "float32")
        prices = np.array([h[1] for h in houses], "float32")
        guesses, = exe.run(program, feed={feeds[0]: figures},
                           fetch_list=fetches)
    for guess, price in list(zip(guesses, prices))[:5]:
        print("guess %6.2f   price %6.2f" % (guess[0], price[0]))
    return float(np.mean((guesses - prices) ** 2))


if __name__ == "__main__":
    args = options(__doc__, 100, "fit_a_line.model")
    train(args)
    verdict("mean squared error", infer(args.model), BAR, args.batches, True)
