# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.evaluator: numbers beside the cost.

An evaluator is called on layers and from then on counts wherever they are
trained or tested. It fetches a few Fluid variables of each batch and adds
them up; `metrics` of events have its result under its name.
"""
import sys

import numpy as np

from .. import _absent, fluid
from . import config_base
from .data_type import DataType

_F = fluid.layers


class Evaluator:
    """What is counted: the variables to fetch, how a batch is added to a
    state, and the metrics of a state."""

    def __init__(self, name, inputs, fetches, start, add, metrics):
        self.name, self.inputs, self.fetches = name, inputs, fetches
        self.start, self.add, self.metrics = start, add, metrics


class Metrics:
    """The metrics of some evaluators over the batches that were added."""

    def __init__(self, evaluators):
        self._states = [(e, e.start()) for e in evaluators]

    def add(self, values):
        """What was fetched of a batch, in the order of the evaluators."""
        values = iter(values)
        for e, state in self._states:
            e.add(state, *(next(values) for _ in e.fetches))

    def metrics(self):
        return {k: v for e, state in self._states
                for k, v in e.metrics(e.name, state).items()}

    def __str__(self):
        return " ".join("%s=%g" % item for item in self.metrics().items())


def fetches(evaluators):
    return [v for e in evaluators for v in e.fetches]


def _ratio(part, whole):
    return float(part) / float(whole) if whole else 0.0


def _register(kind, name, inputs, variables, start, add, metrics):
    graph = config_base.graph
    name = name or graph.default_name(kind + "_evaluator")
    graph.evaluators = [e for e in graph.evaluators if e.name != name
                        or e.inputs != inputs]
    graph.evaluators.append(Evaluator(
        name, [x for x in inputs if x is not None], variables, start, add,
        metrics))


def _share(name, state):
    return {name: _ratio(*state)}


def _sum_up(state, *values):
    for i, value in enumerate(values):
        state[i] += float(np.sum(np.asarray(value)))


def _is_ids(label):
    return label.type is None or label.type.type == DataType.Index


def classification_error(input, label, weight=None, top_k=None,
                         threshold=None, name=None):
    """The share of rows whose label is not among the top_k largest; of one
    column, or with a dense label, whose side of threshold is wrong."""
    start = lambda: [0.0, 0.0]
    if input.size > 1 and _is_ids(label) and weight is None:
        with config_base.graph.building():
            right, rows = (_F.create_tensor("int32") for _ in range(2))
            _F.accuracy(input.rows, label.var, k=top_k or 1, correct=right,
                        total=rows)
        return _register("classification_error", name, [input, label],
                         [right, rows], start, _sum_up, lambda n, s: {
                             n: _ratio(s[1] - s[0], s[1])})

    def add(state, x, y, w=None):
        x, y = np.asarray(x), np.asarray(y)
        if input.size == 1 or not _is_ids(label):
            bar = 0.5 if threshold is None else threshold
            wrong = ((x > bar) != (y > 0.5)).any(axis=1)
        else:
            best = np.argsort(-x, axis=1)[:, :top_k or 1]
            wrong = ~(best == y.reshape(-1, 1)).any(axis=1)
        w = np.ones(len(x)) if w is None else np.asarray(w).ravel()
        state[0] += float(w[wrong].sum())
        state[1] += float(w.sum())

    _of_rows("classification_error", name, input, label, weight, start, add,
             _share)


def _of_rows(kind, name, input, label, weight, start, add, metrics, *more):
    """An evaluator computed here, from the rows of its layers."""
    inputs = [x for x in (input, label, weight, *more) if x is not None]
    with config_base.graph.building():
        variables = [x.var if x.type is not None
                     and x.type.type == DataType.Index else x.rows
                     for x in inputs]
    _register(kind, name, inputs, variables, start, add, metrics)


def auc(input, label, weight=None, name=None):
    """The area under the curve of the last column."""
    def add(state, x, y, w=None):
        x = np.asarray(x)[:, -1]
        pairs = np.stack([1 - x, x], axis=1)
        y = np.asarray(y).reshape(-1, 1)
        if w is not None:  # a weight counts as that many rows
            times = np.asarray(w).ravel().astype(int)
            pairs, y = np.repeat(pairs, times, 0), np.repeat(y, times, 0)
        state[0].update(pairs, y)

    _of_rows("auc", name, input, label, weight,
             lambda: [fluid.metrics.Auc()], add,
             lambda n, s: {n: float(s[0].eval())})


def pnpair(input, label, query_id, weight=None, name=None):
    """Pairs of one query in the right order over those in the wrong one."""
    def add(state, x, y, q, w=None):
        x, y, q = (np.asarray(v).ravel() for v in (x, y, q))
        w = np.ones(len(x)) if w is None else np.asarray(w).ravel()
        state[0].extend(zip(q, x, y, w))

    def metrics(name, state):
        right = wrong = 0.0
        rows = sorted(state[0], key=lambda r: r[0])
        for i, (q, x, y, w) in enumerate(rows):
            for p, u, v, z in rows[i + 1:]:
                if p != q:
                    break
                if y != v and x != u:
                    good = (x > u) == (y > v)
                    weight = (w + z) / 2
                    right, wrong = right + good * weight, \
                        wrong + (not good) * weight
        return {name: _ratio(right, wrong)}

    _of_rows("pnpair", name, input, label, query_id, lambda: [[]], add,
             metrics, weight)


def precision_recall(input, label, positive_label=None, weight=None,
                     name=None):
    """Precision and recall of positive_label, or means over all labels."""
    def add(state, x, y, w=None):
        x, y = np.asarray(x), np.asarray(y).ravel().astype(int)
        w = np.ones(len(x)) if w is None else np.asarray(w).ravel()
        guess = x.argmax(axis=1)
        hit, said, was = state
        np.add.at(hit, y[guess == y], w[guess == y])
        np.add.at(said, guess, w)
        np.add.at(was, y, w)

    def metrics(name, state):
        hit, said, was = state
        precision = [_ratio(*p) for p in zip(hit, said)]
        recall = [_ratio(*p) for p in zip(hit, was)]
        if positive_label is not None:
            p, r = precision[positive_label], recall[positive_label]
            return {name + ".precision": p, name + ".recal": r,
                    name + ".F1-score": _ratio(2 * p * r, p + r)}
        p, r = float(np.mean(precision)), float(np.mean(recall))
        return {name + ".macro-average-precision": p,
                name + ".macro-average-recall": r,
                name + ".macro-average-F1-score": _ratio(2 * p * r, p + r),
                name + ".micro-average-precision": _ratio(hit.sum(),
                                                          said.sum())}

    _of_rows("precision_recall", name, input, label, weight,
             lambda: [np.zeros(input.size) for _ in range(3)], add, metrics)


def sum(input, weight=None, name=None):
    """The sum of all elements over the number of rows."""
    _mean_of("sum", input, weight, name, lambda x: x.sum(axis=1))


def column_sum(input, weight=None, name=None):
    """The mean of the last column."""
    _mean_of("column_sum", input, weight, name, lambda x: x[:, -1])


def _mean_of(kind, input, weight, name, of):
    def add(state, x, w=None):
        x = np.asarray(x)
        w = np.ones(len(x)) if w is None else np.asarray(w).ravel()
        state[0] += float((of(x) * w).sum())
        state[1] += float(w.sum())

    _of_rows(kind, name, input, None, weight, lambda: [0.0, 0.0], add, _share)


# --- evaluators that write ---------------------------------------------------

def _printer(kind, name, input, label, text):
    def add(state, *values):
        sys.stderr.write("%s: %s\n" % (input.name, text(
            *(np.asarray(v) for v in values))))

    _of_rows(kind, name, input, label, None, lambda: None, add,
             lambda n, s: {})


def value_printer(input, name=None):
    """Writes the values of a layer, batch by batch, to stderr."""
    _printer("value_printer", name, input, None, str)


def maxid_printer(input, num_results=None, name=None):
    """Writes where the num_results largest of each row stand."""
    _printer("maxid_printer", name, input, None, lambda x: np.argsort(
        -x, axis=1)[:, :num_results or 1])


def classification_error_printer(input, label, threshold=0.5, name=None):
    """Writes for each row whether it is wrong."""
    def text(x, y):
        if x.shape[1] == 1:
            return ((x > threshold) != (y > 0.5)).astype(int).ravel()
        return (x.argmax(axis=1) != y.ravel()).astype(int)

    _printer("classification_error_printer", name, input, label, text)


__all__ = ["auc", "classification_error", "classification_error_printer",
           "column_sum", "maxid_printer", "pnpair", "precision_recall", "sum",
           "value_printer"]
_absent.answer_for(globals())
