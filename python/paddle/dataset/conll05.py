# SPDX-License-Identifier: Apache-2.0
"""paddle.dataset.conll05: who did what to whom; the test part of CoNLL-2005.

A sample is one predicate of a sentence, as nine lists of its length: words,
the words two and one before the predicate, itself, one and two after, the
predicate, a mark for those five places, labels. All are ids; 0 is unknown.

The props file has a line for a word: the predicate's stem or `-`, then for
each predicate of the sentence a column of brackets such as `(A0*`, `*`, `*)`.
"""
import gzip
import itertools

from . import _archive, common

__all__ = ["test", "get_dict", "get_embedding", "fetch"]

_PREFIX = "http://paddlemodels.bj.bcebos.com/conll05st"
DATA_URL = _PREFIX + "/conll05st-tests.tar.gz"
DATA_MD5 = "387719152ae52d60422c016e92a742fc"
WORDDICT_URL = _PREFIX + "%2FwordDict.txt"
WORDDICT_MD5 = "ea7fb7d4c75cc6254716f0177a506baa"
VERBDICT_URL = _PREFIX + "%2FverbDict.txt"
VERBDICT_MD5 = "0d2977293bbb6cbefab5b0f97db1e77c"
TRGDICT_URL = _PREFIX + "%2FtargetDict.txt"
TRGDICT_MD5 = "d8c7f03ceb5fc2e5a0fa7503a4353751"
EMB_URL = _PREFIX + "%2Femb"
EMB_MD5 = "bf436eb0faa1f6f9103017f8be57cdb7"
UNK_IDX = 0
_WORDS = "conll05st-release/test.wsj/words/test.wsj.words.gz"
_PROPS = "conll05st-release/test.wsj/props/test.wsj.props.gz"


def _file(url, md5sum):
    return common.download(url, "conll05st", md5sum)


def _lines(path):
    with open(path) as f:
        return [line.strip() for line in f]


def load_dict(filename):
    """Line to its number."""
    return {line: i for i, line in enumerate(_lines(filename))}


def load_label_dict(filename):
    """B-x and I-x next to each other for each kind x, O last."""
    kinds = dict.fromkeys(line[2:] for line in _lines(filename)
                          if line.startswith(("B-", "I-")))
    names = [mark + kind for kind in kinds for mark in ("B-", "I-")]
    return {name: i for i, name in enumerate(names + ["O"])}


def get_dict():
    """The dictionaries of words, predicates and labels."""
    return (load_dict(_file(WORDDICT_URL, WORDDICT_MD5)),
            load_dict(_file(VERBDICT_URL, VERBDICT_MD5)),
            load_label_dict(_file(TRGDICT_URL, TRGDICT_MD5)))


def get_embedding():
    """The path of word vectors, trained beforehand on Wikipedia."""
    return _file(EMB_URL, EMB_MD5)


def _gzip_lines(tar, name):
    data = _archive.member(tar, name).read()
    return gzip.decompress(data).decode("utf-8", "replace").splitlines()


def _sentences(path):
    """(word, columns) of each word, in a list for each sentence."""
    with _archive.opened(path) as tar:
        words = _gzip_lines(tar, _WORDS)
        props = _gzip_lines(tar, _PROPS)
    rows = zip(words, map(str.split, props), strict=True)
    for blank, group in itertools.groupby(rows, lambda r: not r[0].strip()):
        if not blank:
            yield [(word.strip(), columns) for word, columns in group]


def _labels(brackets):
    """`(A0*`, `*`, `*)` become B-A0, I-A0, I-A0; outside of any, O."""
    kind, labels = None, []
    for text in brackets:
        if text.startswith("("):
            kind = text[1:text.index("*")]
            labels.append("B-" + kind)
        else:
            labels.append("I-" + kind if kind else "O")
        if text.endswith(")"):
            kind = None
    return labels


def _predicates(path):
    """(words, predicate, labels) of each predicate of each sentence."""
    for sentence in _sentences(path):
        words = [word for word, _ in sentence]
        stems, *columns = zip(*(columns for _, columns in sentence))
        for stem, column in zip((s for s in stems if s != "-"), columns):
            yield words, stem, _labels(column)


def _sample(words, predicate, labels, word_dict, verb_dict, label_dict):
    n, at = len(words), labels.index("B-V")
    padded = ["bos", "bos", *words, "eos", "eos"]  # word i is at i + 2
    around = [[word_dict.get(w, UNK_IDX)] * n for w in padded[at:at + 5]]
    return ([word_dict.get(w, UNK_IDX) for w in words], *around,
            [verb_dict.get(predicate, UNK_IDX)] * n,
            [int(abs(i - at) <= 2) for i in range(n)],
            [label_dict[name] for name in labels])


def test():
    """A reader of the test set; the training set may not be given away."""
    dicts = get_dict()
    path = _file(DATA_URL, DATA_MD5)

    def reader():
        for words, predicate, labels in _predicates(path):
            yield _sample(words, predicate, labels, *dicts)

    return reader


def fetch():
    """Make sure that all five files are there."""
    get_dict()
    get_embedding()
    _file(DATA_URL, DATA_MD5)
