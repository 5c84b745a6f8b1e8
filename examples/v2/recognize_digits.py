# SPDX-License-Identifier: Apache-2.0
"""Recognise handwritten digits (MNIST), with v2: one softmax layer, full
layers (mlp) or pictures (conv)."""
import numpy as np

import paddle.v2 as paddle
from book import batches, options, train, verdict

BARS = {"softmax": 0.90, "mlp": 0.95, "conv": 0.97}  # share that is right
BATCH = 128


def softmax(picture):
    return paddle.layer.fc(input=picture, size=10,
                           act=paddle.activation.Softmax())


def mlp(picture):
    hidden = paddle.layer.fc(input=picture, size=128,
                             act=paddle.activation.Relu())
    hidden = paddle.layer.fc(input=hidden, size=64,
                             act=paddle.activation.Relu())
    return softmax(hidden)


def conv(picture):
    first = paddle.networks.simple_img_conv_pool(
        input=picture, filter_size=5, num_filters=20, num_channel=1,
        pool_size=2, pool_stride=2, act=paddle.activation.Relu())
    second = paddle.networks.simple_img_conv_pool(
        input=first, filter_size=5, num_filters=50, num_channel=20,
        pool_size=2, pool_stride=2, act=paddle.activation.Relu())
    return softmax(second)


if __name__ == "__main__":
    args = options(__doc__, 3, "recognize_digits.tar", "mlp", "softmax",
                   "conv")
    paddle.init(use_gpu=False, trainer_count=1)
    picture = paddle.layer.data(name="pixel",
                                type=paddle.data_type.dense_vector(784))
    label = paddle.layer.data(name="label",
                              type=paddle.data_type.integer_value(10))
    guess = {"softmax": softmax, "mlp": mlp, "conv": conv}[args.kind](picture)
    cost = paddle.layer.classification_cost(input=guess, label=label)
    update = paddle.optimizer.Momentum(
        learning_rate=0.02 / BATCH, momentum=0.9,
        regularization=paddle.optimizer.L2Regularization(rate=5e-4 * BATCH))
    parameters, result = train(
        cost, update, batches(paddle.dataset.mnist.train(), BATCH,
                              args.batches, shuffle=8192),
        args.passes, args.model,
        batches(paddle.dataset.mnist.test(), BATCH, args.batches))
    some = [row for _, row in zip(range(10), paddle.dataset.mnist.test()())]
    answers = paddle.infer(output_layer=guess, parameters=parameters,
                           input=[(row[0],) for row in some])
    print("labels %s, answers %s" % ([row[1] for row in some],
                                     np.argmax(answers, axis=1).tolist()))
    verdict("right on test", 1 - result.metrics[
        "classification_error_evaluator"], BARS[args.kind], args.batches)
