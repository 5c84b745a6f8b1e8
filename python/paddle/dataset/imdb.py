# SPDX-License-Identifier: Apache-2.0
"""paddle.dataset.imdb: film reviews that praise (label 0) or not (label 1).

A sample is ([word ids], label): all of one label, then all of the other.
Words are str: lower case, without punctuation.
"""
import collections
import re
import string

from . import _archive, common

__all__ = ["build_dict", "word_dict", "train", "test", "fetch"]

URL = "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz"
MD5 = "7c2ac02c03563afcf9b574c7e56c153a"
_PUNCTUATION = string.punctuation.encode()


def fetch():
    """The path of the archive; a smaller aclImdb*.tar.gz will do."""
    return common.locate(URL, "imdb", MD5, instead=["imdb/aclImdb*.tar.gz"])[0]


def tokenize(pattern):
    """Lists of words of the members whose names match the pattern."""
    pattern = re.compile(pattern)
    with _archive.opened(fetch()) as tar:
        for info in tar:
            if not info.isfile() or not pattern.match(info.name):
                continue
            text = tar.extractfile(info).read().rstrip(b"\r\n")
            # As bytes: only ASCII is lowered and cut, as it always was.
            words = text.translate(None, _PUNCTUATION).lower().split()
            yield (b" ".join(words).decode("utf-8", "replace").split(" ")
                   if words else [])


def build_dict(pattern, cutoff):
    """Word to id of words seen more than `cutoff` times."""
    counts = collections.Counter()
    for words in tokenize(pattern):
        counts.update(words)
    kept = [w for w in counts if counts[w] > cutoff]
    kept.sort(key=lambda w: (-counts[w], w))
    return {w: i for i, w in enumerate(kept + ["<unk>"])}


def word_dict():
    """The dictionary of the whole set, words seen more than 150 times."""
    return build_dict(r"aclImdb/(train|test)/(pos|neg)/.*\.txt$", 150)


def _reader(part, word_idx):
    fetch()

    def reader():
        unknown = word_idx["<unk>"]
        for label, kind in enumerate(("pos", "neg")):
            pattern = r"aclImdb/%s/%s/.*\.txt$" % (part, kind)
            for words in tokenize(pattern):
                yield [word_idx.get(w, unknown) for w in words], label

    return reader


def train(word_idx):
    """A reader of the reviews to learn from."""
    return _reader("train", word_idx)


def test(word_idx):
    """A reader of the reviews to judge by."""
    return _reader("test", word_idx)
