# SPDX-License-Identifier: Apache-2.0
"""Tell ten kinds of things apart in small pictures (CIFAR-10), with v2.

The networks are a small VGG and a small ResNet. With a sample of the
published set the bar is what a thousand pictures can teach.
"""
import numpy as np

import paddle.v2 as paddle
from book import batches, options, train, verdict

BAR = 0.30  # share of test pictures that is right; guessing gives 0.1
BATCH = 50


def vgg(picture):
    def block(x, filters, channels=None):
        return paddle.networks.img_conv_group(
            input=x, num_channels=channels, conv_num_filter=[filters] * 2,
            conv_with_batchnorm=True, conv_batchnorm_drop_rate=[0.1, 0],
            pool_size=2, pool_stride=2, pool_type=paddle.pooling.Max())

    x = block(block(block(picture, 16, 3), 32), 64)
    x = paddle.layer.dropout(input=x, dropout_rate=0.3)
    x = paddle.layer.fc(input=x, size=64, act=paddle.activation.Linear())
    return paddle.layer.batch_norm(input=x, act=paddle.activation.Relu())


def resnet(picture):
    def conv(x, filters, size, stride, act, channels=None):
        x = paddle.layer.img_conv(
            input=x, filter_size=size, num_channels=channels, stride=stride,
            num_filters=filters, padding=(size - 1) // 2, bias_attr=False,
            act=paddle.activation.Linear())
        return paddle.layer.batch_norm(input=x, act=act)

    relu, linear = paddle.activation.Relu(), paddle.activation.Linear()

    def block(x, filters, stride):
        way = x if stride == 1 else conv(x, filters, 1, stride, linear)
        x = conv(conv(x, filters, 3, stride, relu), filters, 3, 1, linear)
        return paddle.layer.addto(input=[x, way], act=relu)

    x = conv(picture, 16, 3, 1, relu, channels=3)
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        x = block(x, filters, stride)
    return paddle.layer.img_pool(input=x, pool_size=8, stride=1,
                                 pool_type=paddle.pooling.Avg())


if __name__ == "__main__":
    args = options(__doc__, 10, "image_classification.tar", "vgg", "resnet")
    paddle.init(use_gpu=False, trainer_count=1)
    picture = paddle.layer.data(
        name="image", type=paddle.data_type.dense_vector(3 * 32 * 32))
    label = paddle.layer.data(name="label",
                              type=paddle.data_type.integer_value(10))
    features = {"vgg": vgg, "resnet": resnet}[args.kind](picture)
    guess = paddle.layer.fc(input=features, size=10,
                            act=paddle.activation.Softmax())
    cost = paddle.layer.classification_cost(input=guess, label=label)
    parameters, result = train(
        cost, paddle.optimizer.Adam(
            learning_rate=0.003, learning_rate_schedule="pass_manual",
            learning_rate_args="3:1.0,6:0.3,9:0.1"),
        batches(paddle.dataset.cifar.train10(), BATCH, args.batches,
                shuffle=5000), args.passes, args.model,
        batches(paddle.dataset.cifar.test10(), BATCH, args.batches),
        every=10)
    some = [row for _, row in zip(range(8), paddle.dataset.cifar.test10()())]
    answers = paddle.infer(output_layer=guess, parameters=parameters,
                           input=[(row[0],) for row in some])
    print("labels %s, answers %s" % ([int(row[1]) for row in some],
                                     np.argmax(answers, axis=1).tolist()))
    verdict("right on test", 1 - result.metrics[
        "classification_error_evaluator"], BAR, args.batches)
