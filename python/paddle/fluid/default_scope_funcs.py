# SPDX-License-Identifier: Apache-2.0
"""fluid.default_scope_funcs: a stack of scopes for each thread."""
import threading

from . import core

__all__ = ["get_cur_scope", "enter_local_scope", "leave_local_scope", "var",
           "find_var", "scoped_function"]

_tls = threading.local()


def get_cur_scope():
    """The innermost scope of this thread.

    Returns:
        A Scope.
    """
    if not hasattr(_tls, "stack"):
        _tls.stack = [core.Scope()]
    return _tls.stack[-1]


def enter_local_scope():
    """Make a new scope in the current one, and make it the current one."""
    child = get_cur_scope().new_scope()
    _tls.stack.append(child)


def leave_local_scope():
    """Return to the outer scope, and drop its inner scopes."""
    get_cur_scope()
    if len(_tls.stack) == 1:
        raise RuntimeError("leave_local_scope: no scope was entered")
    _tls.stack.pop()
    get_cur_scope().drop_kids()


def var(name):
    """The variable of the current scope; made if new.

    Args:
        name (str): the variable.

    Returns:
        What the scope holds under that name.
    """
    return get_cur_scope().var(name)


def find_var(name):
    """The variable of the current scope or the outer ones, or None.

    Args:
        name (str): the variable.

    Returns:
        What a scope holds under that name, or None.
    """
    return get_cur_scope().find_var(name)


def scoped_function(func):
    """Call func within a scope of its own.

    Args:
        func (callable): is called without arguments.
    """
    enter_local_scope()
    try:
        func()
    finally:
        leave_local_scope()
