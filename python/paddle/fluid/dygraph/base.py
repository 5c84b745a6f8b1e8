"""What scripts import of dygraph before they know whether they use it."""

__all__ = ["enabled", "guard", "to_variable"]

_ABSENT = ("fluid.dygraph is not in this version: build a Program and run it "
           "with fluid.Executor")


def enabled():
    """No: there are only programs."""
    return False


def guard(place=None):
    """NotImplementedError: there are only programs."""
    raise NotImplementedError(_ABSENT)


def to_variable(value, block=None, name=None):
    """NotImplementedError: there are only programs."""
    raise NotImplementedError(_ABSENT)
