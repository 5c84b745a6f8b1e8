# SPDX-License-Identifier: Apache-2.0
"""v2.py [SECONDS] - word2vec of the v2 API beside the same Fluid program.

Both read the same batches of five ids, convert them and train; they run in
turn. Prints the samples a second of each as JSON, and their ratio.
"""
import itertools
import json
import sys
import time

import numpy as np

import paddle.fluid as fluid
import paddle.v2 as paddle

WORDS, WIDTH, HIDDEN, BATCH, TURNS = 2073, 32, 256, 32, 5
NAMES = ["firstw", "secondw", "thirdw", "fourthw", "fifthw"]
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
ROWS = np.random.RandomState(1).zipf(1.3, (64 * BATCH, 5)) % WORDS
BATCHES = [[tuple(map(int, row)) for row in ROWS[i:i + BATCH]]
           for i in range(0, len(ROWS), BATCH)]


def v2_side():
    """A function that trains on some batches."""
    paddle.init(trainer_count=1)
    words = [paddle.layer.data(name=n, type=paddle.data_type.integer_value(
        WORDS)) for n in NAMES]
    table = paddle.attr.Param(name="_proj", initial_std=0.001,
                              sparse_update=True)
    vectors = [paddle.layer.embedding(input=w, size=WIDTH, param_attr=table)
               for w in words[:4]]
    hidden = paddle.layer.fc(
        input=paddle.layer.concat(input=vectors), size=HIDDEN,
        act=paddle.activation.Sigmoid(),
        layer_attr=paddle.attr.Extra(drop_rate=0.5))
    guess = paddle.layer.fc(input=hidden, size=WORDS,
                            act=paddle.activation.Softmax())
    cost = paddle.layer.classification_cost(input=guess, label=words[4])
    trainer = paddle.trainer.SGD(
        cost=cost, parameters=paddle.parameters.create(cost),
        update_equation=paddle.optimizer.AdaGrad(
            learning_rate=3e-3,
            regularization=paddle.optimizer.L2Regularization(8e-4)))
    return lambda batches: trainer.train(lambda: iter(batches))


def fluid_side():
    """The same, written with fluid.layers."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    layers = fluid.layers
    with fluid.program_guard(main, startup):
        words = [layers.data(n, [1], dtype="int64") for n in NAMES]
        vectors = [layers.embedding(w, [WORDS, WIDTH], is_sparse=True,
                                    param_attr="_proj") for w in words[:4]]
        hidden = layers.fc(layers.concat(vectors, axis=1), HIDDEN,
                           act="sigmoid")
        hidden = layers.dropout(hidden, dropout_prob=0.5)
        guess = layers.fc(hidden, WORDS, act="softmax")
        rows = layers.cross_entropy(guess, words[4])
        right, total = (layers.create_tensor("int32") for _ in range(2))
        layers.accuracy(guess, words[4], correct=right, total=total)
        loss = layers.reduce_sum(rows)
        fluid.optimizer.V2AdaGrad(3e-3, l2=8e-4).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    feeder = fluid.DataFeeder(words, fluid.CPUPlace(), main)

    def train(batches):
        for batch in batches:
            exe.run(main, feed=feeder.feed(batch), scope=scope,
                    fetch_list=[loss, right, total])
    return train


def speed(train):
    """Samples a second of one turn."""
    batches = itertools.cycle(BATCHES)
    begin = now = time.perf_counter()
    done = 0
    while now < begin + SECONDS / TURNS:
        train(list(itertools.islice(batches, 100)))
        done += 100 * BATCH
        now = time.perf_counter()
    return done / (now - begin)


if __name__ == "__main__":
    sides = {"v2": v2_side(), "fluid": fluid_side()}
    best = dict.fromkeys(sides, 0.0)
    for train in sides.values():
        train(BATCHES)
    for _ in range(TURNS):
        for name, train in sides.items():
            best[name] = max(best[name], speed(train))
    print(json.dumps({**{"%s_samples_per_s" % n: round(v)
                         for n, v in best.items()},
                      "ratio": round(best["v2"] / best["fluid"], 3)}))
