# SPDX-License-Identifier: Apache-2.0
"""Recognise handwritten digits, with full layers (mlp) or pictures (conv)."""
import numpy as np

import paddle
import paddle.fluid as fluid
from common import batches, options, verdict

BARS = {"mlp": 0.965, "conv": 0.985}  # share of test pictures that is right
BATCH = 64


def mlp(picture):
    hidden = fluid.layers.fc(input=picture, size=200, act="relu")
    hidden = fluid.layers.fc(input=hidden, size=200, act="relu")
    return fluid.layers.fc(input=hidden, size=10, act="softmax")


def conv(picture):
    for filters in (20, 50):
        picture = fluid.nets.simple_img_conv_pool(
            input=picture, num_filters=filters, filter_size=5, pool_size=2,
            pool_stride=2, act="relu")
        if filters == 20:
            picture = fluid.layers.batch_norm(picture)
    return fluid.layers.fc(input=picture, size=10, act="softmax")


def train(args):
    picture = fluid.layers.data(name="picture", shape=[1, 28, 28])
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    guess = {"mlp": mlp, "conv": conv}[args.kind](picture)
    loss = fluid.layers.mean(
        fluid.layers.cross_entropy(input=guess, label=label))
    right = fluid.layers.accuracy(input=guess, label=label)
    test_program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adam(learning_rate=0.0005).minimize(loss)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=[picture, label],
                              place=fluid.CPUPlace())
    reader = batches(paddle.dataset.mnist.train(), BATCH, args.batches,
                     shuffle=5000)
    tests = batches(paddle.dataset.mnist.test(), BATCH, args.batches)
    for number in range(args.passes):
        for step, batch in enumerate(reader()):
            value, = exe.run(feed=feeder.feed(batch), fetch_list=[loss])
            if step % 200 == 0:
                print("pass %d, batch %d, loss %.4f"
                      % (number + 1, step, value.item()))
        share = fluid.average.WeightedAverage()
        for batch in tests():
            value, = exe.run(test_program, feed=feeder.feed(batch),
                             fetch_list=[right])
            share.add(value, len(batch))
        print("pass %d, right on test %.4f" % (number + 1, share.eval()))
    fluid.io.save_inference_model(args.model, ["picture"], [guess], exe)


def infer(folder, most):
    """The share of test pictures that the saved model gets right."""
    with fluid.scope_guard(fluid.core.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
        right = total = 0
        for batch in batches(paddle.dataset.mnist.test(), 100, most)():
            pictures = np.array([b[0] for b in batch], "float32")
            guesses, = exe.run(
                program, feed={feeds[0]: pictures.reshape(-1, 1, 28, 28)},
                fetch_list=fetches)
            labels = np.array([b[1] for b in batch])
            right += int((guesses.argmax(axis=1) == labels).sum())
            total += len(batch)
    return right / total


if __name__ == "__main__":
    args = options(__doc__, 5, "recognize_digits.model", "mlp", "conv")
    train(args)
    verdict("right on test", infer(args.model, args.batches),
            BARS[args.kind], args.batches)
