# SPDX-License-Identifier: Apache-2.0
"""paddle.dataset.mnist: handwritten digits, 60,000 + 10,000.

A sample is (784 float32 in [-1, 1], label). The files are gzipped idx: a
big-endian magic number (2051 images, 2049 labels), counts, then bytes.
"""
import math
import struct

import numpy as np

from . import _archive, common

__all__ = ["train", "test", "fetch"]

URL_PREFIX = "https://dataset.bj.bcebos.com/mnist/"
FILES = {
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
}


def _idx(path, magic, dims):
    """The bytes of an idx file as an array of `dims` dimensions."""
    data, size = _archive.gunzip(path), 4 + 4 * dims
    head = struct.unpack(">%dI" % (1 + dims), data[:size].ljust(size, b"\0"))
    if len(data) < size or head[0] != magic:
        raise ValueError("mnist: %s is not an idx file with magic number %d"
                         % (path, magic))
    body, shape = np.frombuffer(data, np.uint8, offset=size), head[1:]
    if body.size != math.prod(shape):
        raise ValueError("mnist: %s has %d bytes of data, its head says %s"
                         % (path, body.size, list(shape)))
    return body.reshape(shape)


def reader_creator(image_filename, label_filename, buffer_size=1000):
    """A reader of a pair of files; that many images are scaled at a time."""
    def reader():
        images = _idx(image_filename, 2051, 3)
        labels = _idx(label_filename, 2049, 1).tolist()
        if len(images) != len(labels):
            raise ValueError("mnist: %d images but %d labels"
                             % (len(images), len(labels)))
        images = images.reshape(len(images), -1)
        for i in range(0, len(images), buffer_size):
            x = images[i:i + buffer_size].astype(np.float32)
            x = x / 255.0 * 2.0 - 1.0
            yield from zip(x, labels[i:i + buffer_size])

    return reader


def _reader(part):
    paths = [common.download(URL_PREFIX + name, "mnist", FILES[name])
             for name in (part + "-images-idx3-ubyte.gz",
                          part + "-labels-idx1-ubyte.gz")]
    return reader_creator(*paths)


def train():
    """A reader of the 60,000 digits to learn from."""
    return _reader("train")


def test():
    """A reader of the 10,000 digits to judge by."""
    return _reader("t10k")


def fetch():
    """Make sure that all four files are there."""
    for name, md5sum in FILES.items():
        common.download(URL_PREFIX + name, "mnist", md5sum)
