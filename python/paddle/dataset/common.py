# SPDX-License-Identifier: Apache-2.0
"""paddle.dataset.common: where data sets lie, and how they get there.

A file is looked for as FOLDER/<module>/<name>, in this order:
  1. DATA_HOME, if the user chose it (PADDLE_DATA_HOME, or by assignment):
     what lies there is used even if it is not the published file;
  2. what set-up fetched: data/ of the build tree, share/fluid/data;
  3. ~/.cache/paddle/dataset.
Only then is it downloaded. Nothing is printed on stdout.
"""
import glob
import hashlib
import os
import pickle
import sys
from urllib.parse import unquote

from . import _download

__all__ = ["DATA_HOME", "download", "md5file", "split",
           "cluster_files_reader", "convert"]

CACHE = os.path.expanduser(os.path.join("~", ".cache", "paddle", "dataset"))
DATA_HOME = os.environ.get("PADDLE_DATA_HOME") or CACHE

_said = set()  # each remark once a process


def _remark(text):
    if text not in _said:
        _said.add(text)
        print("paddle.dataset: " + text, file=sys.stderr)


def _above(path):
    """The folders around a path, nearest first."""
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        yield path


def _fetched():
    """Folders of data that set-up left, of this tree or installation."""
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    around = list(_above(package))
    tree = os.path.dirname(around[0])  # where it lies in python/paddle
    # A build tree is known by its python/, which `make env` puts on the path.
    builds = [os.path.dirname(os.path.realpath(p)) for p in sys.path
              if os.path.basename(p) == "python"]
    found = [os.path.join(b, "data") for b in builds if b != tree]
    found.append(os.path.join(tree, "build", "data"))
    found += [os.path.join(a, "share", "fluid", "data") for a in around]
    return [f for f in dict.fromkeys(found) if os.path.isdir(f)]


def places():
    """Folders that may hold data sets, in the order they are searched."""
    chosen = [DATA_HOME] if DATA_HOME != CACHE else []
    return chosen + _fetched() + [CACHE]


def _is_published(path, md5sum, chosen):
    """Whether to take the file; a user's own is taken with a remark."""
    if not md5sum or md5file(path) == md5sum:
        return True
    if chosen:
        _remark("%s is used, though it is not the published file (md5 %s)"
                % (path, md5sum))
    return chosen


def _names(url, save_name):
    """What a file may be called; some addresses have an escaped folder."""
    last = url.split("/")[-1]
    return [save_name] if save_name else list(dict.fromkeys(
        [last, unquote(last).split("/")[-1]]))


def find(module_name, names, md5sum):
    """The path of a data set's file, or None."""
    for place in places():
        for name in names:
            path = os.path.join(place, module_name, name)
            if os.path.isfile(path) and _is_published(
                    path, md5sum, place == DATA_HOME != CACHE):
                return path
    return None


def find_instead(patterns, published):
    """Files of another shape that stand in for a published one, sorted."""
    for place in places():
        for pattern in patterns:
            found = glob.glob(os.path.join(glob.escape(place), pattern))
            if found:
                which = found[0] if len(found) == 1 else pattern
                _remark("%s is used in place of %s"
                        % (os.path.join(place, which), published))
                return sorted(found)
    return []


def locate(url, module_name, md5sum, save_name=None, instead=()):
    """Paths of the published file, or of what matches one of `instead`."""
    names = _names(url, save_name)
    found = find(module_name, names, md5sum)
    if found:
        return [found]
    others = find_instead(instead, names[-1])
    if others:
        return others
    home = DATA_HOME if _writable(DATA_HOME) else CACHE
    path = os.path.join(home, module_name, names[0])
    try:
        _download.fetch(url, path, lambda p: not md5sum or
                        md5file(p) == md5sum)
    except OSError as e:
        raise RuntimeError(_absent(url, module_name, names[-1], e)) from None
    return [path]


def _writable(folder):
    """Whether the folder, or the nearest one that exists, can be written."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(os.path.abspath(folder))
    return os.access(folder, os.W_OK)


def _absent(url, module_name, name, why):
    file = os.path.join(module_name, name)
    why = getattr(why, "reason", None) or why
    return ("paddle.dataset: %s is not in %s, and %s could not be downloaded "
            "(%s); put a copy at %s, or set PADDLE_DATA_HOME to a folder "
            "that has %s" % (file, " or ".join(places()), url, why,
                             os.path.join(DATA_HOME, file), file))


def download(url, module_name, md5sum, save_name=None):
    """The path of the file, which is downloaded if it is not there yet."""
    return locate(url, module_name, md5sum, save_name)[0]


def md5file(fname):
    """The md5 sum of a file, in hexadecimal."""
    with open(fname, "rb") as f:
        return hashlib.file_digest(f, "md5").hexdigest()


def split(reader, line_count, suffix="%05d.pickle", dumper=pickle.dump):
    """Write the samples to files of `line_count` each: suffix % 0, 1, ..."""
    if not callable(dumper):
        raise TypeError("split: dumper must be callable")
    from ..batch import batch
    for i, samples in enumerate(batch(reader, line_count)()):
        with open(suffix % i, "wb") as f:
            dumper(samples, f)


def cluster_files_reader(files_pattern, trainer_count, trainer_id,
                         loader=pickle.load):
    """A reader of this trainer's share of the files that `split` wrote."""
    if not callable(loader):
        raise TypeError("cluster_files_reader: loader must be callable")

    def reader():
        files = sorted(glob.glob(files_pattern))
        for path in files[trainer_id::trainer_count]:
            with open(path, "rb") as f:
                yield from loader(f)

    return reader


def convert(output_path, reader, line_count, name_prefix):
    raise NotImplementedError(
        "convert: record files are not supported; use split, and "
        "cluster_files_reader to read what it wrote")
