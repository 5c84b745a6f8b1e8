# SPDX-License-Identifier: Apache-2.0
"""paddle.dataset.imikolov: sentences of the Penn Treebank, for word2vec.

A sample of train(dict, n) is n neighbouring word ids of `<s> words <e>`, or
with DataType.SEQ (ids after <s>, ids before <e>). Words are str. The part
called test is ptb.valid.txt.
"""
import collections

from . import _archive, common

__all__ = ["build_dict", "train", "test", "fetch", "DataType"]

URL = "https://dataset.bj.bcebos.com/imikolov%2Fsimple-examples.tgz"
MD5 = "30177ea32e27c525793142b6bf2c8e2d"
_TRAIN = "simple-examples/data/ptb.train.txt"
_VALID = "simple-examples/data/ptb.valid.txt"


class DataType:
    NGRAM = 1
    SEQ = 2


def fetch():
    """The path of the archive."""
    return common.download(URL, "imikolov", MD5)


def _sentences(name):
    """Lists of words."""
    with _archive.opened(fetch()) as tar:
        for line in _archive.text_member(tar, name):
            yield line.split()


def build_dict(min_word_freq=50):
    """Word to id of words seen more often than that, most frequent first."""
    counts = collections.Counter()
    for name in (_TRAIN, _VALID):
        for words in _sentences(name):
            counts.update(words)
            counts.update(("<s>", "<e>"))
    del counts["<unk>"]  # it gets the last id
    kept = [w for w in counts if counts[w] > min_word_freq]
    kept.sort(key=lambda w: (-counts[w], w))
    return {w: i for i, w in enumerate(kept + ["<unk>"])}


def _ngrams(ids, n):
    for i in range(n, len(ids) + 1):
        yield tuple(ids[i - n:i])


def _pairs(ids, n):
    if n <= 0 or len(ids) - 1 <= n:
        yield ids[:-1], ids[1:]


_SHAPES = {DataType.NGRAM: _ngrams, DataType.SEQ: _pairs}


def _reader(name, word_idx, n, data_type):
    if data_type not in _SHAPES:
        raise ValueError("imikolov: data_type is %r, must be DataType.NGRAM "
                         "or DataType.SEQ" % (data_type,))
    if data_type == DataType.NGRAM and n <= 0:
        raise ValueError("imikolov: n is %r, must be positive" % (n,))
    fetch()

    def reader():
        unknown = word_idx["<unk>"]
        for words in _sentences(name):
            ids = [word_idx.get(w, unknown) for w in ["<s>", *words, "<e>"]]
            yield from _SHAPES[data_type](ids, n)

    return reader


def train(word_idx, n, data_type=DataType.NGRAM):
    """A reader of ptb.train.txt."""
    return _reader(_TRAIN, word_idx, n, data_type)


def test(word_idx, n, data_type=DataType.NGRAM):
    """A reader of ptb.valid.txt."""
    return _reader(_VALID, word_idx, n, data_type)
