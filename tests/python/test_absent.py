# SPDX-License-Identifier: Apache-2.0
"""A name that PaddlePaddle has and this version has not answers with one
sentence that names docs/compatibility.md, however a script asks for it."""
import importlib
import os
import re
import subprocess
import sys

import pytest

import paddle.fluid as fluid
from paddle import _absent
from conftest import ROOT

ROWS = [(where, name) for where, _, _, names in _absent.ABSENT
        for name in names.split()]
STAND_INS = ("paddle.fluid.dygraph", "paddle.fluid.op")


def says(module, name):
    return r"^%s\.%s is (not in this version yet|left out on purpose) " \
        r"\(.+\); see docs/compatibility\.md$" % (re.escape(module), name)


@pytest.mark.parametrize("module,name", ROWS,
                         ids=["%s.%s" % row for row in ROWS])
def test_an_absent_name_says_so_as_an_attribute_and_in_an_import(module,
                                                                 name):
    home = importlib.import_module(module)
    if module in STAND_INS:
        with pytest.raises(NotImplementedError, match=says(module, name)):
            getattr(home, name)()
        return
    with pytest.raises(AttributeError, match=says(module, name)):
        getattr(home, name)
    with pytest.raises(ImportError, match=says(module, name)):
        exec("from %s import %s" % (module, name))
    with pytest.raises(ImportError, match=says(module, name)):
        importlib.import_module("%s.%s" % (module, name))
    assert name not in home.__all__


def test_no_name_is_listed_twice():
    assert len(set(ROWS)) == len(ROWS)


@pytest.mark.parametrize("code,module,name", [
    ("import paddle.fluid.contrib.slim.core", "paddle.fluid.contrib", "slim"),
    ("from paddle.fluid.contrib.slim import Compressor",
     "paddle.fluid.contrib", "slim"),
    ("from paddle.fluid.layers.nn import dynamic_lstm",
     "paddle.fluid.layers", "dynamic_lstm"),
    ("from paddle.fluid.layers.control_flow import While",
     "paddle.fluid.layers", "While")])
def test_what_lies_below_an_absent_name_is_absent(code, module, name):
    with pytest.raises(ImportError, match=says(module, name)):
        exec(code)


def test_an_absent_module_is_refused_as_a_command():
    env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}
    run = subprocess.run([sys.executable, "-m", "paddle.dataset.wmt16"],
                         env=env, text=True, capture_output=True)
    assert run.returncode != 0
    assert "paddle.dataset.wmt16 is not in this version yet" in run.stderr
    assert "docs/compatibility.md" in run.stderr


def test_an_unknown_module_is_an_ordinary_error():
    with pytest.raises(ModuleNotFoundError,
                       match="No module named 'paddle.nonsense'"):
        import paddle.nonsense  # noqa: F401
    assert importlib.util.find_spec("paddle.fluid.nonsense") is None


def test_dygraph_can_be_imported_and_derived_from_but_not_used():
    import paddle.fluid.dygraph.base
    import paddle.fluid.dygraph.parallel  # noqa: F401
    from paddle.fluid.dygraph.nn import Conv2D
    assert not fluid.dygraph.base.enabled()

    class Net(Conv2D):
        pass
    with pytest.raises(NotImplementedError, match="there are only programs"):
        Net("net", 3)
    with pytest.raises(NotImplementedError, match="there are only programs"):
        fluid.dygraph.to_variable([1])


def test_the_page_lists_every_absent_name():
    with open(os.path.join(ROOT, "docs", "compatibility.md")) as f:
        page = f.read()
    for module, name in ROWS:
        assert re.search(r"^\| `%s` \|.*`%s`" % (re.escape(module), name),
                         page, re.M), (module, name)
