# SPDX-License-Identifier: Apache-2.0
"""fluid.metrics: figures over many batches, from fetched arrays.

Each metric is fed by update() after a batch and read by eval(); reset()
starts it again, for instance in the next pass.
"""
import copy
import numbers

import numpy as np

from paddle import _absent

__all__ = ["MetricBase", "CompositeMetric", "Precision", "Recall", "Accuracy",
           "ChunkEvaluator", "EditDistance", "Auc"]


class MetricBase:
    """What all metrics share. State is what has no underscore before it.

    Args:
        name (str): what is printed; None: the name of the class.
    """

    def __init__(self, name=None):
        self._name = str(name) if name is not None else type(self).__name__

    def __str__(self):
        return self._name

    def _state(self):
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}

    def reset(self):
        """Numbers and arrays become zero again, all other state None."""
        for name, value in self._state().items():
            zero = None
            if isinstance(value, np.ndarray):
                zero = np.zeros_like(value)
            elif isinstance(value, numbers.Number):
                zero = type(value)(0)
            setattr(self, name, zero)

    def get_config(self):
        """A copy of name and state."""
        return {"name": self._name, "states": copy.deepcopy(self._state())}

    def update(self, preds, labels):
        raise NotImplementedError("%s: update is not defined" % self)

    def eval(self):
        raise NotImplementedError("%s: eval is not defined" % self)


def _array(metric, what, value):
    if not isinstance(value, (np.ndarray, np.generic)):
        raise ValueError("%s: %s must be a numpy array, not %s"
                         % (metric, what, type(value).__name__))
    return np.asarray(value)


def _number(metric, what, value):
    """A number, or an array of one, as a Python number."""
    if isinstance(value, (np.ndarray, np.generic)) and np.size(value) == 1:
        return value.item()
    if not isinstance(value, numbers.Number):
        raise ValueError("%s: %s must be a number or an array of one, not %s"
                         % (metric, what, type(value).__name__))
    return value


def _ratio(part, whole):
    return float(part) / whole if whole else 0.0


class CompositeMetric(MetricBase):
    """Several metrics fed with the same predictions and labels.

    Args:
        name (str): what is printed; None: the name of the class.
    """

    def __init__(self, name=None):
        super().__init__(name)
        self._metrics = []

    def add_metric(self, metric):
        if not isinstance(metric, MetricBase):
            raise ValueError("%s: metric must be a MetricBase, not %s"
                             % (self, type(metric).__name__))
        self._metrics.append(metric)

    def reset(self):
        for metric in self._metrics:
            metric.reset()

    def update(self, preds, labels):
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self):
        """A list of the values, in the order of add_metric."""
        return [metric.eval() for metric in self._metrics]


class _Binary(MetricBase):
    """Counts of predictions, rounded to 0 or 1, against labels."""

    def _pairs(self, preds, labels):
        preds = np.rint(_array(self, "preds", preds)).astype(int).ravel()
        labels = _array(self, "labels", labels).astype(int).ravel()
        if preds.size != labels.size:
            raise ValueError("%s: %d preds but %d labels"
                             % (self, preds.size, labels.size))
        return preds, labels


class Precision(_Binary):
    """Of what was predicted to be 1, how much is.

    Args:
        name (str): what is printed; None: the name of the class.
    """

    def __init__(self, name=None):
        super().__init__(name)
        self.tp = 0  # true positives
        self.fp = 0  # false positives

    def update(self, preds, labels):
        preds, labels = self._pairs(preds, labels)
        self.tp += int(np.sum((preds == 1) & (labels == 1)))
        self.fp += int(np.sum((preds == 1) & (labels != 1)))

    def eval(self):
        return _ratio(self.tp, self.tp + self.fp)


class Recall(_Binary):
    """Of what is 1, how much was predicted to be.

    Args:
        name (str): what is printed; None: the name of the class.
    """

    def __init__(self, name=None):
        super().__init__(name)
        self.tp = 0  # true positives
        self.fn = 0  # false negatives

    def update(self, preds, labels):
        preds, labels = self._pairs(preds, labels)
        self.tp += int(np.sum((preds == 1) & (labels == 1)))
        self.fn += int(np.sum((preds != 1) & (labels == 1)))

    def eval(self):
        return _ratio(self.tp, self.tp + self.fn)


class Accuracy(MetricBase):
    """The mean of batch accuracies, weighted by the sizes of batches.

    Args:
        name (str): what is printed; None: the name of the class.
    """

    def __init__(self, name=None):
        super().__init__(name)
        self.value = 0.0
        self.weight = 0.0

    def update(self, value, weight):
        value = _number(self, "value", value)
        weight = _number(self, "weight", weight)
        if weight < 0:
            raise ValueError("%s: weight is %g, may not be negative"
                             % (self, weight))
        self.value += value * weight
        self.weight += weight

    def eval(self):
        if self.weight == 0:
            raise ValueError("%s: there is no data; call update with layers."
                             "accuracy's result before eval" % self)
        return self.value / self.weight


class ChunkEvaluator(MetricBase):
    """Precision, recall and F1 of chunks, from layers.chunk_eval's counts.

    Args:
        name (str): what is printed; None: the name of the class.
    """

    def __init__(self, name=None):
        super().__init__(name)
        self.num_infer_chunks = 0
        self.num_label_chunks = 0
        self.num_correct_chunks = 0

    def update(self, num_infer_chunks, num_label_chunks, num_correct_chunks):
        self.num_infer_chunks += _number(self, "num_infer_chunks",
                                         num_infer_chunks)
        self.num_label_chunks += _number(self, "num_label_chunks",
                                         num_label_chunks)
        self.num_correct_chunks += _number(self, "num_correct_chunks",
                                           num_correct_chunks)

    def eval(self):
        """(precision, recall, F1)"""
        precision = _ratio(self.num_correct_chunks, self.num_infer_chunks)
        recall = _ratio(self.num_correct_chunks, self.num_label_chunks)
        f1 = _ratio(2 * precision * recall, precision + recall)
        return precision, recall, f1


class EditDistance(MetricBase):
    """The mean distance between sequences, from layers.edit_distance.

    Args:
        name (str): what is printed; None: the name of the class.
    """

    def __init__(self, name=None):
        super().__init__(name)
        self.total_distance = 0.0
        self.seq_num = 0
        self.instance_error = 0

    def update(self, distances, seq_num):
        distances = _array(self, "distances", distances)
        seq_num = _number(self, "seq_num", seq_num)
        self.total_distance += float(distances.sum())
        self.seq_num += seq_num
        self.instance_error += seq_num - int(np.sum(distances == 0))

    def eval(self):
        """(mean distance, share of sequences that are not right)"""
        if self.seq_num == 0:
            raise ValueError("%s: there is no data; call update with layers."
                             "edit_distance's result before eval" % self)
        return (self.total_distance / self.seq_num,
                self.instance_error / self.seq_num)


class Auc(MetricBase):
    """The area under the curve, from scores counted in buckets.

    A score s of the positive class falls into bucket int(s * thresholds), as
    in the auc operator: both give the same figure.

    Args:
        name (str): what is printed; None: the name of the class.
        curve (str): only 'ROC' is known.
        num_thresholds (int): the number of buckets of scores.
    """

    def __init__(self, name=None, curve="ROC", num_thresholds=4095):
        super().__init__(name)
        if curve != "ROC":
            raise ValueError("%s: curve is %r, only \"ROC\" is known"
                             % (self, curve))
        self._num_thresholds = num_thresholds
        self.stat_pos = np.zeros(num_thresholds + 1, np.int64)
        self.stat_neg = np.zeros(num_thresholds + 1, np.int64)

    # Fluid's names of the counts in each bucket.
    _stat_pos = property(lambda self: self.stat_pos)
    _stat_neg = property(lambda self: self.stat_neg)

    def update(self, preds, labels):
        """`preds` is [n, 2]: what speaks against and for each sample."""
        preds = _array(self, "preds", preds)
        labels = _array(self, "labels", labels).ravel().astype(bool)
        if preds.ndim != 2 or preds.shape[1] != 2 \
                or len(preds) != labels.size:
            raise ValueError("%s: preds are %s, labels %d; they must be "
                             "[n, 2] and n"
                             % (self, list(preds.shape), labels.size))
        buckets = (preds[:, 1] * self._num_thresholds).astype(int)
        if buckets.size and not (
                0 <= buckets.min() <= buckets.max() <= self._num_thresholds):
            raise ValueError("%s: preds must be in [0, 1]" % self)
        n = self._num_thresholds + 1
        self.stat_pos += np.bincount(buckets[labels], minlength=n)
        self.stat_neg += np.bincount(buckets[~labels], minlength=n)

    def eval(self):
        pos = np.cumsum(self.stat_pos[::-1])  # from the highest score down
        neg = np.cumsum(self.stat_neg[::-1])
        if not pos[-1] or not neg[-1]:
            return 0.0
        higher = np.concatenate([[0], pos[:-1]])
        area = np.sum(self.stat_neg[::-1] * (pos + higher) / 2.0)
        return float(area / pos[-1] / neg[-1])


_absent.answer_for(globals())
