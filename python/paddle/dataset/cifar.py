# SPDX-License-Identifier: Apache-2.0
"""paddle.dataset.cifar: small pictures of 10 or 100 kinds of things.

A sample is (3072 float32 in [0, 1], label): 1,024 red, green, blue, row by
row. The published archives hold pickles. In their place CIFAR-10's binary
form is read as well: files of records of 3,073 bytes, the label first.
"""
import itertools
import pickle

import numpy as np

from . import _archive, common

__all__ = ["train10", "test10", "train100", "test100", "fetch"]

URL_PREFIX = "https://dataset.bj.bcebos.com/cifar/"
CIFAR10_URL = URL_PREFIX + "cifar-10-python.tar.gz"
CIFAR10_MD5 = "c58f30108f718f92721af3b95e74349a"
CIFAR100_URL = URL_PREFIX + "cifar-100-python.tar.gz"
CIFAR100_MD5 = "eb9058c3a382ffc7106e4002c42a8d85"
_PIXELS = 3072
_BINARY = {"data_batch": ["cifar10/train*.bin*",
                          "cifar-10-batches-bin/data_batch*.bin",
                          "cifar/cifar-10-batches-bin/data_batch*.bin"],
           "test_batch": ["cifar10/test*.bin*",
                          "cifar-10-batches-bin/test_batch*.bin",
                          "cifar/cifar-10-batches-bin/test_batch*.bin"]}


class _Unpickler(pickle.Unpickler):
    """Arrays and plain values only: a pickle may not run code of its own."""
    _ALLOWED = {("numpy", "ndarray"), ("numpy", "dtype"),
                ("numpy.core.multiarray", "_reconstruct"),
                ("numpy._core.multiarray", "_reconstruct"),
                ("_codecs", "encode")}

    def find_class(self, module, name):
        if (module, name) not in self._ALLOWED:
            raise pickle.UnpicklingError("%s.%s is not an array"
                                         % (module, name))
        return super().find_class(module, name)


def _pickled(path, part):
    """(pixels, labels) of each batch of an archive whose name has `part`."""
    with _archive.opened(path) as tar:
        for info in tar:
            if info.isfile() and part in info.name.split("/")[-1]:
                batch = _Unpickler(tar.extractfile(info),
                                   encoding="bytes").load()
                labels = batch.get(b"labels", batch.get(b"fine_labels"))
                if labels is None:
                    raise ValueError("cifar: %s in %s has no labels"
                                     % (info.name, path))
                yield np.asarray(batch[b"data"], np.uint8), labels


def _binary(paths):
    """(pixels, labels) of each file of records."""
    for path in paths:
        data = np.frombuffer(_archive.gunzip(path), np.uint8) \
            if path.endswith(".gz") else np.fromfile(path, np.uint8)
        if data.size % (1 + _PIXELS):
            raise ValueError("cifar: %s has %d bytes, not records of %d"
                             % (path, data.size, 1 + _PIXELS))
        rows = data.reshape(-1, 1 + _PIXELS)
        yield rows[:, 1:], rows[:, 0].tolist()


def _samples(paths, part):
    archive = paths[0].endswith(".tar.gz")
    for pixels, labels in (_pickled(paths[0], part) if archive
                           else _binary(paths)):
        scaled = pixels / np.float32(255)
        yield from zip(scaled, map(int, labels))


def _reader(paths, part, cycle):
    def reader():
        for _ in itertools.count() if cycle else range(1):
            yield from _samples(paths, part)

    return reader


def _reader10(part, cycle):
    paths = common.locate(CIFAR10_URL, "cifar", CIFAR10_MD5,
                          instead=_BINARY[part])
    return _reader(paths, part, cycle)


def _reader100(part, cycle):
    paths = common.locate(CIFAR100_URL, "cifar", CIFAR100_MD5)
    return _reader(paths, part, cycle)


def train10(cycle=False):
    """A reader of CIFAR-10's training pictures; with `cycle`, for ever."""
    return _reader10("data_batch", cycle)


def test10(cycle=False):
    return _reader10("test_batch", cycle)


def train100(cycle=False):
    """A reader of CIFAR-100 with its fine labels."""
    return _reader100("train", cycle)


def test100(cycle=False):
    return _reader100("test", cycle)


def fetch():
    """Make sure that both archives are there."""
    common.download(CIFAR10_URL, "cifar", CIFAR10_MD5)
    common.download(CIFAR100_URL, "cifar", CIFAR100_MD5)
