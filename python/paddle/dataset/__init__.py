"""paddle.dataset: public data sets as readers; each loads when it is used."""
import importlib

__all__ = ["cifar", "common", "conll05", "imdb", "imikolov", "mnist",
           "movielens", "uci_housing", "wmt14"]


def __getattr__(name):
    if name in __all__:
        return importlib.import_module("." + name, __name__)
    raise AttributeError("module 'paddle.dataset' has no attribute %r" % name)


def __dir__():
    return sorted(set(globals()) | set(__all__))
