# SPDX-License-Identifier: Apache-2.0
"""nets.py TASK SECONDS - small networks through the Python front.

Each step is a whole exe.run with feed and fetch, on random data in memory.
Prints one line of JSON. Tasks and sizes are those of the peers.
"""
import json
import resource
import sys
import time

import numpy as np

import paddle.fluid as fluid

WARM = 20  # steps before the clock runs
WORDS = 2074
layers = fluid.layers


def cost(guess, label):
    return layers.mean(layers.cross_entropy(input=guess, label=label))


def fit_a_line(draw):
    x = layers.data(name="x", shape=[13])
    y = layers.data(name="y", shape=[1])
    data = {"x": draw.standard_normal((506, 13)).astype("float32")}
    data["y"] = data["x"].sum(axis=1, keepdims=True) + np.float32(22.5)
    guess = layers.fc(input=x, size=1)
    return 20, data, layers.mean(layers.square_error_cost(guess, y))


def word2vec(draw):
    names = ["w0", "w1", "w2", "w3", "next"]
    words = [layers.data(name=n, shape=[1], dtype="int64") for n in names]
    data = {n: (draw.random((20000, 1)) ** 3 * WORDS).astype("int64")
            for n in names}
    vectors = [layers.embedding(input=w, size=[WORDS, 32], is_sparse=True,
                                param_attr="vectors") for w in words[:-1]]
    hidden = layers.fc(input=layers.concat(vectors, axis=1), size=256,
                       act="sigmoid")
    guess = layers.fc(input=hidden, size=WORDS, act="softmax")
    return 32, data, cost(guess, words[-1])


def digits(draw, network):
    picture = layers.data(name="picture", shape=[1, 28, 28])
    label = layers.data(name="label", shape=[1], dtype="int64")
    data = {"picture": draw.standard_normal(
                (4096, 1, 28, 28)).astype("float32"),
            "label": draw.integers(0, 10, (4096, 1))}
    guess = layers.fc(input=network(picture), size=10, act="softmax")
    return 64, data, cost(guess, label)


def mlp(x):
    for _ in range(2):
        x = layers.fc(input=x, size=200, act="tanh")
    return x


def lenet(x):
    for filters in (20, 50):
        x = fluid.nets.simple_img_conv_pool(
            input=x, num_filters=filters, filter_size=5, pool_size=2,
            pool_stride=2, act="relu")
    return x


def vgg(draw):
    """VGG-16 with batch norm on pictures of 3 x 32 x 32."""
    picture = layers.data(name="picture", shape=[3, 32, 32])
    label = layers.data(name="label", shape=[1], dtype="int64")
    data = {"picture": draw.standard_normal(
                (256, 3, 32, 32)).astype("float32"),
            "label": draw.integers(0, 10, (256, 1))}
    x = picture
    for filters, rates in ((64, (0.3, 0)), (128, (0.4, 0)), (256, (0.4, 0.4, 0)),
                           (512, (0.4, 0.4, 0)), (512, (0.4, 0.4, 0))):
        x = fluid.nets.img_conv_group(
            input=x, conv_num_filter=[filters] * len(rates), pool_size=2,
            pool_stride=2, conv_filter_size=3, conv_act="relu",
            conv_with_batchnorm=True, conv_batchnorm_drop_rate=list(rates))
    x = layers.fc(input=layers.dropout(x, dropout_prob=0.5), size=512)
    x = layers.batch_norm(input=x, act="relu")
    x = layers.fc(input=layers.dropout(x, dropout_prob=0.5), size=512)
    return 128, data, cost(layers.fc(input=x, size=10, act="softmax"), label)


TASKS = {"fit_a_line": fit_a_line, "word2vec": word2vec,
         "mnist_mlp": lambda draw: digits(draw, mlp),
         "lenet": lambda draw: digits(draw, lenet), "vgg": vgg}


def batches(data, size):
    """Slices of the data, over and over."""
    rows = len(next(iter(data.values())))
    while True:
        for i in range(0, rows - size + 1, size):
            yield {name: rest[i:i + size] for name, rest in data.items()}


def main(task, seconds):
    size, data, loss = TASKS[task](np.random.default_rng(7))
    optimizer = fluid.optimizer.Adam if task == "vgg" else fluid.optimizer.SGD
    optimizer(learning_rate=0.001).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    program, fetch, feed = fluid.default_main_program(), [loss], \
        batches(data, size)
    for _ in range(2 if task == "vgg" else WARM):
        exe.run(program, feed=next(feed), fetch_list=fetch)
    took, began = [], time.perf_counter()
    while time.perf_counter() - began < float(seconds):
        at = time.perf_counter()
        value, = exe.run(program, feed=next(feed), fetch_list=fetch)
        took.append(time.perf_counter() - at)
    whole = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({
        "task": task, "batch": size, "steps": len(took),
        "samples_per_s": round(size * len(took) / whole),
        "step_us_p50": round(float(np.median(took)) * 1e6, 2),
        "rss_mb": memory, "loss": float(value[0])}))


if __name__ == "__main__":
    main(*sys.argv[1:])
