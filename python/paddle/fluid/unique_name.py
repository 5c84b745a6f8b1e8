# SPDX-License-Identifier: Apache-2.0
"""fluid.unique_name: names that are used once, counted by key."""
import contextlib

from . import _fluid

__all__ = ["generate", "switch", "guard"]

UniqueNameGenerator = _fluid.NameGenerator


def generate(key):
    """Make a name that was not made before: key_0, then key_1 and so on.

    Args:
        key (str): the beginning of the name.

    Returns:
        A str.
    """
    return _fluid.generate_name(key)


def switch(new_generator=None):
    """Count with another generator from now on.

    Args:
        new_generator (UniqueNameGenerator): the generator; None: a new one.

    Returns:
        The generator that was in use.
    """
    if new_generator is None:
        new_generator = UniqueNameGenerator()
    return _fluid.switch_names(new_generator)


@contextlib.contextmanager
def guard(new_generator=None):
    """A `with` block that counts with another generator.

    Args:
        new_generator (UniqueNameGenerator or str): the generator, or a prefix
            for a new one; None: a new one.

    Returns:
        A context manager.
    """
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    old = switch(new_generator)
    try:
        yield
    finally:
        switch(old)
