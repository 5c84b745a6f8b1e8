# SPDX-License-Identifier: Apache-2.0
"""paddle.dataset.common: where files are looked for, and downloads."""
import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import threading

import pytest

from conftest import ROOT
from paddle.dataset import common

BYTES = b"a small data set\n"
MD5 = hashlib.md5(BYTES).hexdigest()
NOWHERE = "http://127.0.0.1:9/sets/small.txt"  # nobody listens there


@pytest.fixture
def server(monkeypatch):
    """Serves what `answers` holds, in order; the last for ever."""
    monkeypatch.setenv("no_proxy", "*")

    class Handler(http.server.BaseHTTPRequestHandler):
        answers, asked = [BYTES], []

        def do_GET(self):
            self.asked.append(self.path)
            body = self.answers.pop(0) if len(self.answers) > 1 \
                else self.answers[0]
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            claimed = getattr(self, "claimed", len(body))
            self.send_header("Content-Length", str(claimed))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as s:
        thread = threading.Thread(target=s.serve_forever, args=(0.01,))
        thread.start()
        Handler.url = "http://127.0.0.1:%d/sets/small.txt" % s.server_port
        yield Handler
        s.shutdown()
        thread.join()


def put(home, name, content=BYTES):
    path = os.path.join(home, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content)
    return path


def test_a_file_at_hand_is_taken(data, capsys):
    path = put(data, "small/small.txt")
    assert common.download(NOWHERE, "small", MD5) == path
    assert capsys.readouterr() == ("", "")


def test_save_name_is_the_name(data):
    path = put(data, "small/train")
    assert common.download(NOWHERE, "small", MD5, "train") == path


def test_an_escaped_folder_may_be_left_out(data):
    url = "http://127.0.0.1:9/small%2Fsmall.txt"
    plain = put(data, "small/small.txt")
    assert common.download(url, "small", MD5) == plain
    escaped = put(data, "small/small%2Fsmall.txt")
    assert common.download(url, "small", MD5) == escaped


def test_the_users_own_file_is_used_with_one_remark(data, capsys):
    path = put(data, "small/small.txt", b"mine")
    for _ in range(2):
        assert common.download(NOWHERE, "small", MD5) == path
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err == ("paddle.dataset: %s is used, though it is not the "
                   "published file (md5 %s)\n" % (path, MD5))


def test_places_are_searched_in_order(data, tmp_path, monkeypatch):
    fetched = str(tmp_path / "fetched")
    monkeypatch.setattr(common, "_fetched", lambda: [fetched])
    cached = put(common.CACHE, "small/small.txt")
    assert common.download(NOWHERE, "small", MD5) == cached
    put(fetched, "small/small.txt", b"damaged")
    assert common.download(NOWHERE, "small", MD5) == cached
    prepared = put(fetched, "small/small.txt")
    assert common.download(NOWHERE, "small", MD5) == prepared
    chosen = put(data, "small/small.txt")
    assert common.download(NOWHERE, "small", MD5) == chosen


def test_absent_without_a_network_is_one_sentence(data, monkeypatch, capsys):
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(RuntimeError) as e:
        common.download(NOWHERE, "small", MD5)
    assert str(e.value) == (
        "paddle.dataset: small/small.txt is not in %s or %s, and %s could not "
        "be downloaded ([Errno 111] Connection refused); put a copy at "
        "%s/small/small.txt, or set PADDLE_DATA_HOME to a folder that has "
        "small/small.txt" % (data, common.CACHE, NOWHERE, data))
    assert capsys.readouterr().out == ""
    assert os.listdir(data / "small") == []


def test_download_brings_the_file(data, server, capsys):
    path = common.download(server.url, "small", MD5)
    assert path == str(data / "small" / "small.txt")
    assert common.md5file(path) == MD5
    assert common.download(server.url, "small", MD5) == path
    assert server.asked == ["/sets/small.txt"]
    assert os.listdir(data / "small") == ["small.txt"]
    out, err = capsys.readouterr()
    assert (out, err) == ("", "paddle.dataset: downloading %s\n" % server.url)


def test_download_shows_progress_on_a_terminal(data, server, capsys,
                                               monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    common.download(server.url, "small", MD5)
    assert "] 100 %\n" in capsys.readouterr().err


def test_download_tries_again_after_a_wrong_sum(data, server):
    server.answers[:] = [b"no", b"not", BYTES]
    path = common.download(server.url, "small", MD5)
    assert common.md5file(path) == MD5 and len(server.asked) == 3


def test_download_gives_up_after_three_wrong_sums(data, server):
    server.answers[:] = [b"no"]
    with pytest.raises(RuntimeError, match="its md5 was wrong 3 times"):
        common.download(server.url, "small", MD5)
    assert len(server.asked) == 3 and os.listdir(data / "small") == []


def test_download_notices_a_short_answer(data, server):
    server.claimed = 1000
    with pytest.raises(RuntimeError, match="17 of 1000 bytes came"):
        common.download(server.url, "small", MD5)
    assert os.listdir(data / "small") == []


def test_download_says_that_the_server_has_no_such_file(data, server):
    server.answers[:] = [None]
    with pytest.raises(RuntimeError, match=r"downloaded \(Not Found\)"):
        common.download(server.url, "small", MD5)


def test_download_replaces_a_damaged_copy_in_the_cache(data, server,
                                                       monkeypatch):
    monkeypatch.setattr(common, "DATA_HOME", common.CACHE)
    path = put(common.CACHE, "small/small.txt", b"half")
    assert common.download(server.url, "small", MD5) == path
    assert common.md5file(path) == MD5


def test_download_leaves_a_home_that_cannot_be_written(data, server,
                                                       monkeypatch):
    monkeypatch.setattr(common, "_writable", lambda folder: False)
    path = common.download(server.url, "small", MD5)
    assert path == os.path.join(common.CACHE, "small", "small.txt")


def homes(tmp_path, **env):
    """DATA_HOME and places() of a fresh process with HOME at tmp_path."""
    code = ("from paddle.dataset import common as c\n"
            "print(c.DATA_HOME, *c.places(), sep='\\n')")
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], **env}
    return subprocess.run([sys.executable, "-c", code], env=env, text=True,
                          capture_output=True, check=True).stdout.split("\n")


@pytest.fixture
def installed(tmp_path):
    """A copy of the package under a prefix, with data in its share."""
    site = tmp_path / "usr/lib/python3/dist-packages"
    shutil.copytree(os.path.join(ROOT, "python/paddle"), site / "paddle")
    share = tmp_path / "usr/share/fluid/data"
    share.mkdir(parents=True)
    return str(site), str(share)


def test_an_installation_knows_its_share(tmp_path, installed):
    site, share = installed
    cache = str(tmp_path / ".cache/paddle/dataset")
    assert homes(tmp_path, PYTHONPATH=site, PADDLE_DATA_HOME="") == [
        cache, share, cache, ""]


def test_the_environment_chooses_the_home(tmp_path, installed):
    site, share = installed
    cache = str(tmp_path / ".cache/paddle/dataset")
    assert homes(tmp_path, PYTHONPATH=site, PADDLE_DATA_HOME="/mine") == [
        "/mine", "/mine", share, cache, ""]


def test_a_source_tree_knows_its_build(tmp_path):
    python = tmp_path / "tree/python"
    shutil.copytree(os.path.join(ROOT, "python/paddle"), python / "paddle")
    built = tmp_path / "tree/build/data"
    built.mkdir(parents=True)
    assert homes(tmp_path, PYTHONPATH=str(python))[1] == str(built)


def test_a_build_tree_is_known_by_its_place_on_the_path(tmp_path, installed):
    site, share = installed
    built = tmp_path / "b"
    (built / "python").mkdir(parents=True)
    (built / "data").mkdir()
    path = site + os.pathsep + str(built / "python")
    assert homes(tmp_path, PYTHONPATH=path)[1:3] == [
        str(built / "data"), share]


def test_split_and_cluster_files_reader(tmp_path):
    common.split(lambda: range(10), 3, str(tmp_path / "part-%05d.pickle"))
    pattern = str(tmp_path / "part-*.pickle")
    assert len(os.listdir(tmp_path)) == 4
    readers = [common.cluster_files_reader(pattern, 2, i) for i in range(2)]
    assert [list(r()) for r in readers] == [[0, 1, 2, 6, 7, 8], [3, 4, 5, 9]]


def test_split_and_convert_say_what_is_wrong():
    with pytest.raises(TypeError, match="dumper must be callable"):
        common.split(lambda: [], 3, dumper=1)
    with pytest.raises(TypeError, match="loader must be callable"):
        common.cluster_files_reader("x", 1, 0, loader=1)
    with pytest.raises(NotImplementedError, match="not supported"):
        common.convert("x", lambda: [], 1, "y")
