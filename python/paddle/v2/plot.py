# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.plot: curves of training, in a window, a file or as text.

matplotlib draws them where it is installed and there is a screen, or a file
to write. Otherwise stderr gets a line for each curve. With DISABLE_PLOT=True
in the environment nothing is shown.
"""
import os
import sys

__all__ = ["Ploter"]

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60  # characters of a curve


class PlotData:
    """The points of one curve."""

    def __init__(self):
        self.reset()

    def append(self, step, value):
        self.step.append(step)
        self.value.append(float(value))

    def reset(self):
        self.step, self.value = [], []


def _text(title, data):
    """A curve in one line: its first and last value, and bars between."""
    if not data.value:
        return "%s: nothing yet" % title
    count = min(len(data.value), _WIDTH)
    some = [data.value[i * len(data.value) // count] for i in range(count)]
    low, high = min(data.value), max(data.value)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0
    return "%s: %g %s %g (step %s)" % (
        title, data.value[0], "".join(
            _BARS[int((v - low) * scale)] for v in some),
        data.value[-1], data.step[-1])


class Ploter:
    """Curves by their titles."""

    def __init__(self, *titles):
        self.__args__ = titles
        self.__plot_data__ = {title: PlotData() for title in titles}

    def append(self, title, step, value):
        """Another point of a curve."""
        if title not in self.__plot_data__:
            raise KeyError("Ploter has no curve %r; it has %s" % (
                title, ", ".join(map(repr, self.__args__))))
        self.__plot_data__[title].append(step, value)

    def plot(self, path=None):
        """Show the curves, or write them to a file."""
        if os.environ.get("DISABLE_PLOT") == "True":
            return
        screen = os.environ.get("DISPLAY") or "ipykernel" in sys.modules
        if (path or screen) and self._draw(path):
            return
        for title in self.__args__:
            sys.stderr.write(_text(title, self.__plot_data__[title]) + "\n")

    def _draw(self, path):
        try:
            import matplotlib
        except ImportError:
            return False
        if path:
            matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        drawn = [t for t in self.__args__ if self.__plot_data__[t].value]
        for title in drawn:
            data = self.__plot_data__[title]
            plt.plot(data.step, data.value)
        plt.legend(drawn, loc="upper left")
        if path:
            plt.savefig(path)
        else:
            plt.show()
        plt.gcf().clear()
        return True

    def reset(self):
        """Forget all points."""
        for data in self.__plot_data__.values():
            data.reset()
