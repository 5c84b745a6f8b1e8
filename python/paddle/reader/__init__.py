# SPDX-License-Identifier: Apache-2.0
"""paddle.reader: a reader is a function that returns an iterable of samples.

Decorators take readers and give readers; nothing is read before the result
is iterated. `creator` makes readers from arrays and files.
"""
from . import creator, decorator
from .decorator import *  # noqa: F403

__all__ = decorator.__all__ + ["creator"]
