# SPDX-License-Identifier: Apache-2.0
"""Data sets: the real files where they are at hand, small ones made here."""
import gzip
import io
import itertools
import os
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest

from paddle.dataset import (cifar, conll05, imdb, imikolov, mnist, movielens,
                            uci_housing, wmt14)


def put(home, name, content):
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def tar(members):
    """The bytes of a gzipped tar archive of name: bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


# --- uci_housing -------------------------------------------------------------

def test_housing_is_as_published(shared_data, capsys):
    train, test = list(uci_housing.train()()), list(uci_housing.test()())
    assert (len(train), len(test)) == (404, 102)
    x, y = train[0]
    assert (x.shape, x.dtype, y.shape, y.dtype) == (
        (13,), np.float64, (1,), np.float64)
    assert y[0] == 24.0 and x[0] == pytest.approx(-0.0405441, abs=1e-7)
    x = np.array([s[0] for s in train + test])
    assert np.abs(x.mean(axis=0)).max() < 1e-12
    assert np.ptp(x, axis=0) == pytest.approx(np.ones(13))
    assert capsys.readouterr() == ("", "")


def test_housing_has_the_published_least_squares(shared_data):
    def matrix(reader):
        x, y = (np.array(part) for part in zip(*reader()))
        return np.c_[x, np.ones(len(x))], y

    (a, b), (c, d) = map(matrix, (uci_housing.train(), uci_housing.test()))
    w = np.linalg.lstsq(a, b, rcond=None)[0]
    assert np.mean((a @ w - b)**2) == pytest.approx(22.7784, abs=1e-4)
    assert np.mean((c @ w - d)**2) == pytest.approx(32.7999, abs=1e-4)


def test_housing_names_its_features():
    assert len(uci_housing.feature_names) == 13
    assert uci_housing.feature_names[5] == "RM"


def test_housing_refuses_a_ragged_file(data):
    put(data, "uci_housing/housing.data", b"1 2 3\n")
    with pytest.raises(ValueError, match="has 3 numbers, not rows of 14"):
        uci_housing.train()


# --- mnist -------------------------------------------------------------------

def idx(array):
    """The bytes of a gzipped idx file."""
    magic = {3: 2051, 1: 2049}[array.ndim]
    head = struct.pack(">%dI" % (1 + array.ndim), magic, *array.shape)
    return gzip.compress(head + array.astype(np.uint8).tobytes())


def put_digits(home, part, images, labels):
    put(home, "mnist/%s-images-idx3-ubyte.gz" % part, images)
    put(home, "mnist/%s-labels-idx1-ubyte.gz" % part, labels)


def test_mnist_is_as_published(shared_data, capsys):
    labels = [label for _, label in mnist.test()()]
    assert len(labels) == 10000 and labels[:5] == [7, 2, 1, 0, 4]
    assert np.bincount(labels).tolist() == [
        980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    x, label = next(mnist.train()())
    assert (x.shape, x.dtype, x.min(), x.max()) == (
        (784,), np.float32, -1.0, 1.0)
    assert label == 5 and type(label) is int
    mnist.fetch()
    assert capsys.readouterr() == ("", "")


def test_mnist_reads_every_part_of_a_window(data):
    pixels = np.arange(5 * 4).reshape(5, 2, 2)
    put_digits(data, "train", idx(pixels), idx(np.array([3, 1, 4, 1, 5])))
    paths = [str(data / "mnist" / ("train-" + n)) for n in
             ("images-idx3-ubyte.gz", "labels-idx1-ubyte.gz")]
    samples = list(mnist.reader_creator(*paths, buffer_size=2)())
    assert [y for _, y in samples] == [3, 1, 4, 1, 5]
    x = np.concatenate([x for x, _ in samples])
    assert x.dtype == np.float32
    assert x == pytest.approx(np.arange(20) / 255 * 2 - 1, abs=1e-6)
    assert len(list(mnist.train()())) == 5


@pytest.mark.parametrize("images, labels, why", [
    (gzip.compress(b"\0\0"), None, "is not an idx file with magic number 2051"),
    (idx(np.zeros(3)), None, "is not an idx file with magic number 2051"),
    (gzip.compress(struct.pack(">4I", 2051, 2**31, 2**31, 2**31)), None,
     "has 0 bytes of data, its head says"),
    (idx(np.zeros((2, 1, 1))), idx(np.zeros(3)), "2 images but 3 labels"),
    (b"rubbish", None, "is damaged"),
    (idx(np.zeros((2, 1, 1)))[:-12], None, "is damaged"),
], ids=["short", "labels", "huge", "unequal", "no gzip", "cut"])
def test_mnist_refuses_damaged_files(data, images, labels, why):
    put_digits(data, "t10k", images, labels or idx(np.zeros(1)))
    with pytest.raises(ValueError, match=why):
        list(mnist.test()())


# --- imikolov ----------------------------------------------------------------

def test_imikolov_gives_the_known_counts(shared_data):
    words = imikolov.build_dict()
    assert len(words) == 2073
    assert all(type(w) is str for w in words)
    assert words["<unk>"] == 2072 and words["the"] == 0
    grams = list(imikolov.train(words, 5)())
    assert len(grams) == 803522 and {len(g) for g in grams} == {5}
    assert sum(1 for _ in imikolov.test(words, 5)()) == 63663


@pytest.fixture
def sentences(data):
    put(data, "imikolov/simple-examples.tgz", tar({
        "./simple-examples/data/ptb.train.txt":
            b" b a b <unk> \n a b c \n",
        "./simple-examples/data/ptb.valid.txt": b" a c \n"}))


def test_imikolov_counts_words_by_hand(sentences):
    # <s> 3, <e> 3, a 3, b 3, c 2
    assert imikolov.build_dict(2) == {
        "<e>": 0, "<s>": 1, "a": 2, "b": 3, "<unk>": 4}


def test_imikolov_cuts_ngrams(sentences):
    words = {"<s>": 0, "<e>": 1, "a": 2, "b": 3, "<unk>": 9}
    assert list(imikolov.test(words, 3)()) == [(0, 2, 9), (2, 9, 1)]
    assert list(imikolov.train(words, 6)()) == [(0, 3, 2, 3, 9, 1)]


def test_imikolov_gives_sequences(sentences):
    words = {"<s>": 0, "<e>": 1, "a": 2, "b": 3, "<unk>": 9}
    seq = imikolov.DataType.SEQ
    assert list(imikolov.test(words, -1, seq)()) == [([0, 2, 9], [2, 9, 1])]
    assert list(imikolov.train(words, 4, seq)()) == [
        ([0, 2, 3, 9], [2, 3, 9, 1])]


def test_imikolov_says_what_is_wrong(sentences, data):
    with pytest.raises(ValueError, match="data_type is 3"):
        imikolov.train({}, 5, 3)
    with pytest.raises(ValueError, match="n is 0"):
        imikolov.train({}, 0)
    put(data, "imikolov/simple-examples.tgz", tar({"other": b""}))
    with pytest.raises(ValueError, match="has no member simple-examples"):
        imikolov.build_dict()
    put(data, "imikolov/simple-examples.tgz", b"rubbish")
    with pytest.raises(ValueError, match="simple-examples.tgz is damaged"):
        imikolov.build_dict()


# --- imdb --------------------------------------------------------------------

def test_imdb_is_found_under_its_smaller_name(shared_data, capsys):
    words = imdb.word_dict()
    assert len(words) == 1383 and words["<unk>"] == 1382 and words["the"] == 0
    labels = [label for _, label in imdb.test(words)()]
    assert labels == [0] * 2500 + [1] * 2500
    out, err = capsys.readouterr()
    assert out == "" and err == (
        "paddle.dataset: %s/imdb/aclImdb.subset10k.tar.gz is used in place "
        "of aclImdb_v1.tar.gz\n" % shared_data)


def test_imdb_cleans_words(data):
    put(data, "imdb/aclImdb_v1.tar.gz", tar({
        "aclImdb/train/neg/0_1.txt": b"",
        "aclImdb/train/pos/0_9.txt": "A caf\u00e9; a GOOD one!\n".encode(),
        "aclImdb/test/pos/0_9.txt": b"Isn't it <br />good?",
        "aclImdb/train/urls.txt": b"a a a"}))
    assert list(imdb.tokenize("aclImdb/test/.*")) == [
        ["isnt", "it", "br", "good"]]
    words = imdb.build_dict(r"aclImdb/train/(pos|neg)/.*\.txt$", 0)
    assert words == {"a": 0, "caf\u00e9": 1, "good": 2, "one": 3, "<unk>": 4}
    assert list(imdb.train(words)()) == [([0, 1, 0, 2, 3], 0), ([], 1)]
    assert list(imdb.test(words)()) == [([4, 4, 4, 2], 0)]


# --- cifar -------------------------------------------------------------------

def test_cifar_reads_the_binary_form(shared_data, capsys):
    train, test = list(cifar.train10()()), list(cifar.test10()())
    assert (len(train), len(test)) == (1000, 500)
    x, label = train[0]
    assert (x.shape, x.dtype, type(label)) == ((3072,), np.float32, int)
    assert 0 <= x.min() and x.max() <= 1
    assert {y for _, y in train} == set(range(10))
    assert [y for _, y in test[:5]] == [3, 8, 8, 0, 6]
    assert capsys.readouterr().err.count("is used in place of") == 2


PIXELS = np.arange(4 * 3072).reshape(4, 3072) % 256


def batch(rows, labels, key=b"labels"):
    return pickle.dumps({b"data": PIXELS[rows].astype(np.uint8), key: labels},
                        protocol=2)


@pytest.fixture
def pickled(data):
    put(data, "cifar/cifar-10-python.tar.gz", tar({
        "cifar-10-batches-py/batches.meta": b"not read",
        "cifar-10-batches-py/data_batch_1": batch([0, 1], [7, 1]),
        "cifar-10-batches-py/data_batch_2": batch([2], [9]),
        "cifar-10-batches-py/test_batch": batch([3], [4])}))
    put(data, "cifar/cifar-100-python.tar.gz", tar({
        "cifar-100-python/train": batch([0], [98], b"fine_labels"),
        "cifar-100-python/test": batch([3], [99], b"fine_labels")}))


def test_cifar_reads_the_published_form(pickled):
    samples = list(cifar.train10()())
    assert [y for _, y in samples] == [7, 1, 9]
    x = samples[2][0]
    assert x.dtype == np.float32
    assert x == pytest.approx(PIXELS[2].astype(np.float32) / 255)
    assert [y for _, y in cifar.test10()()] == [4]
    assert [y for _, y in cifar.train100()()] == [98]
    assert [y for _, y in cifar.test100()()] == [99]


def test_cifar_can_go_round_for_ever(pickled):
    labels = [y for _, y in itertools.islice(cifar.train10(cycle=True)(), 7)]
    assert labels == [7, 1, 9, 7, 1, 9, 7]


def test_cifar_runs_no_code_of_a_pickle(data):
    class Evil:
        def __reduce__(self):
            return os.system, ("exit 3",)

    put(data, "cifar/cifar-10-python.tar.gz",
        tar({"test_batch": pickle.dumps(Evil())}))
    with pytest.raises(pickle.UnpicklingError, match="is not an array"):
        list(cifar.test10()())


def test_cifar_refuses_ragged_records(data):
    put(data, "cifar10/test.1.bin.gz", gzip.compress(bytes(3072)))
    with pytest.raises(ValueError, match="3072 bytes, not records of 3073"):
        list(cifar.test10()())


# --- movielens ---------------------------------------------------------------

MOVIES = "\n".join(["1::Toy Story (1995)::Animation|Comedy",
                    "3::Caf\u00e9 Story (1996)::Comedy"]).encode("latin-1")
USERS = b"1::F::1::10::48067\n2::M::56::16::70072\n"
RATINGS = b"".join(b"%d::%d::%d::978300760\n" % (1 + i % 2, (1, 3)[i % 2],
                                                  1 + i % 5)
                   for i in range(40))


@pytest.fixture
def ratings(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("ml-1m/movies.dat", MOVIES)
        archive.writestr("ml-1m/users.dat", USERS)
        archive.writestr("ml-1m/ratings.dat", RATINGS)
    put(data, "movielens/ml-1m.zip", out.getvalue())


def test_movielens_describes_films_and_users(ratings):
    assert movielens.movie_categories() == {"Animation": 0, "Comedy": 1}
    assert movielens.get_movie_title_dict() == {
        "caf\u00e9": 0, "story": 1, "toy": 2}
    assert (movielens.max_movie_id(), movielens.max_user_id(),
            movielens.max_job_id()) == (3, 2, 16)
    assert movielens.age_table == [1, 18, 25, 35, 45, 50, 56]
    assert movielens.user_info()[2].value() == [2, 0, 6, 16]
    assert movielens.movie_info()[1].value() == [1, [0, 1], [2, 1]]
    assert repr(movielens.user_info()[1]) == (
        "<UserInfo id(1), gender(F), age(1), job(10)>")


def test_movielens_splits_as_numpy_draws(ratings):
    np.random.seed(0)
    is_test = np.random.random(40) < 0.1
    train, test = list(movielens.train()()), list(movielens.test()())
    assert (len(train), len(test)) == (sum(~is_test), sum(is_test)) != (40, 0)
    assert train == list(movielens.train()())
    assert train[0] == [1, 1, 0, 10, 1, [0, 1], [2, 1], [-3.0]]
    assert train[1] == [2, 0, 6, 16, 3, [1], [0, 1], [-1.0]]


def test_movielens_leaves_the_global_generator_alone(ratings):
    np.random.seed(5)
    before = np.random.get_state()[1].copy()
    list(movielens.train()())
    assert (np.random.get_state()[1] == before).all()


def test_movielens_reads_unpacked_files(data, capsys):
    put(data, "movielens/movies.dat", MOVIES)
    put(data, "movielens/ratings.dat", RATINGS)
    assert next(movielens.train()()) == [
        1, 0, 0, 0, 1, [0, 1], [2, 1], [-3.0]]
    err = capsys.readouterr().err
    assert "movielens/ratings.dat is used in place of ml-1m.zip" in err


@pytest.mark.parametrize("content", [b"rubbish", b"PK\5\6" + bytes(18)],
                         ids=["no archive", "empty"])
def test_movielens_refuses_a_damaged_archive(data, content):
    put(data, "movielens/ml-1m.zip", content)
    with pytest.raises(ValueError, match="ml-1m.zip is damaged"):
        movielens.train()


# --- conll05 -----------------------------------------------------------------

WORDS = "The\ncat\nsat\ndown\n.\n\nGo\n\n".encode()
PROPS = ("- (A1*\n- *)\nsit (V*)\n- (AM-DIR*)\n- *\n\ngo (V*)\n\n").encode()


@pytest.fixture
def roles(data):
    put(data, "conll05st/conll05st-tests.tar.gz", tar({
        conll05._WORDS: gzip.compress(WORDS),
        conll05._PROPS: gzip.compress(PROPS)}))
    put(data, "conll05st/conll05st%2FwordDict.txt",
        b"<unk>\nThe\ncat\nsat\ndown\nbos\neos\n")
    put(data, "conll05st/conll05st%2FverbDict.txt", b"<unk>\nsit\n")
    put(data, "conll05st/conll05st%2FtargetDict.txt",
        b"B-A1\nI-A1\nO\nB-V\nB-AM-DIR\n")
    put(data, "conll05st/conll05st%2Femb", b"vectors")


def test_conll05_gives_dictionaries(roles):
    words, verbs, labels = conll05.get_dict()
    assert words["cat"] == 2 and verbs == {"<unk>": 0, "sit": 1}
    assert labels == {"B-A1": 0, "I-A1": 1, "B-V": 2, "I-V": 3,
                      "B-AM-DIR": 4, "I-AM-DIR": 5, "O": 6}
    with open(conll05.get_embedding(), "rb") as f:
        assert f.read() == b"vectors"


def test_conll05_gives_nine_lists(roles):
    first, second = conll05.test()()
    assert first == ([1, 2, 3, 4, 0], [1] * 5, [2] * 5, [3] * 5, [4] * 5,
                     [0] * 5, [1] * 5, [1, 1, 1, 1, 1], [0, 1, 2, 4, 6])
    assert second == ([0], [5], [5], [0], [6], [6], [0], [1], [2])


# --- wmt14 -------------------------------------------------------------------

@pytest.fixture
def pairs(data):
    long = b" ".join([b"un"] * 79)
    put(data, "wmt14/wmt14.tgz", tar({
        "wmt14/train/train": b"un deux\tone two\nbad line\n%s\tone\n" % long,
        "wmt14/test/test": b"deux rare\ttwo\n",
        "wmt14/gen/gen": b"un\tone\n",
        "wmt14/src.dict": b"<s>\n<e>\n<unk>\nun\ndeux\nrare\n",
        "wmt14/trg.dict": b"<s>\n<e>\n<unk>\none\ntwo\n"}))


def test_wmt14_gives_triples(pairs):
    assert list(wmt14.train(5)()) == [([0, 3, 4, 1], [0, 3, 4], [3, 4, 1])]
    assert list(wmt14.test(5)()) == [([0, 4, 2, 1], [0, 4], [4, 1])]
    assert list(wmt14.gen(5)()) == [([0, 3, 1], [0, 3], [3, 1])]


def test_wmt14_gives_dictionaries(pairs):
    src, trg = wmt14.get_dict(4)
    assert src == {0: "<s>", 1: "<e>", 2: "<unk>", 3: "un"}
    assert wmt14.get_dict(4, reverse=False)[1]["one"] == 3
    with pytest.raises(ValueError, match="among its first 1 words"):
        wmt14.get_dict(1)
