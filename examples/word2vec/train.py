# SPDX-License-Identifier: Apache-2.0
"""Word vectors with the v2 API: guess a word from the four before it.

    python prepare.py && python train.py

trains in this process on every file that prepare.py wrote. In a cluster each
trainer runs the same line with PADDLE_CLUSTER_TRAIN=True and the PADDLE_INIT_*
variables of paddle.init; it takes the files whose number, divided by the
number of trainers, leaves its own (`mod`). After each pass trainer 0 writes
output/pass-00000.tar and so on.
"""
import argparse
import os
import pickle
import sys

import paddle.v2 as paddle

WIDTH, HIDDEN, WORDS = 32, 256, 5
CLUSTER = os.environ.get("PADDLE_CLUSTER_TRAIN") in (
    "true", "True", "TRUE", "1", "yes", "Yes", "YES")


def place():
    """(number of this trainer, trainers). PADDLE_INIT_* say it, or mpirun."""
    if not CLUSTER:
        return 0, 1
    get = os.environ.get
    me = get("PADDLE_INIT_TRAINER_ID") or get("OMPI_COMM_WORLD_RANK")
    all_ = get("PADDLE_INIT_NUM_GRADIENT_SERVERS") or get(
        "OMPI_COMM_WORLD_SIZE")
    if me is None or all_ is None:
        sys.exit("train: PADDLE_CLUSTER_TRAIN is set; set "
                 "PADDLE_INIT_TRAINER_ID and "
                 "PADDLE_INIT_NUM_GRADIENT_SERVERS too, or use mpirun")
    return int(me), int(all_)


def files(folder, part, me, trainers):
    """The files of a part that are this trainer's, by `mod`."""
    mine = []
    for name in sorted(os.listdir(folder)):
        head, dash, suffix = name.partition("-")
        if head == part and dash and int(suffix) % trainers == me:
            mine.append(os.path.join(folder, name))
    if not mine:
        sys.exit("train: %s has no %s-* for trainer %d of %d; run prepare.py "
                 "with --split %d or more" % (folder, part, me, trainers,
                                              trainers))
    return mine


def reader(paths, size, most):
    def rows():
        for path in paths:
            with open(path) as f:
                for line in f:
                    yield tuple(map(int, line.split(",")))

    whole = paddle.batch(rows, size)
    return paddle.reader.firstn(whole, most) if most else whole


def network(words, drop):
    """The distribution of the next word; all words share one table, whose
    rows are updated one by one."""
    word = paddle.data_type.integer_value(words)
    table = paddle.attr.Param(name="_proj", initial_std=0.001,
                              learning_rate=1, l2_rate=0, sparse_update=True)
    vectors = [paddle.layer.embedding(
        input=paddle.layer.data(name=name, type=word), size=WIDTH,
        param_attr=table) for name in ("firstw", "secondw", "thirdw",
                                       "fourthw")]
    hidden = paddle.layer.fc(
        input=paddle.layer.concat(input=vectors), size=HIDDEN,
        act=paddle.activation.Sigmoid(),
        layer_attr=paddle.attr.Extra(drop_rate=drop) if drop else None,
        bias_attr=paddle.attr.Param(learning_rate=2),
        param_attr=paddle.attr.Param(
            initial_std=1.0 / (WIDTH * 8) ** 0.5, learning_rate=1))
    return paddle.layer.fc(
        input=hidden, size=words, act=paddle.activation.Softmax(),
        bias_attr=paddle.attr.Param(learning_rate=2))


def train(args, guess, label, me, trainers):
    cost = paddle.layer.classification_cost(input=guess, label=label)
    parameters = paddle.parameters.create(cost)
    trainer = paddle.trainer.SGD(
        cost=cost, parameters=parameters, is_local=not CLUSTER,
        update_equation=paddle.optimizer.AdaGrad(
            learning_rate=args.rate,
            regularization=paddle.optimizer.L2Regularization(args.decay)))
    test = reader(files(args.test, "test.txt", me, trainers), args.batch,
                  args.batches or 100)
    last = [None]

    def handler(event):
        if isinstance(event, paddle.event.EndIteration):
            if event.batch_id % args.period == 0:
                print("Pass %d, Batch %d, Cost %f, %s" % (
                    event.pass_id, event.batch_id, event.cost,
                    event.metrics), flush=True)
        if isinstance(event, paddle.event.EndPass):
            last[0] = trainer.test(reader=test)
            print("Pass %d, Testing cost %f, metrics %s" % (
                event.pass_id, last[0].cost, last[0].metrics), flush=True)
            if me == 0:
                os.makedirs(args.output, exist_ok=True)
                path = os.path.join(args.output,
                                    "pass-%05d.tar" % event.pass_id)
                with open(path, "wb") as f:
                    trainer.save_parameter_to_tar(f)

    trainer.train(reader=reader(files(args.train, "train.txt", me, trainers),
                                args.batch, args.batches),
                  num_passes=args.passes, event_handler=handler)
    return last[0].cost


def infer(args, guess, dictionary):
    """Let the last model go on with a few words."""
    path = os.path.join(args.output, "pass-%05d.tar" % (args.passes - 1))
    with open(path, "rb") as f:
        parameters = paddle.parameters.Parameters.from_tar(f)
    words = {i: w for w, i in dictionary.items()}
    with open(files(args.test, "test.txt", 0, 1)[0]) as f:
        start = tuple(map(int, f.readline().split(",")))[:-1]
    answer = paddle.infer(output_layer=guess, parameters=parameters,
                          input=[start])
    best = answer[0].argsort()[:-4:-1]
    print("%s ... %s" % (" ".join(words[i] for i in start),
                         ", ".join(words[i] for i in best)))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, value, about in (
            ("train", ".", "folder of train.txt-*"),
            ("test", ".", "folder of test.txt-*"),
            ("dict", "word_dict.pickle", "what prepare.py wrote"),
            ("output", "output", "folder of the models"),
            ("passes", 1, "over the training data"),
            ("batch", 32, "rows of a batch"),
            ("batches", 0, "of a pass, for a short run; 0: all"),
            ("period", 100, "batches between two lines of output"),
            ("rate", 3e-3, "learning rate"),
            ("decay", 8e-4, "rate of L2 regularization"),
            ("drop", 0.5, "share of the hidden layer that is dropped")):
        parser.add_argument("--" + name, type=type(value), default=value,
                            help="%s (%%(default)s)" % about)
    args = parser.parse_args()
    paddle.init()
    me, trainers = place()
    with open(args.dict, "rb") as f:
        dictionary = pickle.load(f)
    guess = network(len(dictionary), args.drop)
    label = paddle.layer.data(
        name="fifthw", type=paddle.data_type.integer_value(len(dictionary)))
    cost = train(args, guess, label, me, trainers)
    if me == 0:
        infer(args, guess, dictionary)
    print("cost on test %.4f" % cost)


if __name__ == "__main__":
    main()
