# SPDX-License-Identifier: Apache-2.0
"""paddle.v2: the package, its plots and its pictures."""
import importlib
import io
import tarfile

import numpy as np
import pytest

import paddle.v2 as paddle


def test_every_module_of_the_original_is_there():
    for name in paddle.__all__:
        assert getattr(paddle, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        paddle.nonsense


def test_a_master_is_not_there():
    with pytest.raises(AttributeError, match="there is no master process"):
        paddle.master
    with pytest.raises(ModuleNotFoundError, match="there is no master"):
        importlib.import_module("paddle.v2.master")


# --- plots -------------------------------------------------------------------

@pytest.fixture
def no_screen(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("DISABLE_PLOT", raising=False)


def test_without_a_screen_a_curve_is_a_line_of_text(no_screen, capsys):
    curve = paddle.plot.Ploter("train", "test")
    for step, value in enumerate((4, 2, 1)):
        curve.append("train", step, value)
    curve.plot()
    assert capsys.readouterr() == (
        "", "train: 4 █▃▁ 1 (step 2)\ntest: nothing yet\n")
    curve.reset()
    assert curve.__plot_data__["train"].value == []


def test_plots_are_switched_off(no_screen, monkeypatch, capsys):
    monkeypatch.setenv("DISABLE_PLOT", "True")
    paddle.plot.Ploter("train").plot()
    assert capsys.readouterr() == ("", "")


def test_an_unknown_curve_is_named():
    with pytest.raises(KeyError, match="no curve 'test'; it has 'train'"):
        paddle.plot.Ploter("train").append("test", 0, 1)


# --- pictures ----------------------------------------------------------------

PICTURE = np.arange(6 * 4 * 3, dtype="uint8").reshape(6, 4, 3)


def test_the_shorter_side_is_resized():
    assert paddle.image.resize_short(PICTURE, 8).shape == (12, 8, 3)
    assert paddle.image.resize_short(PICTURE.swapaxes(0, 1), 2).shape == (
        2, 3, 3)
    flat = np.full((5, 7), 9, "uint8")
    assert (paddle.image.resize_short(flat, 3) == 9).all()


def test_half_the_size_is_the_mean_of_neighbours():
    half = paddle.image.resize_short(PICTURE.astype("float32"), 2)
    want = PICTURE.reshape(3, 2, 2, 2, 3).mean((1, 3))
    np.testing.assert_allclose(half, want)


def test_pictures_are_cut_and_turned():
    np.testing.assert_array_equal(paddle.image.center_crop(PICTURE, 2),
                                  PICTURE[2:4, 1:3])
    assert paddle.image.random_crop(PICTURE, 3).shape == (3, 3, 3)
    np.testing.assert_array_equal(paddle.image.left_right_flip(PICTURE),
                                  PICTURE[:, ::-1])
    assert paddle.image.to_chw(PICTURE).shape == (3, 6, 4)
    with pytest.raises(ValueError, match="2 dimensions, order 3"):
        paddle.image.to_chw(PICTURE[:, :, 0])


def test_a_picture_is_ready_to_be_fed():
    got = paddle.image.simple_transform(PICTURE, 4, 2, is_train=False,
                                        mean=[1, 2, 3])
    want = PICTURE[2:4, 1:3].transpose(2, 0, 1) - np.array(
        [1, 2, 3], "float32").reshape(3, 1, 1)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, want)


def test_pictures_of_a_tar_are_pickled(tmp_path):
    path = str(tmp_path / "all.tar")
    with tarfile.open(path, "w") as tar:
        for i in range(3):
            info = tarfile.TarInfo("p%d.jpg" % i)
            info.size = 2
            tar.addfile(info, io.BytesIO(b"p%d" % i))
    listing = paddle.image.batch_images_from_tar(
        path, "train", {"p0.jpg": 5, "p2.jpg": 6}, num_per_batch=1)
    with open(listing) as f:
        assert len(f.read().splitlines()) == 2


@pytest.mark.parametrize("name", [
    "enable_types", "create_updater", "create_local_updater",
    "create_remote_updater"])
def test_objects_of_the_original_engine_are_a_sentence(name):
    adam = paddle.optimizer.Adam(learning_rate=0.1)
    with pytest.raises(NotImplementedError, match="Adam: updaters are objects"):
        getattr(adam, name)()
    with pytest.raises(NotImplementedError, match="gradient machines"):
        paddle.parameters.Parameters().append_gradient_machine(None)
