"""fluid.unique_name: names that are used once, counted by key."""
import contextlib

from . import _fluid

__all__ = ["generate", "switch", "guard"]

UniqueNameGenerator = _fluid.NameGenerator


def generate(key):
    """key_0, then key_1 and so on."""
    return _fluid.generate_name(key)


def switch(new_generator=None):
    """Count with another generator, or anew; gives back what it was."""
    if new_generator is None:
        new_generator = UniqueNameGenerator()
    return _fluid.switch_names(new_generator)


@contextlib.contextmanager
def guard(new_generator=None):
    """Count with another generator, a prefix or anew within `with`."""
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    old = switch(new_generator)
    try:
        yield
    finally:
        switch(old)
