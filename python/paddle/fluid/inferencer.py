# SPDX-License-Identifier: Apache-2.0
"""fluid.Inferencer: answers of a network that a Trainer has trained."""
from . import (compiler, core, executor, framework, io, trainer as trainers,
               unique_name)

__all__ = ["Inferencer"]


class Inferencer:
    """Runs what infer_func builds with parameters that were saved.

    Args:
        infer_func (callable): builds the network; returns its output, or a
            list of outputs.
        param_path (str): the folder that Trainer.save_params wrote.
        place (CPUPlace): where; None: the CPU.
        parallel (bool): split every batch over the CPU_NUM places.
    """

    def __init__(self, infer_func, param_path, place=None, parallel=False):
        self.param_path = param_path
        self.place = trainers.check_and_get_place(place)
        self.parallel = parallel
        self.scope = core.Scope()
        program = framework.Program()
        with framework.program_guard(program, framework.Program()), \
                unique_name.guard():
            outputs = infer_func()
            self.predict_var = outputs
        self._fetches = [v.name for v in (
            outputs if isinstance(outputs, (list, tuple)) else [outputs])]
        self.inference_program = program.clone(for_test=True)
        self._runs = compiler.CompiledProgram(
            self.inference_program).with_data_parallel() \
            if parallel else self.inference_program
        self._exe = executor.Executor(self.place)
        with executor.scope_guard(self.scope):
            io.load_params(self._exe, param_path, self.inference_program)

    def infer(self, inputs, return_numpy=True):
        """The outputs of infer_func.

        Args:
            inputs (dict): an array or LoDTensor for each name that is fed.
            return_numpy (bool): return arrays rather than LoDTensors.

        Returns:
            A list of the values of infer_func, in its order.
        """
        if not isinstance(inputs, dict):
            raise ValueError("inputs should be a map of {'input_name': "
                             "input_var}, not %s" % type(inputs).__name__)
        with executor.scope_guard(self.scope):
            return self._exe.run(self._runs, inputs, self._fetches,
                                 return_numpy=return_numpy)
