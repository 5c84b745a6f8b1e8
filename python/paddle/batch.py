# SPDX-License-Identifier: Apache-2.0
"""paddle.batch: samples in, lists of samples out."""
import itertools

__all__ = ["batch"]


def batch(reader, batch_size, drop_last=False):
    """A reader of lists of `batch_size` samples; the last may be shorter."""
    size = int(batch_size)
    if size <= 0:
        raise ValueError("batch: batch_size is %r, must be positive"
                         % (batch_size,))

    def batch_reader():
        samples = iter(reader())
        while chunk := list(itertools.islice(samples, size)):
            if len(chunk) == size or not drop_last:
                yield chunk

    return batch_reader
