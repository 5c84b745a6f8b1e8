# SPDX-License-Identifier: Apache-2.0
"""paddle.dataset.uci_housing: Boston house prices, 404 + 102 rows.

A sample is (13 features, [price]), float64. Each feature is (x - mean) /
(max - min) over all 506 rows; the price is as it was.
"""
import numpy as np

from . import common

__all__ = ["train", "test", "fetch", "feature_names"]

URL = "http://paddlemodels.bj.bcebos.com/uci_housing/housing.data"
MD5 = "d4accdce7a25600298819f8e28e8d593"
feature_names = ["CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS",
                 "RAD", "TAX", "PTRATIO", "B", "LSTAT"]


def load_data(filename, feature_num=14, ratio=0.8):
    """The rows of both readers: (train, test)."""
    data = np.fromfile(filename, sep=" ")
    if data.size == 0 or data.size % feature_num:
        raise ValueError("uci_housing: %s has %d numbers, not rows of %d"
                         % (filename, data.size, feature_num))
    data = data.reshape(-1, feature_num)
    x = data[:, :-1]
    data[:, :-1] = (x - x.mean(axis=0)) / (x.max(axis=0) - x.min(axis=0))
    cut = int(len(data) * ratio)
    return data[:cut], data[cut:]


def _reader(rows):
    def reader():
        for row in rows:
            yield row[:-1], row[-1:]

    return reader


def train():
    """A reader of the first 404 rows."""
    return _reader(load_data(fetch())[0])


def test():
    """A reader of the last 102 rows."""
    return _reader(load_data(fetch())[1])


def fetch():
    """The path of housing.data."""
    return common.download(URL, "uci_housing", MD5)
