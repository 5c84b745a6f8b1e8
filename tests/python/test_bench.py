# SPDX-License-Identifier: Apache-2.0
"""bench/run: ratios that mean nothing are not printed."""
import importlib.machinery
import importlib.util
import os
import sys

import pytest

from conftest import ROOT

TORCH = ["ctr", "--batch", "100"]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run", "build"])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = importlib.machinery.SourceFileLoader(
        "bench_run", os.path.join(ROOT, "bench", "run"))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("bench_run", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "have_peers", True)
    return module


def shown(bench, monkeypatch, capsys, blas, figure):
    """What a row prints, and whether it passed; ours is 1000."""
    monkeypatch.setattr(bench, "blas_of_torch", lambda: blas)
    def measure(argv, one_core=False):
        peer = any("torch_bench.py" in word for word in argv)
        return {"samples_per_s": figure if peer else 1000.0}
    monkeypatch.setattr(bench, "measure", measure)
    good = bench.row("1", "click model", ["click"], TORCH, "samples_per_s",
                     (100, 1000), 1.25, 1.4)
    return capsys.readouterr().out, good


def test_a_peer_as_recorded_has_a_ratio(bench, monkeypatch, capsys):
    text, good = shown(bench, monkeypatch, capsys, "libopenblas.so.0", 500.0)
    assert "ratio  2.00" in text and good


def test_a_peer_without_a_blas_has_none(bench, monkeypatch, capsys):
    text, good = shown(bench, monkeypatch, capsys, None, 500.0)
    assert "no ratio: PyTorch runs here without an optimised BLAS" in text
    assert "2.00" not in text and not good


def test_a_peer_far_from_its_record_has_none(bench, monkeypatch, capsys):
    text, good = shown(bench, monkeypatch, capsys, "libopenblas.so.0", 30.0)
    assert "no ratio: the peer is far from its recorded 100 to 1000" in text
    assert not good


def test_every_row_has_a_range(bench):
    for number, what, _, _, _, (low, high), least, aim in bench.ROWS:
        assert 0 < low < high and 0 < least <= aim, what
