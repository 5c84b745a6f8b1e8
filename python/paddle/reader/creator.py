# SPDX-License-Identifier: Apache-2.0
"""paddle.reader.creator: readers from arrays and files."""
import numpy as np

__all__ = ["np_array", "text_file", "recordio"]


def np_array(x):
    """A reader of the rows of an array; of a scalar, the scalar itself."""
    def reader():
        yield from np.atleast_1d(x)

    return reader


def text_file(path):
    """A reader of the lines of a file, without their ends."""
    def reader():
        with open(path) as f:
            for line in f:
                yield line.rstrip("\n")

    return reader


def recordio(paths, buf_size=100):
    raise NotImplementedError(
        "recordio: record files are not supported; write the samples with "
        "paddle.dataset.common.split and read them with cluster_files_reader")
