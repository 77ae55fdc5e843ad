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

    It is drawn by tqdm where that is installed, in a notebook as one of the notebook's own; elsewhere it is plain lines,
    the fewer the longer the fit takes. It shows what is learned, the steps and the time so far and, of several SVMs once
    one has been learned, in about which time all will be; how many steps there will be nobody knows.

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
