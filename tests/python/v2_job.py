# SPDX-License-Identifier: Apache-2.0
"""A small word model of paddle.v2, alone or with servers; for test_v2_servers.

    python v2_job.py '{"local": true}'

Prints a line for each batch, and writes what it has learned to OUT. Every
trainer draws start values of its own: those of trainer 0 must count. With
"count" every parameter starts at 0, and each use of it in a batch subtracts
the learning rate."""
import json
import os
import sys

import numpy as np
import paddle.v2 as paddle

ASKED = {"local": False, "optimizer": "Momentum", "args": {}, "passes": 2,
         "rows": 96, "batch": 24, "sparse": True, "hidden": 8, "out": "",
         "trains": 1, "test": False, "init": {}, "extra": 0, "fail": False,
         "count": False, "average": 0,
         **json.loads(sys.argv[1])}
WORDS = 4000  # a table that is cut into pieces


def rows():
    rng = np.random.RandomState(7)
    for _ in range(ASKED["rows"]):
        a, b = rng.randint(WORDS, size=2)
        yield (int(a), int(b)) if ASKED["count"] else (
            int(a), int(b), int((a + b) % 5))


def network():
    word = paddle.data_type.integer_value(WORDS)
    table = paddle.attr.Param(name="table", sparse_update=ASKED["sparse"])
    seen = [paddle.layer.embedding(
        input=paddle.layer.data(name=n, type=word), size=6, param_attr=table)
        for n in "ab"]
    if ASKED["count"]:
        return paddle.layer.sum_cost(input=paddle.layer.addto(
            input=seen, act=paddle.activation.Linear(), bias_attr=True))
    hidden = paddle.layer.fc(input=paddle.layer.concat(input=seen),
                             size=ASKED["hidden"])
    predict = paddle.layer.fc(input=hidden, size=5,
                              act=paddle.activation.Softmax())
    label = paddle.layer.data(name="c", type=paddle.data_type.integer_value(5))
    return paddle.layer.classification_cost(input=predict, label=label)


def main():
    paddle.init(**ASKED["init"])
    get = {**{k[len("PADDLE_INIT_"):].lower(): v
              for k, v in os.environ.items()}, **ASKED["init"]}.get
    me, n = (0, 1) if ASKED["local"] else (
        int(get("trainer_id")), int(get("num_gradient_servers")))
    cost = network()
    parameters = paddle.parameters.create(cost)
    rng = np.random.RandomState(11 + me)
    for name in parameters.keys():
        parameters[name] = rng.normal(
            0, 0.0 if ASKED["count"] else 0.3,
            parameters.get_shape(name)).astype("float32")
    trainer = paddle.trainer.SGD(
        cost=cost, parameters=parameters, is_local=ASKED["local"],
        update_equation=getattr(paddle.optimizer, ASKED["optimizer"])(
            **{"learning_rate": 0.02, **ASKED["args"],
               "model_average": ASKED["average"] and
               paddle.optimizer.ModelAverage(ASKED["average"]) or None}))
    mine = list(rows())[me::n]
    if me:
        mine = mine[:len(mine) - ASKED["extra"] * ASKED["batch"] // n]
    reader = paddle.batch(lambda: iter(mine), ASKED["batch"] // n)

    def handler(event):
        if isinstance(event, paddle.event.EndIteration):
            print("cost %.9f" % event.cost, flush=True)
            if ASKED["fail"]:
                raise ValueError("the handler has had enough")

    for _ in range(ASKED["trains"]):
        trainer.train(reader, num_passes=ASKED["passes"],
                      event_handler=handler)
        if ASKED["test"]:
            print("test %.9f" % trainer.test(reader).cost)
    if ASKED["out"]:
        with open(ASKED["out"] + str(me), "wb") as f:
            trainer.save_parameter_to_tar(f)
    print("done", flush=True)


if __name__ == "__main__":
    main()
