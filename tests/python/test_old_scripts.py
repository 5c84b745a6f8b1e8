# SPDX-License-Identifier: Apache-2.0
"""Scripts as people wrote them in 2018, on small made-up data. Each is a
function whose body is the script; what it must show is asserted at its end."""
import os

import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from fresh import fresh

NUMBERS = np.random.RandomState(7)


@pytest.fixture(autouse=True)
def two_places(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "2")
    with fresh():
        yield


def houses(count=64):
    weights = NUMBERS.rand(13)

    def reader():
        rows = np.random.RandomState(1).rand(count, 13)
        for row in rows:
            yield row.astype("float32"), np.array([row @ weights], "float32")
    return reader


def test_fit_a_line(tmp_path):
    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    y_predict = fluid.layers.fc(input=x, size=1, act=None)
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    cost = fluid.layers.square_error_cost(input=y_predict, label=y)
    avg_cost = fluid.layers.mean(x=cost)
    sgd_optimizer = fluid.optimizer.SGD(learning_rate=0.1)
    sgd_optimizer.minimize(avg_cost)
    train_reader = paddle.batch(
        paddle.reader.shuffle(houses(), buf_size=500), batch_size=16)
    place = fluid.CUDAPlace(0) if fluid.core.is_compiled_with_cuda() \
        else fluid.CPUPlace()
    exe = fluid.Executor(place)
    feeder = fluid.DataFeeder(place=place, feed_list=[x, y])
    exe.run(fluid.default_startup_program())
    main_program = fluid.default_main_program()
    fluid.memory_optimize(main_program)
    losses = []
    for pass_id in range(40):
        for data in train_reader():
            avg_loss_value, = exe.run(main_program, feed=feeder.feed(data),
                                      fetch_list=[avg_cost])
            losses.append(float(avg_loss_value[0]))
    fluid.io.save_inference_model(str(tmp_path), ["x"], [y_predict], exe)
    assert losses[-1] < losses[0] / 20

    inference_scope = fluid.core.Scope()
    with fluid.scope_guard(inference_scope):
        [inference_program, feed_target_names, fetch_targets] = \
            fluid.io.load_inference_model(str(tmp_path), exe)
        results = exe.run(inference_program,
                          feed={feed_target_names[0]: np.ones(
                              (10, 13), "float32")},
                          fetch_list=fetch_targets)
    assert results[0].shape == (10, 1)


def digits(count=48):
    """Pictures with a bright half: the class says which."""
    def reader():
        noise = np.random.RandomState(2)
        for i in range(count):
            picture = noise.rand(1, 28, 28).astype("float32") * 0.2
            picture[:, :, :14] += i % 2
            yield picture.ravel(), i % 2
    return reader


def conv_net(img, label):
    conv_pool_1 = fluid.nets.simple_img_conv_pool(
        input=img, filter_size=5, num_filters=4, pool_size=2, pool_stride=2,
        act="relu")
    conv_pool_1 = fluid.layers.batch_norm(conv_pool_1)
    conv_pool_2 = fluid.nets.simple_img_conv_pool(
        input=conv_pool_1, filter_size=5, num_filters=4, pool_size=2,
        pool_stride=2, act="relu")
    prediction = fluid.layers.fc(input=conv_pool_2, size=10, act="softmax")
    loss = fluid.layers.cross_entropy(input=prediction, label=label)
    return prediction, fluid.layers.mean(loss), fluid.layers.accuracy(
        input=prediction, label=label)


def test_recognize_digits_with_a_parallel_executor_for_tests():
    img = fluid.layers.data(name="img", shape=[1, 28, 28], dtype="float32")
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    prediction, avg_loss, acc = conv_net(img, label)
    test_program = fluid.default_main_program().clone(for_test=True)
    optimizer = fluid.optimizer.Adam(learning_rate=0.01)
    optimizer.minimize(avg_loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())

    exec_strategy = fluid.ExecutionStrategy()
    exec_strategy.use_experimental_executor = True
    exec_strategy.num_iteration_per_drop_scope = 100
    train_exe = fluid.ParallelExecutor(
        use_cuda=False, loss_name=avg_loss.name, exec_strategy=exec_strategy)
    test_exe = fluid.ParallelExecutor(
        use_cuda=False, main_program=test_program, share_vars_from=train_exe)
    feeder = fluid.DataFeeder(feed_list=[img, label], place=fluid.CPUPlace())
    for pass_id in range(6):
        for batch in paddle.batch(digits(), 16)():
            train_exe.run(fetch_list=[avg_loss.name], feed=feeder.feed(batch))
    accuracies = [
        np.array(test_exe.run(fetch_list=[acc.name],
                              feed=feeder.feed(batch))[0]).mean()
        for batch in paddle.batch(digits(), 16)()]
    train_exe.drop_local_exe_scopes()
    assert np.mean(accuracies) > 0.9


def test_word2vec():
    dict_size, embed_size, hidden_size = 20, 8, 16
    words = [fluid.layers.data(name=name, shape=[1], dtype="int64")
             for name in ("firstw", "secondw", "thirdw", "forthw", "nextw")]
    embeds = [fluid.layers.embedding(
        input=word, size=[dict_size, embed_size], dtype="float32",
        is_sparse=True, param_attr="shared_w") for word in words[:4]]
    concat_embed = fluid.layers.concat(input=embeds, axis=1)
    hidden1 = fluid.layers.fc(input=concat_embed, size=hidden_size,
                              act="sigmoid")
    predict_word = fluid.layers.fc(input=hidden1, size=dict_size,
                                   act="softmax")
    cost = fluid.layers.cross_entropy(input=predict_word, label=words[4])
    avg_cost = fluid.layers.mean(cost)
    fluid.optimizer.SGD(learning_rate=2.0).minimize(avg_cost)

    def grams():
        for i in range(64):
            yield tuple((i + k) % dict_size for k in range(5))
    exe = fluid.Executor(fluid.CPUPlace())
    feeder = fluid.DataFeeder(feed_list=words, place=fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    losses = [exe.run(feed=feeder.feed(data), fetch_list=[avg_cost])[0][0]
              for _ in range(40) for data in paddle.batch(lambda: grams(),
                                                          32)()]
    assert losses[-1] < losses[0] / 2
    lod = [[1]]
    first_word = fluid.create_random_int_lodtensor(
        lod, [1], fluid.CPUPlace(), low=0, high=dict_size - 1)
    assert np.array(first_word).shape == (1, 1)


def test_recommender_reads_with_py_reader():
    users, films = 10, 12
    reader = fluid.layers.py_reader(
        capacity=16, shapes=[(-1, 1), (-1, 1), (-1, 1), (-1, 1)],
        dtypes=["int64", "int64", "int64", "float32"],
        lod_levels=[0, 0, 1, 0], name="train_reader")
    reader_ = fluid.layers.double_buffer(reader)
    user, film, titles, score = fluid.layers.read_file(reader_)

    def tower(ids, rows):
        return fluid.layers.fc(input=fluid.layers.embedding(
            input=ids, size=[rows, 8]), size=8, act="tanh")
    title = fluid.nets.sequence_conv_pool(
        input=fluid.layers.embedding(input=titles, size=[30, 8]),
        num_filters=8, filter_size=3, act="tanh", pool_type="sum")
    film_features = fluid.layers.fc(
        input=[tower(film, films), title], size=8, act="tanh")
    inference = fluid.layers.cos_sim(X=tower(user, users), Y=film_features)
    scale_infer = fluid.layers.scale(x=inference, scale=5.0)
    avg_cost = fluid.layers.mean(fluid.layers.square_error_cost(
        input=scale_infer, label=score))
    fluid.optimizer.SGD(learning_rate=0.05).minimize(avg_cost)

    def ratings():
        draw = np.random.RandomState(3)
        for _ in range(64):
            u, f = draw.randint(users), draw.randint(films)
            yield [u], [f], list(draw.randint(30, size=1 + f % 3)), \
                [4.0 if (u + f) % 2 else -4.0]
    reader.decorate_paddle_reader(paddle.batch(ratings, batch_size=16))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    means = []
    for pass_id in range(60):
        reader.start()
        costs = []
        try:
            while True:
                costs.append(exe.run(fetch_list=[avg_cost.name])[0][0])
        except fluid.core.EOFException:
            reader.reset()
        means.append(np.mean(costs))
        assert len(costs) == 4
    assert means[-1] < means[0] / 2


def test_a_mixed_script_imports_dygraph_and_goes_the_other_way():
    import paddle.fluid.dygraph.base as base
    from paddle.fluid.dygraph.nn import FC  # noqa: F401
    from paddle.fluid.log_helper import get_logger  # noqa: F401
    assert os.environ["CPU_NUM"] == "2"
    assert not base.enabled() and not fluid.in_dygraph_mode()
