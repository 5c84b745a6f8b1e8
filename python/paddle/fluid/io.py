# SPDX-License-Identifier: Apache-2.0
"""fluid.io: save and load variables and inference models.

Which variables are meant is decided here; files are read and written in C, in
the original's layout.
"""
import os
import warnings

from .. import _absent
from . import _fluid, core
from .executor import _fetch_var, global_scope
from .framework import _check_program, default_main_program
from .reader import PyReader  # noqa: F401

__all__ = ["save_vars", "save_params", "save_persistables", "load_vars",
           "load_params", "load_persistables", "save_inference_model",
           "load_inference_model", "PyReader"]

_VarType = core.VarDesc.VarType


def is_parameter(var):
    """Whether the variable is a parameter."""
    return var.is_parameter


def is_persistable(var):
    """Whether the variable keeps its value between runs."""
    return var.persistable and var.type not in (
        _VarType.FEED_MINIBATCH, _VarType.FETCH_LIST, _VarType.READER)


def _program(main_program):
    if main_program is None:
        main_program = default_main_program()
    main_program = getattr(main_program, "_program", main_program)
    return _check_program(main_program, "main_program")


def _move(action, dirname, main_program, vars, predicate, filename):
    """Save or load `vars`, or those of the program that `predicate` picks."""
    if not isinstance(dirname, (str, os.PathLike)):
        raise TypeError("%s: dirname is %r, expected the path of a folder"
                        % (action.__name__, dirname))
    program = _program(main_program)
    if vars is None:
        vars = filter(predicate, program.list_vars())
    else:
        vars = [program.global_block().var(v) if isinstance(v, str) else v
                for v in vars]
        if vars and main_program is None:
            program = vars[0].block.program
    names = [v.name for v in vars if v.type != _VarType.RAW]
    if filename is not None:  # it may be a path
        dirname, filename = os.path.split(os.path.join(dirname, filename))
    action(program, global_scope(), os.fspath(dirname), filename,
           sorted(set(names)))


def save_vars(executor, dirname, main_program=None, vars=None, predicate=None,
              filename=None):
    """Save variables.

    Args:
        executor (Executor): accepted; the library reads and writes by itself.
        dirname (str): the folder of the files.
        main_program (Program): the program; None: the default main program.
        vars (list): variables or names; None: those that predicate picks.
        predicate (callable): is called with each variable of the program and
            says whether it is meant.
        filename (str): one file for all; None: a file for each variable, of
            its name.
    """
    _move(_fluid.save_vars, dirname, main_program, vars, predicate, filename)


def save_params(executor, dirname, main_program=None, filename=None):
    """Save every parameter of a program.

    Args:
        executor (Executor): accepted; the library reads and writes by itself.
        dirname (str): the folder of the files.
        main_program (Program): the program; None: the default main program.
        filename (str): one file for all; None: a file for each variable, of
            its name.
    """
    save_vars(executor, dirname, main_program, None, is_parameter, filename)


def save_persistables(executor, dirname, main_program=None, filename=None):
    """Save every variable that keeps its value between runs: parameters,
    accumulators and learning rates.

    Args:
        executor (Executor): accepted; the library reads and writes by itself.
        dirname (str): the folder of the files.
        main_program (Program): the program; None: the default main program.
        filename (str): one file for all; None: a file for each variable, of
            its name.
    """
    save_vars(executor, dirname, main_program, None, is_persistable, filename)


def load_vars(executor, dirname, main_program=None, vars=None, predicate=None,
              filename=None):
    """Load variables that save_vars saved.

    Args:
        executor (Executor): accepted; the library reads and writes by itself.
        dirname (str): the folder of the files.
        main_program (Program): the program; None: the default main program.
        vars (list): variables or names; None: those that predicate picks.
        predicate (callable): is called with each variable of the program and
            says whether it is meant.
        filename (str): one file for all; None: a file for each variable, of
            its name.
    """
    _move(_fluid.load_vars, dirname, main_program, vars, predicate, filename)


def load_params(executor, dirname, main_program=None, filename=None):
    """Load what save_params saved.

    Args:
        executor (Executor): accepted; the library reads and writes by itself.
        dirname (str): the folder of the files.
        main_program (Program): the program; None: the default main program.
        filename (str): one file for all; None: a file for each variable, of
            its name.
    """
    load_vars(executor, dirname, main_program, None, is_parameter, filename)


def load_persistables(executor, dirname, main_program=None, filename=None):
    """Load what save_persistables saved.

    Args:
        executor (Executor): accepted; the library reads and writes by itself.
        dirname (str): the folder of the files.
        main_program (Program): the program; None: the default main program.
        filename (str): one file for all; None: a file for each variable, of
            its name.
    """
    load_vars(executor, dirname, main_program, None, is_persistable, filename)


def _name_list(names, what):
    names = [names] if isinstance(names, str) else list(names or ())
    if not all(isinstance(n, str) for n in names):
        raise ValueError("%s should be a list of str." % what)
    return names


def _target_list(targets):
    if isinstance(targets, _fluid.Variable):
        targets = [targets]
    if not all(isinstance(t, _fluid.Variable) for t in targets or ()):
        raise ValueError("'target_vars' should be a list of Variable.")
    return [t.name for t in targets or ()]


def _base(filename):
    return None if filename is None else os.path.basename(filename)


def save_inference_model(dirname, feeded_var_names, target_vars, executor,
                         main_program=None, model_filename=None,
                         params_filename=None, export_for_deployment=True,
                         program_only=False):
    """Save what computes target_vars from feeded_var_names, and its
    parameters; the names under which the targets are fetched come back.

    With export_for_deployment=False the whole program is written instead,
    under the same name with .main_program behind it; it needs no feeds and no
    targets.

    Args:
        dirname (str): the folder of the files.
        feeded_var_names (list of str): what the model is fed.
        target_vars (list of Variable): what the model computes.
        executor (Executor): accepted; the library reads and writes by itself.
        main_program (Program): the program; None: the default main program.
        model_filename (str): the file of the program; None: __model__.
        params_filename (str): one file for all parameters; None: one file
            each.
        export_for_deployment (bool): save only what computes the targets.
        program_only (bool): save no parameters.

    Returns:
        A list of names under which the targets are fetched.
    """
    feeds = _name_list(feeded_var_names, "'feeded_var_names'")
    targets = _target_list(target_vars)
    if export_for_deployment and not targets:
        raise ValueError("'target_vars' should be a list of Variable.")
    if program_only:
        warnings.warn("program_only specified, Only the program definition "
                      "is saved, not the parameters.")
    _fluid.save_inference_model(
        _program(main_program), global_scope(), dirname, feeds, targets,
        _base(model_filename), _base(params_filename), program_only,
        whole=not export_for_deployment)
    return ["save_infer_model/scale_%d" % i for i in range(len(targets))]


def load_inference_model(dirname, executor, model_filename=None,
                         params_filename=None, pserver_endpoints=None):
    """Load a model that save_inference_model saved, with its parameters into
    the global scope.

    Args:
        dirname (str): the folder of the files.
        executor (Executor): accepted; the library reads and writes by itself.
        model_filename (str): the file of the program; None: __model__.
        params_filename (str): one file for all parameters; None: one file
            each.
        pserver_endpoints (list of str): not supported.

    Returns:
        A list: the program, the names of what it is fed, the variables to
        fetch.
    """
    if not os.path.isdir(dirname):
        raise ValueError("There is no directory named '%s'" % dirname)
    if pserver_endpoints:
        raise NotImplementedError("load_inference_model: this version takes "
                                  "no pserver_endpoints")
    program, feeds, fetches = _fluid.load_inference_model(
        global_scope(), dirname, _base(model_filename),
        _base(params_filename))
    block = program.global_block()
    return [program, feeds, [block.var(name) for name in fetches]]


def get_inference_program(target_vars, main_program=None):
    """What computes variables, as a program for tests. Fluid 1.x has
    Program.clone(for_test=True) for it.

    Args:
        target_vars (list): variables, or evaluators of fluid.evaluator, which
            stand for their states and metrics.
        main_program (Program): the program; None: the default main program.

    Returns:
        A Program.
    """
    targets = []
    for target in (target_vars if isinstance(target_vars, (list, tuple))
                   else [target_vars]):
        if isinstance(target, _fluid.Variable):
            targets.append(target)
        elif hasattr(target, "states") and hasattr(target, "metrics"):
            targets += target.states + target.metrics
        else:
            raise TypeError("target_vars has variables and evaluators, not %s"
                            % type(target).__name__)
    pruned = _program(main_program)._prune(targets)
    return pruned._inference_optimize()


def get_parameter_value(para, executor):
    """The value of a parameter, an array."""
    assert is_parameter(para), "%s is not a parameter" % para.name
    return _fetch_var(para.name)


def get_parameter_value_by_name(name, executor, program=None):
    """The value of the parameter of that name, an array."""
    return get_parameter_value(_program(program).global_block().var(name),
                               executor)


_absent.answer_for(globals())
