# SPDX-License-Identifier: Apache-2.0
"""fluid.log_helper: loggers that write to stderr and to nobody else."""
import logging

__all__ = ["get_logger"]


def get_logger(name, level, fmt=None):
    """A logger with one handler, which writes to stderr.

    Args:
        name (str): the logger's name, usually __name__.
        level (int): the lowest level that is written, as logging.INFO.
        fmt (str): the form of a line, as logging.Formatter takes it; the
            message alone by default.

    Returns:
        A logging.Logger. Its lines do not reach the root logger.
    """
    logger = logging.getLogger(name)
    logger.setLevel(level)
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.StreamHandler())
    logger.handlers[0].setFormatter(logging.Formatter(fmt=fmt))
    return logger
