# SPDX-License-Identifier: Apache-2.0
"""What lies in archives; one that is damaged is a ValueError that names it."""
import contextlib
import gzip
import io
import posixpath
import tarfile
import zlib

_DAMAGE = (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error)


@contextlib.contextmanager
def opened(path):
    """A tar archive, compressed or not."""
    try:
        with tarfile.open(path) as tar:
            yield tar
    except _DAMAGE as e:
        raise ValueError("%s is damaged: %s" % (path, e)) from None


def member(tar, name):
    """A member's binary file; `./` before its name does not matter."""
    for info in tar:
        if info.isfile() and posixpath.normpath(info.name) == name:
            return tar.extractfile(info)
    raise ValueError("%s has no member %s" % (tar.name, name))


def text_member(tar, name):
    """A member's file as lines of text."""
    return io.TextIOWrapper(member(tar, name), "utf-8", "replace", "\n")


def gunzip(path):
    """All bytes of a gzipped file."""
    try:
        with gzip.open(path) as f:
            return f.read()
    except _DAMAGE as e:
        raise ValueError("%s is damaged: %s" % (path, e)) from None
