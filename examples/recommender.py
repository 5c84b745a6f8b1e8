# SPDX-License-Identifier: Apache-2.0
"""Recommend films: guess how a user would rate one (MovieLens).

Where there are no ratings, the script makes some up and says so.
"""
import os
import random
import sys
import tempfile

import numpy as np

import paddle
import paddle.fluid as fluid
from common import batches, options, verdict
from paddle.dataset import movielens

BAR = 3.8  # mean squared error of rating * 2 - 5, which spans 0.5 stars a step
BATCH = 256


def make_up_ratings(folder, users=200, films=300, each=40):
    """Files of ml-1m's shape: users and films have tastes in common."""
    draw = random.Random(1)
    kinds = ["Action", "Comedy", "Drama", "Horror"]
    os.makedirs(os.path.join(folder, "movielens"))

    def write(name, rows):
        with open(os.path.join(folder, "movielens", name), "w") as f:
            f.writelines("::".join(map(str, row)) + "\n" for row in rows)

    taste = {u: draw.choice(kinds) for u in range(1, users + 1)}
    kind = {m: draw.choice(kinds) for m in range(1, films + 1)}
    write("users.dat", ((u, draw.choice("MF"), draw.choice(
        movielens.age_table), draw.randrange(20), "0") for u in taste))
    write("movies.dat", ((m, "The %s of %d (1999)" % (k, m % 7), k)
                         for m, k in kind.items()))
    write("ratings.dat", (
        (u, m, 5 if taste[u] == kind[m] else draw.randint(1, 3), 0)
        for u in taste for m in draw.sample(sorted(kind), each)))


def find_ratings():
    try:
        movielens.fetch()
        return
    except RuntimeError as e:
        print("recommender: the ratings are made up, since there are no real "
              "ones: %s" % e, file=sys.stderr)
    folder = tempfile.mkdtemp(prefix="recommender-")
    make_up_ratings(folder)
    paddle.dataset.common.DATA_HOME = folder


def feature(name, size, width):
    """A number of a user or film, as a vector."""
    ids = fluid.layers.data(name=name, shape=[1], dtype="int64")
    vector = fluid.layers.embedding(input=ids, size=[size, width],
                                    is_sparse=True)
    return ids, fluid.layers.fc(input=vector, size=width)


def user_tower():
    columns = [feature("user", movielens.max_user_id() + 1, 32),
               feature("gender", 2, 16),
               feature("age", len(movielens.age_table), 16),
               feature("job", movielens.max_job_id() + 1, 16)]
    joined = fluid.layers.concat([vector for _, vector in columns], axis=1)
    return [ids for ids, _ in columns], fluid.layers.fc(
        input=joined, size=200, act="tanh")


def film_tower():
    film, vector = feature("film", movielens.max_movie_id() + 1, 32)
    kinds = fluid.layers.data(name="kinds", shape=[1], dtype="int64",
                              lod_level=1)
    kind = fluid.layers.sequence_pool(fluid.layers.embedding(
        kinds, [len(movielens.movie_categories()), 32], is_sparse=True),
        pool_type="sum")
    words = fluid.layers.data(name="title", shape=[1], dtype="int64",
                              lod_level=1)
    title = fluid.nets.sequence_conv_pool(fluid.layers.embedding(
        words, [len(movielens.get_movie_title_dict()), 32], is_sparse=True),
        num_filters=32, filter_size=3, act="tanh", pool_type="sum")
    joined = fluid.layers.concat([vector, kind, title], axis=1)
    return [film, kinds, words], fluid.layers.fc(input=joined, size=200,
                                                 act="tanh")


def train(args):
    of_user, user = user_tower()
    of_film, film = film_tower()
    guess = fluid.layers.scale(fluid.layers.cos_sim(X=user, Y=film),
                               scale=5.0)
    score = fluid.layers.data(name="score", shape=[1], dtype="float32")
    loss = fluid.layers.mean(
        fluid.layers.square_error_cost(input=guess, label=score))
    test_program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adam(learning_rate=0.002).minimize(loss)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    inputs = of_user + of_film
    feeder = fluid.DataFeeder(feed_list=inputs + [score],
                              place=fluid.CPUPlace())
    reader = batches(movielens.train(), BATCH, args.batches, shuffle=8192)
    tests = batches(movielens.test(), BATCH, args.batches)
    for number in range(args.passes):
        losses = [exe.run(feed=feeder.feed(batch), fetch_list=[loss])[0]
                  for batch in reader()]
        errors = [exe.run(test_program, feed=feeder.feed(batch),
                          fetch_list=[loss])[0] for batch in tests()]
        print("pass %d, loss %.4f, on test %.4f"
              % (number + 1, np.mean(losses), np.mean(errors)))
    fluid.io.save_inference_model(args.model, [v.name for v in inputs],
                                  [guess], exe)
    return float(np.mean(errors))


def infer(folder):
    """What the saved model expects of one user and one film."""
    sample = next(movielens.test()())
    with fluid.scope_guard(fluid.core.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
        feeder = fluid.DataFeeder(feed_list=feeds, place=fluid.CPUPlace(),
                                  program=program)
        guess, = exe.run(program, feed=feeder.feed([sample[:-1]]),
                         fetch_list=fetches, return_numpy=False)
    print("user %d, film %d: guess %.1f stars, rated %.1f" % (
        sample[0], sample[4], (np.array(guess).item() + 5) / 2,
        (sample[-1][0] + 5) / 2))


if __name__ == "__main__":
    args = options(__doc__, 2, "recommender.model")
    find_ratings()
    error = train(args)
    infer(args.model)
    verdict("mean squared error on test", error, BAR, args.batches, True)
