# SPDX-License-Identifier: Apache-2.0
"""vgg_torch.py SECONDS - the peer of "nets.py vgg": the same network in PyTorch.

Prints one line of JSON."""
import json
import resource
import sys
import time

import numpy as np
import torch
from torch import nn

BATCH = 128
GROUPS = ((64, (0.3, 0)), (128, (0.4, 0)), (256, (0.4, 0.4, 0)),
          (512, (0.4, 0.4, 0)), (512, (0.4, 0.4, 0)))


def network():
    parts, channels = [], 3
    for filters, rates in GROUPS:
        for rate in rates:
            parts += [nn.Conv2d(channels, filters, 3, padding=1),
                      nn.BatchNorm2d(filters), nn.ReLU()]
            parts += [nn.Dropout(rate)] if rate else []
            channels = filters
        parts.append(nn.MaxPool2d(2, 2))
    parts += [nn.Flatten(), nn.Dropout(0.5), nn.Linear(512, 512), nn.BatchNorm1d(512),
              nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 512), nn.Linear(512, 10)]
    return nn.Sequential(*parts)


def main(seconds):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model, draw = network(), np.random.default_rng(7)
    picture = torch.from_numpy(draw.standard_normal((BATCH, 3, 32, 32)).astype("float32"))
    label = torch.from_numpy(draw.integers(0, 10, BATCH))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    cost, took, steps, began = nn.CrossEntropyLoss(), [], 0, time.perf_counter()
    while steps < 3 or time.perf_counter() - began < float(seconds):
        at = time.process_time()
        optimizer.zero_grad(set_to_none=True)
        cost(model(picture), label).backward()
        optimizer.step()
        took.append(time.process_time() - at)
        steps += 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"task": "vgg", "batch": BATCH, "steps": steps, "rss_mb": memory,
                      "step_us_p50": round(float(np.median(took)) * 1e6)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
