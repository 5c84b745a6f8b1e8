# SPDX-License-Identifier: Apache-2.0
"""paddle.compat: text, bytes and numbers as Python 2 scripts expect them."""
import math

__all__ = ["long_type", "int_type", "to_text", "to_bytes", "round",
           "floor_division", "get_exception_message"]

long_type = int
int_type = int


def _convert(obj, one, inplace):
    """`one` on a string, or on every member of a list or set."""
    if not isinstance(obj, (list, set)):
        return one(obj)
    members = type(obj)(_convert(x, one, inplace) for x in obj)
    if not inplace:
        return members
    obj.clear()
    (obj.extend if isinstance(obj, list) else obj.update)(members)
    return obj


def to_text(obj, encoding="utf-8", inplace=False):
    """Bytes become str, also in lists and sets; all else stays."""
    return _convert(obj, lambda x: x.decode(encoding)
                    if isinstance(x, bytes) else x, inplace)


def to_bytes(obj, encoding="utf-8", inplace=False):
    """Texts become bytes, also in lists and sets; all else stays."""
    return _convert(obj, lambda x: x.encode(encoding)
                    if isinstance(x, str) else x, inplace)


def round(x, d=0):
    """Halves go away from zero, as in Python 2."""
    if x == 0 or not math.isfinite(x):
        return x
    p = 10**d
    return math.copysign(math.floor(abs(x) * p + 0.5) / p, x)


def floor_division(x, y):
    """x / y rounded down, as / of integers in Python 2."""
    return x // y


def get_exception_message(exc):
    """The message of an exception, a str."""
    assert isinstance(exc, BaseException), (
        "get_exception_message takes an exception, not %s"
        % type(exc).__name__)
    return str(exc)
