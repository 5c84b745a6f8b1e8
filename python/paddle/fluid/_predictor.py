# SPDX-License-Identifier: Apache-2.0
"""Inference over a saved model, under the names of the original's predictor.

    config = core.AnalysisConfig("model_dir")
    predictor = core.create_paddle_predictor(config)
    outputs = predictor.run([core.PaddleTensor(array)])
"""
import enum
import os

import numpy as np

from . import core, io
from .executor import Executor, scope_guard


class PaddleDType(enum.IntEnum):
    """Element types of PaddleTensors."""
    FLOAT32 = 0
    INT64 = 1
    INT32 = 2


_DTYPES = {PaddleDType.FLOAT32: np.float32, PaddleDType.INT64: np.int64,
           PaddleDType.INT32: np.int32}


class PaddleTensor:
    """An array with a name and sequence offsets.

    Args:
        data (array): its values; None: it is filled later.
        name (str): the variable that it is fed to; "": by its place.
    """

    def __init__(self, data=None, name=""):
        self.name, self.lod = name, []
        self.data = None if data is None else np.asarray(data)

    @property
    def shape(self):
        return list(self.data.shape)

    @property
    def dtype(self):
        return {np.dtype(v): k for k, v in _DTYPES.items()}[self.data.dtype]

    def as_ndarray(self):
        """Its values as an array."""
        return self.data

    def _tensor(self):
        tensor = core.LoDTensor()
        tensor.set(self.data)
        if self.lod:
            tensor.set_lod(self.lod)
        return tensor


class AnalysisConfig:
    """Where a model is, and settings of the original that nothing here needs.

    Args:
        model_dir (str): a folder that save_inference_model wrote; with
            params_file, the file of the program instead.
        params_file (str): the file of all parameters together.
    """
    _NEUTRAL = (
        "disable_gpu", "switch_ir_optim", "switch_use_feed_fetch_ops",
        "switch_specify_input_names", "enable_memory_optim", "enable_mkldnn",
        "set_cpu_math_library_num_threads", "switch_ir_debug",
        "disable_glog_info", "enable_profile")

    def __init__(self, model_dir=None, params_file=None):
        self.set_model(model_dir, params_file)

    def set_model(self, model_dir, params_file=None):
        """Another model, as the arguments of AnalysisConfig say."""
        self._model, self._params = model_dir, params_file

    def model_dir(self):
        return self._model

    def use_gpu(self):
        return False

    def enable_use_gpu(self, memory_pool_init_size_mb=100, device_id=0):
        """RuntimeError: there are no GPU kernels."""
        raise core.no_gpu("AnalysisConfig.enable_use_gpu")

    def _load(self, executor):
        if self._model is None:
            raise ValueError("AnalysisConfig: no model is set; call "
                             "set_model(model_dir)")
        if self._params is None:
            return io.load_inference_model(self._model, executor)
        folder, program = os.path.split(self._model)
        return io.load_inference_model(
            folder or ".", executor, program, os.path.basename(self._params))


def _neutral(name):
    def setting(self, *args, **kwargs):
        """Accepted; the library needs no such setting."""
    setting.__name__ = name
    return setting


for _name in AnalysisConfig._NEUTRAL:
    setattr(AnalysisConfig, _name, _neutral(_name))


class _Predictor:
    """A loaded model with a scope of its own."""

    def __init__(self, config):
        self._scope, self._exe = core.Scope(), Executor(core.CPUPlace())
        with scope_guard(self._scope):
            self._program, self._feeds, self._fetches = config._load(
                self._exe)

    def get_input_names(self):
        return list(self._feeds)

    def get_output_names(self):
        return [v.name for v in self._fetches]

    def run(self, inputs):
        """Compute the outputs of the model.

        Args:
            inputs (list of PaddleTensor): by name, or in the model's order.

        Returns:
            A list of PaddleTensor.
        """
        if len(inputs) != len(self._feeds):
            raise ValueError("the model is fed %s, but %d inputs are given"
                             % (", ".join(self._feeds), len(inputs)))
        feed = {t.name or name: t._tensor()
                for t, name in zip(inputs, self._feeds)}
        with scope_guard(self._scope):
            results = self._exe.run(self._program, feed=feed,
                                    fetch_list=self._fetches,
                                    return_numpy=False)
        return [self._output(v, r) for v, r in zip(self._fetches, results)]

    @staticmethod
    def _output(var, result):
        tensor = PaddleTensor(np.asarray(result), var.name)
        tensor.lod = result.lod()
        return tensor


def create_paddle_predictor(config):
    """Load a model for inference.

    Args:
        config (AnalysisConfig): where the model is.

    Returns:
        A predictor with run(), get_input_names() and get_output_names().
    """
    return _Predictor(config)
