# SPDX-License-Identifier: Apache-2.0
"""Write the files of a word2vec job: word_dict.pickle, and train.txt and
test.txt, each also cut into SPLIT_COUNT files with the suffixes -00000,
-00001 and so on, one or several for each trainer.

A line is five neighbouring words as ids. The text is --text FILE (a sentence
a line), or else the Penn Treebank of the data set imikolov, the Jargon File
(`make data SETS=jargon`, or Debian's jargon-text), or sentences made up here.
"""
import argparse
import collections
import gzip
import itertools
import os
import pickle
import random
import re
import sys

from paddle.dataset import common, imikolov

SPLIT_COUNT = 3  # files of each part
N = 5  # words of a line
JARGON = "/usr/share/doc/jargon-text/jargon.txt.gz"


# --- texts: a dictionary, rows of ids for training, rows for test ------------

def build_dict(sentences, least):
    """Word to id, the most frequent first; rarer words are <unk>."""
    counts = collections.Counter(w for s in sentences
                                 for w in ["<s>", *s, "<e>"])
    kept = sorted((w for w in counts if counts[w] >= least),
                  key=lambda w: (-counts[w], w))
    return {w: i for i, w in enumerate(kept + ["<unk>"])}


def rows_of(sentences, dictionary):
    unknown = dictionary["<unk>"]
    for words in sentences:
        ids = [dictionary.get(w, unknown) for w in ["<s>", *words, "<e>"]]
        for i in range(N, len(ids) + 1):
            yield tuple(ids[i - N:i])


def numbered(sentences, least):
    """Every tenth sentence is for test."""
    train = [s for i, s in enumerate(sentences) if i % 10]
    dictionary = build_dict(train, least)
    return (dictionary, rows_of(train, dictionary),
            rows_of(sentences[::10], dictionary))


def plain(path, least):
    """The sentences of a file, in lower case."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", errors="replace") as f:
        text = f.read().lower()
    sentences = [re.findall(r"[a-z']+", s)
                 for s in re.split(r"[.?!:;]|\n\s*\n", text)]
    return numbered([s for s in sentences if len(s) >= N], least)


def treebank(least):
    dictionary = imikolov.build_dict(least)
    return (dictionary, imikolov.train(dictionary, N)(),
            imikolov.test(dictionary, N)())


def made_up(least, count=4000):
    """Sentences of a small grammar."""
    draw = random.Random(1)
    words = [s.split() for s in (
        "the a this every", "quick old red small", "fox dog cat bird",
        "sees likes follows hears", "the a this every", "big young blue",
        "house tree road river", "today often again")]
    return numbered([[draw.choice(w) for w in words] for _ in range(count)],
                    least)


def find_text(path, least):
    """What the text is, and what it gives."""
    if path:
        return path, plain(path, least)
    if common.find("imikolov", ["simple-examples.tgz"], imikolov.MD5):
        return "imikolov, the Penn Treebank", treebank(least)
    jargon = common.find("jargon", ["jargon.txt"], None)
    if jargon or os.path.exists(JARGON):
        return "the Jargon File", plain(jargon or JARGON, least)
    return ("made-up sentences, since there is no other text (see --help)",
            made_up(least))


# --- files -------------------------------------------------------------------

def write(path, rows, pieces):
    """One file, and the same rows cut into pieces."""
    each = len(rows) // pieces + 1
    with open(path, "w") as f:
        f.writelines(rows)
    for i in range(pieces):
        with open("%s-%05d" % (path, i), "w") as f:
            f.writelines(rows[i * each:(i + 1) * each])
    print("%s: %d lines, in %d pieces" % (path, len(rows), pieces))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", default=".", help="folder (%(default)s)")
    parser.add_argument("--split", type=int, default=SPLIT_COUNT,
                        help="files of each part (%(default)s)")
    parser.add_argument("--text", help="a file of sentences")
    parser.add_argument("--least", type=int, default=30,
                        help="a rarer word is <unk> (%(default)s)")
    parser.add_argument("--lines", type=int, default=0,
                        help="at most, of each part, for a short run (all)")
    args = parser.parse_args()
    if args.split < 1:
        sys.exit("prepare: --split is %d, expected 1 or more" % args.split)
    what, (dictionary, train, test) = find_text(args.text, args.least)
    print("text: %s" % what)
    os.makedirs(args.out, exist_ok=True)
    with open(os.path.join(args.out, "word_dict.pickle"), "wb") as f:
        pickle.dump(dictionary, f, protocol=2)
    print("word_dict.pickle: %d words" % len(dictionary))
    for name, rows in (("train.txt", train), ("test.txt", test)):
        some = itertools.islice(rows, args.lines or None)
        write(os.path.join(args.out, name), [
            ",".join(map(str, row)) + "\n" for row in some], args.split)


if __name__ == "__main__":
    main()
