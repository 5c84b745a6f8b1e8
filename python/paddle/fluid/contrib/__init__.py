# SPDX-License-Identifier: Apache-2.0
"""fluid.contrib: where the Trainer API lives since Fluid 1.0."""
from ... import _absent
from . import inferencer, trainer
from .inferencer import Inferencer
from .trainer import (BeginEpochEvent, BeginStepEvent, CheckpointConfig,
                      EndEpochEvent, EndStepEvent, Trainer)

__all__ = ["BeginEpochEvent", "BeginStepEvent", "CheckpointConfig",
           "EndEpochEvent", "EndStepEvent", "Inferencer", "Trainer",
           "inferencer", "trainer"]

_absent.answer_for(globals())
