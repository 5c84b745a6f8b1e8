# SPDX-License-Identifier: Apache-2.0
"""Files over the network, with progress on stderr.

A file appears under its name only when it is whole: several trainers on one
host may fetch the same one at a time.
"""
import http.client
import os
import sys
import urllib.request

TRIES = 3
SILENCE = 20  # seconds without a byte that mean there is no network
CHUNK = 1 << 16


def _progress(name, done, total):
    """One line; on a terminal it is written over as the bytes come."""
    if total:
        bar = "=" * (40 * done // total)
        text = "[%-40s] %3d %%" % (bar, 100 * done // total)
    else:
        text = "%d kB" % (done // 1000)
    sys.stderr.write("\r%s %s" % (name, text))
    sys.stderr.flush()


def _copy(response, out, name):
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isdigit() else 0
    done, live = 0, sys.stderr.isatty()
    while data := response.read(CHUNK):
        out.write(data)
        done += len(data)
        if live:
            _progress(name, done, total)
    if live:
        sys.stderr.write("\n")
    if done < total:
        raise OSError("%d of %d bytes came" % (done, total))


def _attempt(url, part):
    print("paddle.dataset: downloading %s" % url, file=sys.stderr)
    try:
        with urllib.request.urlopen(url, timeout=SILENCE) as response, \
                open(part, "wb") as out:
            _copy(response, out, url.split("/")[-1])
    except http.client.HTTPException as e:
        raise OSError("no sensible answer: %r" % e) from None


def fetch(url, path, is_right):
    """Bring `url` to `path`; OSError says why that was not possible.

    is_right(path) judges the file; a wrong one is fetched again, a server
    that does not answer is not asked again."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = "%s.part%d" % (path, os.getpid())
    try:
        for _ in range(TRIES):
            _attempt(url, part)
            if is_right(part):
                os.replace(part, path)
                return
        raise OSError("its md5 was wrong %d times" % TRIES)
    finally:
        if os.path.exists(part):
            os.remove(part)
