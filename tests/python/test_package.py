# SPDX-License-Identifier: Apache-2.0
"""paddle: the package's root, and what it refuses."""
import os
import re
import subprocess
import sys

import pytest

import paddle
from paddle import _beside, compat
from conftest import BUILD, ROOT


def python(code, **env):
    """Output of a fresh interpreter."""
    env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"), **env}
    return subprocess.run([sys.executable, "-c", code], env=env, text=True,
                          capture_output=True)


def test_import_loads_nothing_heavy():
    run = python("import sys, paddle; print([m for m in ('numpy', 'paddle."
                 "fluid', 'paddle.dataset', 'socket') if m in sys.modules])")
    assert (run.stdout, run.stderr) == ("[]\n", "")


def test_parts_load_when_named():
    run = python("import paddle; paddle.reader.shuffle, "
                 "paddle.dataset.uci_housing.train, paddle.compat.to_text, "
                 "paddle.version.major, paddle.v2.batch")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_an_unknown_part_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        paddle.nonsense
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        paddle.dataset.nonsense


def test_a_hint_is_given_once():
    run = python("import paddle; paddle.dataset.uci_housin",
                 PYTHONPATH=os.path.join(BUILD, "python"))
    assert run.stderr.lower().count("did you mean") == 1


def test_version_is_that_of_the_makefile():
    with open(os.path.join(ROOT, "Makefile")) as f:
        made = re.search(r"^VERSION := (.*)$", f.read(), re.M).group(1)
    assert paddle.__version__ == paddle.version.full_version == made
    v = paddle.version
    assert ".".join([v.major, v.minor, v.patch]) == made


def test_v2_has_the_same_modules():
    run = python("""
import paddle.v2 as paddle
import paddle.v2.dataset.uci_housing as a, paddle.dataset.uci_housing as b
from paddle.v2.reader import decorator
from paddle.v2.minibatch import batch
assert a is b is paddle.dataset.uci_housing
assert paddle.reader.shuffle is decorator.shuffle
assert paddle.batch is batch is paddle.minibatch.batch
""")
    assert (run.returncode, run.stderr) == (0, "")


def plant(folder, name):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")


@pytest.mark.parametrize("mark", [
    "paddle/fluid/core_avx.so", "paddle/base/libpaddle.so",
    "paddlepaddle-1.8.5.dist-info/METADATA"])
def test_another_paddle_is_found(tmp_path, mark):
    plant(tmp_path, mark)
    found = _beside.find_other(["/nowhere", str(tmp_path)], "/own/paddle")
    assert found == str(tmp_path / os.path.dirname(mark)) or \
        found == str(tmp_path / mark)


def test_own_folder_is_no_other(tmp_path):
    plant(tmp_path, "paddle/fluid/core.abi3.so")
    own = str(tmp_path / "paddle")
    assert _beside.find_other([str(tmp_path)], own) is None


def test_import_beside_another_paddle_is_refused(tmp_path):
    plant(tmp_path, "paddle/fluid/core_noavx.so")
    path = os.path.join(ROOT, "python") + os.pathsep + str(tmp_path)
    run = python("import paddle", PYTHONPATH=path)
    assert run.returncode != 0
    last = run.stderr.splitlines()[-1]
    assert last.startswith("ImportError: paddle: %s" % tmp_path)
    assert "would shadow; remove one of the two" in last


def test_batch_makes_lists():
    reader = paddle.batch(lambda: range(5), 2)
    assert list(reader()) == list(reader()) == [[0, 1], [2, 3], [4]]


def test_batch_can_drop_the_rest():
    reader = paddle.batch(lambda: range(5), batch_size=2, drop_last=True)
    assert list(reader()) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("size", [0, -1])
def test_batch_refuses_a_size_below_one(size):
    with pytest.raises(ValueError, match="batch_size is %d" % size):
        paddle.batch(lambda: [], size)


def test_compat_text_and_bytes():
    assert compat.to_text(b"\xc3\xa9") == "\u00e9"
    assert compat.to_bytes("\u00e9") == b"\xc3\xa9"
    assert compat.to_text([b"a", {b"b"}, None, 3]) == ["a", {"b"}, None, 3]
    words = [b"a", "b"]
    assert compat.to_text(words, inplace=True) is words == ["a", "b"]
    letters = {"a"}
    assert compat.to_bytes(letters, inplace=True) is letters == {b"a"}


def test_compat_rounds_halves_away_from_zero():
    assert [compat.round(x) for x in (0.5, 1.5, 2.5, -2.5, 0)] == \
        [1, 2, 3, -3, 0]
    assert compat.round(2.675, 1) == 2.7
    assert compat.round(float("inf")) == float("inf")


def test_compat_rest():
    assert compat.floor_division(7, 2) == 3
    assert compat.get_exception_message(ValueError("why")) == "why"
    with pytest.raises(AssertionError, match="takes an exception, not str"):
        compat.get_exception_message("why")
    assert compat.long_type is compat.int_type is int
