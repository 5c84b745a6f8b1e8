# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.image: pictures as arrays, cut and turned for training.

Arrays are [height, width, channels] with the channels in the order blue,
green, red, or [height, width] in grey, until to_chw. Files are decoded by cv2
or PIL, whichever is installed; everything else is numpy.
"""
import io
import os
import pickle
import tarfile

import numpy as np

__all__ = ["load_image_bytes", "load_image", "resize_short", "to_chw",
           "center_crop", "random_crop", "left_right_flip",
           "simple_transform", "load_and_transform", "batch_images_from_tar"]


def load_image_bytes(bytes, is_color=True):
    """The picture of a file's bytes."""
    try:
        import cv2
    except ImportError:
        return _load_by_pil(bytes, is_color)
    return cv2.imdecode(np.frombuffer(bytes, "uint8"), 1 if is_color else 0)


def _load_by_pil(data, is_color):
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("paddle.v2.image: cv2 or PIL is needed to decode "
                          "pictures; install python3-pil") from None
    with Image.open(io.BytesIO(data)) as picture:
        if not is_color:
            return np.array(picture.convert("L"))
        return np.array(picture.convert("RGB"))[:, :, ::-1]


def load_image(file, is_color=True):
    """The picture of a file."""
    with open(file, "rb") as f:
        return load_image_bytes(f.read(), is_color)


def _resize(im, height, width):
    """Between the four nearest elements, as cv2 places them."""
    def places(size, out):
        at = ((np.arange(out) + 0.5) * size / out - 0.5).clip(0, size - 1)
        low = at.astype(int)
        return low, np.minimum(low + 1, size - 1), at - low

    y0, y1, fy = places(im.shape[0], height)
    x0, x1, fx = places(im.shape[1], width)
    fy = fy.reshape(-1, 1, *[1] * (im.ndim - 2))
    fx = fx.reshape(1, -1, *[1] * (im.ndim - 2))
    wide = im.astype("float32")
    rows = wide[y0] * (1 - fy) + wide[y1] * fy
    out = rows[:, x0] * (1 - fx) + rows[:, x1] * fx
    return np.rint(out).astype(im.dtype) if im.dtype.kind in "iu" \
        else out.astype(im.dtype)


def resize_short(im, size):
    """The shorter side becomes `size`."""
    height, width = im.shape[:2]
    if height > width:
        return _resize(im, size * height // width, size)
    return _resize(im, size, size * width // height)


def to_chw(im, order=(2, 0, 1)):
    """Channels first."""
    if len(im.shape) != len(order):
        raise ValueError("to_chw: the picture has %d dimensions, order %d"
                         % (len(im.shape), len(order)))
    return im.transpose(order)


def _crop(im, size, top, left):
    return im[top:top + size, left:left + size]


def center_crop(im, size, is_color=True):
    """The middle, of size x size."""
    return _crop(im, size, (im.shape[0] - size) // 2,
                 (im.shape[1] - size) // 2)


def random_crop(im, size, is_color=True):
    """A part of size x size, anywhere."""
    return _crop(im, size, np.random.randint(0, im.shape[0] - size + 1),
                 np.random.randint(0, im.shape[1] - size + 1))


def left_right_flip(im, is_color=True):
    """The picture in a mirror."""
    return im[:, ::-1]


def simple_transform(im, resize_size, crop_size, is_train, is_color=True,
                     mean=None):
    """Resize the shorter side, crop (anywhere and maybe mirrored, to train;
    in the middle, to test), channels first, float32, less the mean."""
    im = resize_short(im, resize_size)
    if is_train:
        im = random_crop(im, crop_size, is_color)
        if np.random.randint(2) == 0:
            im = left_right_flip(im, is_color)
    else:
        im = center_crop(im, crop_size, is_color)
    if im.ndim == 3:
        im = to_chw(im)
    im = im.astype("float32")
    if mean is not None:
        mean = np.array(mean, "float32")
        im -= mean.reshape(-1, 1, 1) if mean.ndim == 1 and is_color else mean
    return im


def load_and_transform(filename, resize_size, crop_size, is_train,
                       is_color=True, mean=None):
    """load_image and simple_transform."""
    return simple_transform(load_image(filename, is_color), resize_size,
                            crop_size, is_train, is_color, mean)


def batch_images_from_tar(data_file, dataset_name, img2label,
                          num_per_batch=1024):
    """Pickle the pictures of a tar that img2label names, num_per_batch to a
    file, into DATA_FILE_batch/DATASET_NAME; the name of the file that lists
    these files."""
    folder = "%s_batch/%s" % (data_file, dataset_name)
    listing = "%s_batch/batch_meta_%s" % (data_file, dataset_name)
    os.makedirs(folder, exist_ok=True)
    written, data, labels = [], [], []

    def write():
        path = "%s/batch_%d" % (folder, len(written))
        with open(path, "wb") as f:
            pickle.dump({"label": labels, "data": data}, f, protocol=2)
        written.append(os.path.abspath(path))

    with tarfile.open(data_file) as tar:
        for member in tar:
            if member.name in img2label:
                data.append(tar.extractfile(member).read())
                labels.append(img2label[member.name])
                if len(data) == num_per_batch:
                    write()
                    data, labels = [], []
    if data:
        write()
    with open(listing, "w") as f:
        f.writelines(path + "\n" for path in written)
    return listing
