# SPDX-License-Identifier: Apache-2.0
"""Every public name says what it is for, what its arguments mean and what it
returns. Layers and optimizers say it in C's tables, all others in Python."""
import importlib
import inspect
import os
import pkgutil
import re

import pytest

import paddle.fluid as fluid
from conftest import ROOT
from paddle.fluid import _fluid


def rows():
    return list(_fluid.layer_table()) + list(_fluid.optimizer_table())


@pytest.mark.parametrize("spec", rows(), ids=[s.name for s in rows()])
def test_a_row_of_the_tables_has_a_purpose_and_meanings(spec):
    assert spec.doc.endswith(".") and len(spec.doc) > 10, spec.doc
    for a in spec.arguments:
        assert a.doc and not a.doc.endswith("."), a


def public():
    """(path, function or class) of everything in an __all__ of fluid."""
    found = {}
    for info in pkgutil.walk_packages(fluid.__path__, "paddle.fluid."):
        if "._" in info.name or info.name == "paddle.fluid.dygraph":
            continue
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            home = getattr(thing, "__module__", "") or ""
            if (inspect.isfunction(thing) or inspect.isclass(thing)) and \
                    home.startswith("paddle.fluid"):
                found.setdefault(id(thing), (info.name + "." + name, thing))
    return sorted(found.values(), key=lambda row: row[0])


def arguments(thing):
    """Names that a caller gives."""
    own = thing.__init__ if inspect.isclass(thing) else thing
    if inspect.isclass(thing) and "__init__" not in vars(thing) and \
            not hasattr(own, "__signature__"):
        return []
    return [p.name for p in inspect.signature(own).parameters.values()
            if p.name != "self" and p.kind not in (
                p.VAR_POSITIONAL, p.VAR_KEYWORD)]


@pytest.mark.parametrize("path,thing", public(),
                         ids=[path for path, _ in public()])
def test_a_public_name_is_documented(path, thing):
    doc = inspect.getdoc(thing)
    assert doc and doc.split("\n")[0][-1:] in ".:," or "." in doc, "purpose"
    if issubclass(type(thing), type) and issubclass(thing, Exception):
        return
    named = arguments(thing)
    body = doc.partition("Args:\n")[2].partition("Returns:\n")[0]
    for name in named:
        assert "\n    %s" % name in "\n" + body, "argument " + name
    if inspect.isfunction(thing) and "Returns:\n" not in doc:
        source = inspect.getsource(thing)
        assert "return " not in source and "yield " not in source, "Returns"


def test_help_and_the_page_say_what_an_argument_means():
    doc = fluid.layers.fc.__doc__
    assert "num_flatten_dims (int, default 1): the number of leading" in doc
    assert "Returns:\n    A Variable." in doc
    assert fluid.optimizer.SGD.__doc__.startswith("Stochastic gradient desc")
    assert "transposed convolution" in fluid.layers.conv2d_transpose.__doc__
    with open(os.path.join(ROOT, "docs", "layers.md")) as f:
        page = f.read()
    assert "- `size` (int, `.i`): the number of outputs of each row" in page


def shared_meanings(table):
    """(name, meaning) of each row of a table in src/build/docs.c."""
    with open(os.path.join(ROOT, "src", "build", "docs.c")) as f:
        body = f.read().partition("entry %s[] = {" % table)[2]
    literal = r'"((?:[^"\\]|\\.)*)"'
    found = re.findall(r'\{"(\w+)",\s*((?:%s\s*)+)\}' % literal,
                       body.partition("\n};")[0])
    return [(name, "".join(re.findall(literal, text)))
            for name, text, _ in found]


def test_every_shared_meaning_is_used():
    """A row that no layer and no optimizer uses has been left behind."""
    used = {(a.name, a.doc) for spec in rows() for a in spec.arguments}
    meanings = shared_meanings("arguments")
    assert len(meanings) > 100
    assert [row for row in meanings if row not in used] == []


def test_every_meaning_of_an_operator_is_used():
    used = {spec.doc for spec in rows()}
    meanings = shared_meanings("operators")
    assert len(meanings) > 40
    assert [row for row in meanings if row[1] not in used] == []
