# SPDX-License-Identifier: Apache-2.0
"""Every public name is there with its arguments; signatures.txt lists them.
"""
import importlib
import inspect
import os

import pytest

import paddle
import paddle.fluid as fluid

HERE = os.path.dirname(os.path.abspath(__file__))


def rows():
    """(path, arguments or None) of each line."""
    above = ""
    with open(os.path.join(HERE, "signatures.txt")) as f:
        for line in f:
            if not line.strip() or line.startswith("#"):
                continue
            path, bracket, rest = line.strip().partition("(")
            if line.startswith(" "):
                path = above + "." + path
            else:
                above = path
            yield path, rest.rpartition(")")[0] if bracket else None


def find(path):
    thing = paddle
    for part in path.split("."):
        if inspect.ismodule(thing) and not hasattr(thing, part):
            importlib.import_module("%s.%s" % (thing.__name__, part))
        thing = getattr(thing, part)
    return thing


def wanted(arguments):
    scope = {}
    exec("def f(%s): pass" % arguments, scope)
    return list(inspect.signature(scope["f"]).parameters.values())


def got(thing):
    """Its parameters; None for what C has without a signature."""
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except ValueError:
        return None
    if parameters and parameters[0].name == "self":
        del parameters[0]
    return parameters


def same(a, b):
    """Same names and defaults, in the same order. An argument that must be
    given there need not be here, and more of that kind may follow."""
    optional = all(p.default is not p.empty or p.kind in (
        p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in b[len(a):])
    return optional and len(a) <= len(b) and all(
        p.name == q.name and p.default in (p.empty, q.default)
        for p, q in zip(a, b))


@pytest.mark.parametrize("path,arguments", rows(),
                         ids=[path for path, _ in rows()])
def test_name(path, arguments):
    thing = find(path)
    if arguments is not None:
        there = got(thing)
        assert there is None or same(wanted(arguments), there), there


def test_a_misspelt_name_gets_its_neighbours():
    with pytest.raises(AttributeError, match="did you mean default_main_"
                       "program or default_startup_program"):
        fluid.default_trainer_program
    with pytest.raises(AttributeError, match="did you mean cross_entropy"):
        fluid.layers.cross_entrophy
    with pytest.raises(AttributeError, match="did you mean Momentum"):
        fluid.optimizer.Momentun


def test_a_misspelt_argument_gets_its_neighbour():
    with pytest.raises(TypeError, match=r"fc\(\) got an unexpected keyword "
                       "argument 'sise'; did you mean size"):
        fluid.layers.fc(input=None, sise=3)
    with pytest.raises(TypeError, match="did you mean learning_rate"):
        fluid.optimizer.SGD(learning_rat=0.1)


@pytest.mark.parametrize("name,wrong,right", [
    ("ParamAttr", "initialiser", "initializer"),
    ("WeightNormParamAttr", "initialiser", "initializer"),
    ("initializer.Normal", "scala", "scale"),
    ("regularizer.L2Decay", "regularisation_coeff", "regularization_coeff"),
    ("clip.GradientClipByNorm", "clipnorm", "clip_norm")])
def test_a_misspelt_argument_of_a_class_gets_its_neighbour(name, wrong,
                                                           right):
    with pytest.raises(TypeError, match=r"\(\) got an unexpected keyword "
                       "argument '%s'; did you mean %s" % (wrong, right)):
        find("fluid." + name)(**{wrong: 1})


def test_every_layer_has_a_docstring_and_a_home():
    for name in fluid.layers.__all__:
        layer = getattr(fluid.layers, name)
        assert layer.__doc__ and len(layer.__doc__) > 15, name
        assert layer.__module__.startswith("paddle.fluid."), name


def test_all_of_fluid_exists():
    for module in (fluid, fluid.layers, fluid.optimizer, fluid.initializer,
                   fluid.regularizer, fluid.clip, fluid.nets, fluid.backward,
                   fluid.evaluator, fluid.param_attr):
        for name in module.__all__:
            getattr(module, name)


@pytest.mark.parametrize("module,name,sentence", [
    ("io", "save_parms", "did you mean save_params"),
    ("nets", "simple_img_conv_poll", "did you mean simple_img_conv_pool"),
    ("initializer", "Xaviar", "did you mean Xavier"),
    ("clip", "GradientClipByNrom", "did you mean GradientClipByNorm")])
def test_plain_modules_say_what_was_meant(module, name, sentence):
    with pytest.raises(AttributeError, match=sentence):
        getattr(getattr(fluid, module), name)
