# SPDX-License-Identifier: Apache-2.0
"""Recommend films: guess how a user would rate one (MovieLens), with v2.

Where there are no ratings, the script makes some up and says so.
"""
import paddle.v2 as paddle
from book import TRAINERS, batches, mine, options, train, verdict
from paddle.dataset import movielens
from recommender import find_ratings

BAR = 3.8  # mean squared error of rating * 2 - 5, which spans 0.5 stars a step
BATCH = 256  # of all trainers together


def feature(name, count, width):
    """A number of a user or film, as a vector."""
    ids = paddle.layer.data(name=name,
                            type=paddle.data_type.integer_value(count))
    vector = paddle.layer.embedding(input=ids, size=width)
    return paddle.layer.fc(input=vector, size=width)


def user_tower():
    return paddle.layer.fc(size=200, act=paddle.activation.Tanh(), input=[
        feature("user_id", movielens.max_user_id() + 1, 32),
        feature("gender_id", 2, 16),
        feature("age_id", len(movielens.age_table), 16),
        feature("job_id", movielens.max_job_id() + 1, 16)])


def film_tower():
    film = feature("movie_id", movielens.max_movie_id() + 1, 32)
    kinds = paddle.layer.data(
        name="category_id", type=paddle.data_type.sparse_binary_vector(
            len(movielens.movie_categories())))
    words = paddle.layer.data(
        name="movie_title", type=paddle.data_type.integer_value_sequence(
            len(movielens.get_movie_title_dict())))
    title = paddle.networks.sequence_conv_pool(
        input=paddle.layer.embedding(input=words, size=32), hidden_size=32,
        context_len=3)
    return paddle.layer.fc(size=200, act=paddle.activation.Tanh(), input=[
        film, paddle.layer.fc(input=kinds, size=32), title])


if __name__ == "__main__":
    args = options(__doc__, 3, "recommender_system.tar")
    paddle.init(use_gpu=False, trainer_count=1)
    find_ratings()
    guess = paddle.layer.cos_sim(a=user_tower(), b=film_tower(), size=1,
                                 scale=5)
    score = paddle.layer.data(name="score",
                              type=paddle.data_type.dense_vector(1))
    cost = paddle.layer.square_error_cost(input=guess, label=score)
    parameters, result = train(
        cost, paddle.optimizer.Adam(learning_rate=0.002),
        batches(mine(movielens.train()), BATCH // TRAINERS, args.batches,
                shuffle=8192),
        args.passes, args.model,
        batches(movielens.test(), BATCH, args.batches))
    sample = next(movielens.test()())
    answer = paddle.infer(output_layer=guess, parameters=parameters,
                          input=[sample[:-1]])
    print("user %d, film %d: guess %.1f stars, rated %.1f" % (
        sample[0], sample[4], (answer.item() + 5) / 2,
        (sample[-1][0] + 5) / 2))
    verdict("mean squared error on test", result.cost, BAR, args.batches,
            below=True)
