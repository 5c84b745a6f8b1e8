# SPDX-License-Identifier: Apache-2.0
"""paddle.dataset.wmt14: sentences in French and English, for translation.

A sample is (source ids with <s> and <e>, target ids after <s>, target ids
before <e>). Sentences of more than 80 ids are left out. The dictionaries are
the first dict_size words of those in the archive; 2 is unknown.
"""
import itertools
import posixpath

from . import _archive, common

__all__ = ["train", "test", "gen", "get_dict", "fetch"]

URL_TRAIN = "http://paddlemodels.bj.bcebos.com/wmt/wmt14.tgz"
MD5_TRAIN = "0791583d57d5beb693b9414c5b36798c"
START = "<s>"
END = "<e>"
UNK_IDX = 2
_LONGEST = 80


def fetch():
    """The path of the archive."""
    return common.download(URL_TRAIN, "wmt14", MD5_TRAIN)


def _lines(tar, ending):
    """Text of all members whose name ends so."""
    for info in tar:
        if info.isfile() and posixpath.normpath(info.name).endswith(ending):
            for line in tar.extractfile(info):
                yield line.decode("utf-8", "replace").strip()


def _dict(path, name, size):
    with _archive.opened(path) as tar:
        words = itertools.islice(_lines(tar, name), size)
        ids = {word: i for i, word in enumerate(words)}
    if START not in ids or END not in ids:
        raise ValueError("wmt14: %s in %s has no %s or %s among its first %d "
                         "words" % (name, path, START, END, size))
    return ids


def _dicts(path, size):
    return _dict(path, "src.dict", size), _dict(path, "trg.dict", size)


def _ids(text, words):
    return [words.get(w, UNK_IDX) for w in text.split()]


def _reader(part, dict_size):
    path = fetch()

    def reader():
        src_dict, trg_dict = _dicts(path, dict_size)
        with _archive.opened(path) as tar:
            for line in _lines(tar, part):
                texts = line.split("\t")
                if len(texts) != 2:
                    continue
                src = [src_dict[START], *_ids(texts[0], src_dict),
                       src_dict[END]]
                trg = _ids(texts[1], trg_dict)
                if max(len(src), len(trg)) <= _LONGEST:
                    yield (src, [trg_dict[START], *trg],
                           [*trg, trg_dict[END]])

    return reader


def train(dict_size):
    """A reader of the pairs to learn from."""
    return _reader("train/train", dict_size)


def test(dict_size):
    """A reader of the pairs to judge by."""
    return _reader("test/test", dict_size)


def gen(dict_size):
    """A reader of the pairs to translate."""
    return _reader("gen/gen", dict_size)


def get_dict(dict_size, reverse=True):
    """Both dictionaries, id to word; word to id if not `reverse`."""
    dicts = _dicts(fetch(), dict_size)
    if reverse:
        dicts = tuple({i: w for w, i in d.items()} for d in dicts)
    return dicts
