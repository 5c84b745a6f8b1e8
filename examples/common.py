# SPDX-License-Identifier: Apache-2.0
"""What the Python examples share: options, short runs, and the last word."""
import argparse
import sys

import paddle


def options(about, passes, model, *kinds):
    """The command line: passes over the data, batches of each (0: all), the
    folder for the model; and which network, where there are several."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawTextHelpFormatter)
    if kinds:
        parser.add_argument("kind", nargs="?", default=kinds[0],
                            choices=kinds, help="the network")
    parser.add_argument("--passes", type=int, default=passes,
                        help="over the training data (%(default)s)")
    parser.add_argument("--batches", type=int, default=0,
                        help="of a pass, for a short run (all)")
    parser.add_argument("--model", default=model,
                        help="folder to save in (%(default)s)")
    return parser.parse_args()


def batches(samples, size, most, shuffle=0):
    """A reader of batches: at most `most` of them, unless that is 0."""
    if shuffle:
        samples = paddle.reader.shuffle(samples, buf_size=shuffle)
    whole = paddle.batch(samples, batch_size=size)
    return paddle.reader.firstn(whole, most) if most else whole


def verdict(name, value, bar, short, below=False):
    """Say whether the bar was reached. A short run need not reach it."""
    good = value <= bar if below else value >= bar
    print("%s %.4f; the bar is %s %g" % (
        name, value, "at most" if below else "at least", bar))
    sys.exit(0 if good or short else 1)
