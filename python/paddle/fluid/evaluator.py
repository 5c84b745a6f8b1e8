# SPDX-License-Identifier: Apache-2.0
"""fluid.evaluator: metrics that a program adds up over batches.

States are persistable variables of the main program, so each run adds to
them; reset() and eval() run small programs of their own over the same scope.
fluid.metrics does the same with fetched arrays.
"""
import numpy as np

from .. import _absent
from . import layers, unique_name
from .framework import Program, program_guard

__all__ = ["ChunkEvaluator", "EditDistance"]


def _same_var(block, var):
    """The variable under its name in a program of ours."""
    return block.create_var(name=var.name, shape=var.shape, dtype=var.dtype,
                            type=var.type, lod_level=var.lod_level,
                            persistable=True)


class Evaluator:
    """States, and the variables that one batch can be judged by (metrics)."""

    def __init__(self, name, **kwargs):
        self._name = kwargs.get("name") or unique_name.generate(name)
        self.states, self.metrics = [], []

    def _create_state(self, suffix, dtype, shape):
        state = layers.create_global_var(
            shape, 0, dtype, persistable=True,
            name=unique_name.generate("%s_%s" % (self._name, suffix)))
        state.stop_gradient = True
        self.states.append(state)
        return state

    def _count(self, suffix, batch):
        """A state to which each batch is added."""
        state = self._create_state(suffix, "int64", [1])
        batch = layers.cast(x=batch, dtype="int64")
        layers.sums(input=[state, batch], out=state)
        return state

    def _read(self, executor, eval_program, states):
        """Values of states as numbers."""
        program = Program() if eval_program is None else eval_program
        block = program.current_block()
        names = [_same_var(block, s) for s in states]
        return [np.asarray(v).item() for v in executor.run(
            program, fetch_list=names)]

    def reset(self, executor, reset_program=None):
        """Set all states to zero."""
        program = Program() if reset_program is None else reset_program
        with program_guard(main_program=program):
            for state in self.states:
                layers.fill_constant(
                    out=_same_var(program.current_block(), state),
                    shape=state.shape, value=0.0, dtype=state.dtype)
        executor.run(program)

    def eval(self, executor, eval_program=None):
        raise NotImplementedError("%s must define eval" % type(self).__name__)


def _array(*values):
    return np.array(values, dtype="float32")


def _ratio(a, b):
    return a / b if b else 0.0


class Accuracy(Evaluator):
    """The share of rows whose label is among their k largest elements."""

    def __init__(self, input, label, k=1, **kwargs):
        super().__init__("accuracy", **kwargs)
        total = layers.create_tensor(dtype="int32")
        correct = layers.create_tensor(dtype="int32")
        batch = layers.accuracy(input=input, label=label, k=k, total=total,
                                correct=correct)
        self.total = self._count("total", total)
        self.correct = self._count("correct", correct)
        self.metrics.append(batch)

    def eval(self, executor, eval_program=None):
        """Over all batches since reset: an array of one."""
        correct, total = self._read(executor, eval_program,
                                    [self.correct, self.total])
        return _array(_ratio(correct, total))


class ChunkEvaluator(Evaluator):
    """Precision, recall and F1 of chunks such as names in a sentence.

    Args:
        input (Variable): the predicted tags.
        label (Variable): the true tags.
        chunk_scheme (str): how chunks are tagged, as 'IOB'.
        num_chunk_types (int): the number of chunk types.
        excluded_chunk_types (list of int): types that do not count.
    """

    def __init__(self, input, label, chunk_scheme, num_chunk_types,
                 excluded_chunk_types=None):
        super().__init__("chunk_eval")
        precision, recall, f1, inferred, labelled, correct = \
            layers.chunk_eval(input=input, label=label,
                              chunk_scheme=chunk_scheme,
                              num_chunk_types=num_chunk_types,
                              excluded_chunk_types=excluded_chunk_types)
        self.num_infer_chunks = self._count("num_infer_chunks", inferred)
        self.num_label_chunks = self._count("num_label_chunks", labelled)
        self.num_correct_chunks = self._count("num_correct_chunks", correct)
        self.metrics += [precision, recall, f1]

    def eval(self, executor, eval_program=None):
        """precision, recall, F1 over all batches since reset."""
        inferred, labelled, correct = self._read(
            executor, eval_program, [self.num_infer_chunks,
                                     self.num_label_chunks,
                                     self.num_correct_chunks])
        precision = _ratio(correct, inferred)
        recall = _ratio(correct, labelled)
        f1 = _ratio(2 * precision * recall, precision + recall)
        return _array(precision), _array(recall), _array(f1)


class EditDistance(Evaluator):
    """How many edits turn one sequence into the other, on average.

    Args:
        input (Variable): the predicted sequences.
        label (Variable): the true sequences.
        ignored_tokens (list of int): tokens that are removed first.
    """

    def __init__(self, input, label, ignored_tokens=None, **kwargs):
        super().__init__("edit_distance", **kwargs)
        distances, count = layers.edit_distance(
            input=input, label=label, ignored_tokens=ignored_tokens)
        zero = layers.fill_constant(shape=[1], value=0.0, dtype="float32")
        wrong = layers.cast(x=layers.not_equal(x=distances, y=zero),
                            dtype="float32")
        total = layers.reduce_sum(distances)
        self.total_distance = self._create_state("total_distance", "float32",
                                                 [1])
        layers.sums(input=[self.total_distance, total],
                    out=self.total_distance)
        self.seq_num = self._count("seq_num", count)
        self.instance_error = self._count("instance_error",
                                          layers.reduce_sum(wrong))
        self.metrics += [total, self.instance_error]

    def eval(self, executor, eval_program=None):
        """The mean distance, and the share of sequences with an error."""
        total, count, wrong = self._read(
            executor, eval_program,
            [self.total_distance, self.seq_num, self.instance_error])
        return _array(_ratio(total, count)), _array(_ratio(wrong, count))


_absent.answer_for(globals())
