# SPDX-License-Identifier: Apache-2.0
"""Tell ten kinds of things apart in small pictures (CIFAR-10).

The networks are a small VGG and a small ResNet. The published set has 50,000
pictures to learn from; with a sample of it the bar is what a thousand
pictures can teach.
"""
import numpy as np

import paddle
import paddle.fluid as fluid
from common import batches, options, verdict

BAR = 0.35  # share of test pictures that is right; guessing gives 0.1
BATCH = 50


def vgg(picture):
    def block(x, filters, times, drop):
        return fluid.nets.img_conv_group(
            input=x, conv_num_filter=[filters] * times, pool_size=2,
            conv_act="relu", conv_with_batchnorm=True,
            conv_batchnorm_drop_rate=[drop] * (times - 1) + [0.0],
            pool_stride=2)

    x = block(picture, 16, 2, 0.1)
    x = block(x, 32, 2, 0.1)
    x = block(x, 64, 2, 0.1)
    x = fluid.layers.fc(input=fluid.layers.dropout(x, dropout_prob=0.3),
                        size=64)
    x = fluid.layers.batch_norm(input=x, act="relu")
    return fluid.layers.fc(input=x, size=10, act="softmax")


def resnet(picture):
    def conv(x, filters, size, stride, act="relu"):
        x = fluid.layers.conv2d(
            input=x, num_filters=filters, filter_size=size, stride=stride,
            padding=(size - 1) // 2, bias_attr=False)
        return fluid.layers.batch_norm(input=x, act=act)

    def block(x, filters, stride):
        way = x if stride == 1 else conv(x, filters, 1, stride, None)
        x = conv(conv(x, filters, 3, stride), filters, 3, 1, None)
        return fluid.layers.elementwise_add(x=x, y=way, act="relu")

    x = conv(picture, 16, 3, 1)
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        x = block(x, filters, stride)
    x = fluid.layers.pool2d(input=x, pool_type="avg", global_pooling=True)
    return fluid.layers.fc(input=x, size=10, act="softmax")


def train(args):
    picture = fluid.layers.data(name="picture", shape=[3, 32, 32])
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    guess = {"vgg": vgg, "resnet": resnet}[args.kind](picture)
    loss = fluid.layers.mean(
        fluid.layers.cross_entropy(input=guess, label=label))
    right = fluid.layers.accuracy(input=guess, label=label)
    fluid.optimizer.Adam(
        learning_rate=0.003,
        regularization=fluid.regularizer.L2Decay(1e-4)).minimize(loss)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=[picture, label],
                              place=fluid.CPUPlace())
    reader = batches(paddle.dataset.cifar.train10(), BATCH, args.batches,
                     shuffle=5000)
    for number in range(args.passes):
        results = [exe.run(feed=feeder.feed(batch), fetch_list=[loss, right])
                   for batch in reader()]
        print("pass %d, loss %.4f, right in training %.4f" % (
            number + 1, *np.mean(results, axis=0).ravel()))
    fluid.io.save_inference_model(args.model, ["picture"], [guess], exe)


def infer(folder, most):
    """The share of test pictures that the saved model gets right."""
    with fluid.scope_guard(fluid.core.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
        right = []
        for batch in batches(paddle.dataset.cifar.test10(), 100, most)():
            pictures = np.array([b[0] for b in batch], "float32")
            guesses, = exe.run(
                program, feed={feeds[0]: pictures.reshape(-1, 3, 32, 32)},
                fetch_list=fetches)
            right.extend(guesses.argmax(axis=1) == [b[1] for b in batch])
    return float(np.mean(right))


if __name__ == "__main__":
    args = options(__doc__, 10, "image_classification.model", "vgg", "resnet")
    train(args)
    verdict("right on test", infer(args.model, args.batches), BAR,
            args.batches)
