# SPDX-License-Identifier: Apache-2.0
"""Word vectors: guess a word from the four before it (Penn Treebank)."""
import numpy as np

import paddle
import paddle.fluid as fluid
from common import batches, options, verdict

BAR = 4.8  # mean cost of a test word; knowing nothing costs log(2074) = 7.64
BATCH, WIDTH, HIDDEN, WORDS = 100, 32, 256, 5


def network(size, words):
    """The next word's distribution; all words share one table of vectors."""
    vectors = [fluid.layers.embedding(
        input=word, size=[size, WIDTH], is_sparse=True,
        param_attr="shared_vectors") for word in words]
    joined = fluid.layers.concat(input=vectors, axis=1)
    hidden = fluid.layers.fc(input=joined, size=HIDDEN, act="sigmoid")
    return fluid.layers.fc(input=hidden, size=size, act="softmax")


def train(args, dictionary):
    names = ["first", "second", "third", "fourth", "next"]
    words = [fluid.layers.data(name=n, shape=[1], dtype="int64")
             for n in names]
    guess = network(len(dictionary), words[:-1])
    loss = fluid.layers.mean(
        fluid.layers.cross_entropy(input=guess, label=words[-1]))
    test_program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adagrad(learning_rate=0.05).minimize(loss)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=words, place=fluid.CPUPlace())
    reader = batches(paddle.dataset.imikolov.train(dictionary, WORDS), BATCH,
                     args.batches)
    tests = batches(paddle.dataset.imikolov.test(dictionary, WORDS), BATCH,
                    args.batches or 100)
    for number in range(args.passes):
        for step, batch in enumerate(reader()):
            value, = exe.run(feed=feeder.feed(batch), fetch_list=[loss])
            if step % 1000 == 0:
                print("pass %d, batch %d, cost %.4f"
                      % (number + 1, step, value.item()))
        costs = [exe.run(test_program, feed=feeder.feed(batch),
                         fetch_list=[loss])[0] for batch in tests()]
        print("pass %d, cost on test %.4f" % (number + 1, np.mean(costs)))
    fluid.io.save_inference_model(args.model, names[:-1], [guess], exe)
    return float(np.mean(costs))


def infer(folder, dictionary):
    """Let the saved model go on with a few words."""
    words = {i: w for w, i in dictionary.items()}
    start = [dictionary.get(w, dictionary["<unk>"])
             for w in "<s> the company said".split()]
    with fluid.scope_guard(fluid.core.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
        ids = [fluid.create_lod_tensor(np.array([[i]], "int64"), [[1]],
                                       fluid.CPUPlace()) for i in start]
        guess, = exe.run(program, feed=dict(zip(feeds, ids)),
                         fetch_list=fetches, return_numpy=False)
    best = np.array(guess)[0].argsort()[:-4:-1]
    print("%s ... %s" % (" ".join(words[i] for i in start),
                         ", ".join(words[i] for i in best)))


if __name__ == "__main__":
    args = options(__doc__, 1, "word2vec.model")
    dictionary = paddle.dataset.imikolov.build_dict()
    cost = train(args, dictionary)
    infer(args.model, dictionary)
    verdict("cost on test", cost, BAR, args.batches, below=True)
