# SPDX-License-Identifier: Apache-2.0
"""fluid.metrics and fluid.average, against figures worked out by hand."""
import numpy as np
import pytest

from paddle.fluid import average, metrics

PREDS = np.array([[0.1], [0.7], [0.8], [0.9], [0.2], [0.2], [0.3], [0.5],
                  [0.8], [0.6]])
LABELS = np.array([[0], [1], [1], [1], [1], [0], [0], [0], [0], [0]])


def test_precision_counts_over_batches():
    m = metrics.Precision()
    m.update(PREDS[:5], LABELS[:5])
    assert m.eval() == 1.0
    m.update(PREDS[5:], LABELS[5:])  # 0.5 rounds to even, 0
    assert (m.tp, m.fp) == (3, 2)
    assert m.eval() == 3 / 5


def test_recall_counts_over_batches():
    m = metrics.Recall("r")
    m.update(PREDS, LABELS)
    assert (m.tp, m.fn, str(m)) == (3, 1, "r")
    assert m.eval() == 3 / 4


@pytest.mark.parametrize("kind", ["Precision", "Recall"])
def test_binary_metrics_without_data_are_zero(kind):
    m = getattr(metrics, kind)()
    assert m.eval() == 0.0
    with pytest.raises(ValueError, match="%s: preds must be a numpy array, "
                       "not list" % kind):
        m.update([1], np.array([1]))
    with pytest.raises(ValueError, match="2 preds but 1 labels"):
        m.update(np.ones(2), np.ones(1))


def test_accuracy_weighs_batches():
    m = metrics.Accuracy()
    m.update(value=np.array([0.5], np.float32), weight=10)
    m.update(value=0.25, weight=np.array([30]))
    assert m.eval() == (0.5 * 10 + 0.25 * 30) / 40


def test_accuracy_says_what_is_wrong():
    m = metrics.Accuracy("acc")
    with pytest.raises(ValueError, match="acc: there is no data"):
        m.eval()
    with pytest.raises(ValueError, match="weight is -1"):
        m.update(0.5, -1)
    with pytest.raises(ValueError, match="value must be a number"):
        m.update("0.5", 1)
    with pytest.raises(ValueError, match="value must be a number"):
        m.update(np.ones(2), 1)


def test_reset_starts_again_even_after_nan():
    m = metrics.Accuracy()
    m.update(float("nan"), 1)
    m.reset()
    assert (m.value, m.weight) == (0.0, 0.0)
    m.update(1.0, 2)
    assert m.eval() == 1.0


def test_config_is_a_copy():
    m = metrics.Precision("p")
    config = m.get_config()
    m.update(PREDS, LABELS)
    assert config == {"name": "p", "states": {"tp": 0, "fp": 0}}


def test_chunk_evaluator_gives_three_figures():
    m = metrics.ChunkEvaluator()
    assert m.eval() == (0.0, 0.0, 0.0)
    m.update(np.array([10]), np.array([9]), np.array([8]))
    m.update(3, 3, 0)
    precision, recall, f1 = m.eval()
    assert (precision, recall) == (8 / 13, 8 / 12)
    assert f1 == pytest.approx(2 * 8 / (13 + 12))


def test_edit_distance_averages():
    m = metrics.EditDistance("d")
    m.update(np.array([[1.0], [0.0], [2.0]]), np.array([3]))
    m.update(np.array([[0.0]]), 1)
    assert m.eval() == (3 / 4, 2 / 4)
    m.reset()
    with pytest.raises(ValueError, match="d: there is no data"):
        m.eval()


def scores(positive):
    p = np.array(positive)
    return np.stack([1 - p, p], axis=1)


def test_auc_of_a_small_ranking():
    # Pairs (pos, neg) in right order: of 0.9 three, of 0.4 one and a half.
    m = metrics.Auc()
    m.update(scores([0.9, 0.5, 0.4]), np.array([[1], [0], [1]]))
    m.update(scores([0.4, 0.1]), np.array([[0], [0]]))
    assert m.eval() == pytest.approx((3 + 1.5) / 6)
    m.reset()
    assert m.eval() == 0.0


def test_auc_equals_counting_pairs():
    rng = np.random.RandomState(0)
    p = rng.randint(0, 101, 400) / 100
    y = rng.rand(400) < p
    m = metrics.Auc(num_thresholds=200)
    assert m._stat_pos is m.stat_pos and m._stat_neg.shape == (201,)
    m.update(scores(p), y.astype(np.int64)[:, None])
    buckets = (p * 200).astype(int)
    diff = np.sign(buckets[y][:, None] - buckets[~y][None, :])
    assert m.eval() == pytest.approx((diff.mean() + 1) / 2)


def test_auc_of_one_class_is_zero():
    m = metrics.Auc("auc")
    m.update(scores([0.0, 1.0]), np.array([1, 1]))
    assert m.eval() == 0.0


def test_auc_says_what_is_wrong():
    with pytest.raises(ValueError, match="curve is 'PR'"):
        metrics.Auc("auc", curve="PR")
    m = metrics.Auc("auc")
    with pytest.raises(ValueError, match=r"auc: preds are \[3, 1\]"):
        m.update(np.ones((3, 1)), np.ones(3))
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        m.update(scores([1.5]), np.ones(1))


def test_composite_asks_all():
    m = metrics.CompositeMetric()
    m.add_metric(metrics.Precision())
    m.add_metric(metrics.Recall())
    m.update(PREDS, LABELS)
    assert m.eval() == [3 / 5, 3 / 4]
    m.reset()
    assert m.eval() == [0.0, 0.0]
    with pytest.raises(ValueError, match="must be a MetricBase, not int"):
        m.add_metric(3)


def test_a_metric_of_the_users_own():
    class Count(metrics.MetricBase):
        def __init__(self):
            super().__init__()
            self.seen, self.words = np.zeros(2), ["a"]

    m = Count()
    m.seen += 3
    m.reset()
    assert m.seen.tolist() == [0, 0] and m.words is None
    assert str(m) == "Count"
    with pytest.raises(NotImplementedError, match="Count: update"):
        m.update(None, None)
    with pytest.raises(NotImplementedError, match="Count: eval"):
        m.eval()


def test_weighted_average():
    a = average.WeightedAverage()
    a.add(value=2.0, weight=1)
    a.add(value=4.0, weight=np.array([3]))
    assert a.eval() == 3.5
    a.reset()
    a.add(np.array([1.0, 2.0]), 2)
    a.add(np.array([3.0, 6.0]), 2)
    assert a.eval().tolist() == [2.0, 4.0]


def test_weighted_average_says_what_is_wrong():
    a = average.WeightedAverage()
    with pytest.raises(ValueError, match="nothing with a weight"):
        a.eval()
    a.add(1.0, 0)
    with pytest.raises(ValueError, match="nothing with a weight"):
        a.eval()
    with pytest.raises(ValueError, match="value must be a number or an array,"
                       " not list"):
        a.add([1], 1)
    with pytest.raises(ValueError, match="weight must be a number, not str"):
        a.add(1, "1")
