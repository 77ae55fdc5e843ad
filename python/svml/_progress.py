"""A bar that shows how far a fit is."""

from __future__ import annotations

import sys
from typing import Any

try:
    from tqdm.auto import tqdm
except ImportError:
    tqdm = None


class ProgressBar:
    """A bar that shows how far a fit is, for the parameter `callbacks`.

    It is drawn by tqdm if that is installed, in a notebook as a notebook widget; otherwise it prints plain lines, less
    often the longer the fit takes. It shows what is being learned, the steps and the time so far and, for several SVMs,
    once the first has been learned, an estimate of the time until all are; the number of steps is not known in advance.

    Parameters
    ----------
    plain : bool, default=False
        Plain lines even if tqdm is installed.

    See Also
    --------
    SVMLClassifier : Its parameter ``verbose=1`` prints a line for each step.

    References
    ----------
    .. [1] tqdm, https://tqdm.github.io.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from svml import ProgressBar, SVMLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = SVMLClassifier(callbacks=ProgressBar()).fit(X, y)
    """

    def __init__(self, plain: bool = False) -> None:
        self.plain = plain
        self._bar: Any = None
        self._last = 0.0

    def __call__(self, step: dict[str, Any]) -> None:
        """Show a step.

        Parameters
        ----------
        step : dict
            The step, as callbacks get it.
        """
        if self.plain or tqdm is None:
            # About ten lines for each tenfold time.
            if step["iteration"] == 0:
                self._last = 0.0
            if step["seconds"] - self._last >= max(1.0, step["seconds"] / 5):
                self._last = step["seconds"]
                print(step["progress"], file=sys.stderr, flush=True)
            return
        if self._bar is None:
            self._bar = tqdm(unit=" steps")
        # The bar has a clock of its own.
        doing, _, _ = step["progress"].partition(", step ")
        _, _, left = step["progress"].partition(" so far, ")
        self._bar.set_description_str(doing, refresh=False)
        self._bar.set_postfix_str(left, refresh=False)
        self._bar.update()

    def close(self) -> None:
        """Finish the bar. A fit does so at its end."""
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close()
