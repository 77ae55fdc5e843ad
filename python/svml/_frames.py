"""Tables as columns: pandas and polars frames, and arrays of texts, by the rules for tables of a file.

`columns_of` turns a table into the columns that the library takes: ``(name, numbers)``, with NaN for a missing value;
``(name, codes, texts)``, with codes that are places in the list of texts, or -1 for a missing value; or ``(name, codes,
texts, True)`` for categories that stay categories even if all of them are numbers. Whether texts are numbers, what is
missing and what becomes of categories is decided by the library. Neither pandas nor polars is imported here: whoever
passes a frame has done that.
"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from svml import _core

Column = (
    tuple[str | None, NDArray[np.float64]]
    | tuple[str | None, NDArray[np.int32], list[str]]
    | tuple[str | None, NDArray[np.int32], list[str], bool]
)

# What pandas has for a missing value besides None and NaN; they are known by name, so that pandas is not needed.
MISSING = ("NAType", "NaTType")
# The longest text of a value that an error repeats.
EXCERPT = 40


class ColumnTypeError(ValueError, TypeError):
    """A column holds what is neither a number nor a text."""


def library_of(X: Any) -> str | None:
    """Which library a frame is of; None for what is no frame."""
    for name in ("pandas", "polars"):
        frame = getattr(sys.modules.get(name), "DataFrame", None)
        if frame is not None and isinstance(X, frame):
            return name
    return None


def names_of(X: Any) -> list[str] | None:
    """The names of the columns of a frame, if all of them are texts."""
    if library_of(X) is None:
        return None
    names = list(X.columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def dense(X: Any) -> Any:
    """A sparse matrix as an array, if the library takes one of its size; anything else as it is."""
    if not issparse(X):
        return X
    if X.ndim == 2:
        _core.check_dense(*X.shape)
    return X.tocsr().toarray() if X.ndim == 2 else X.toarray()


def on_one_line(text: str) -> str:
    """A text without line ends and other characters that a terminal would obey."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def as_table(X: Any) -> Any:
    """Lists of rows as an array, if they hold texts, and masked entries as missing values; anything else as it is."""
    if isinstance(X, np.ma.MaskedArray):
        # Whole numbers have no missing value.
        X = X.astype(X.dtype if X.dtype.kind in "fc" else np.float64) if X.dtype.kind in "biufc" else X.astype(object)
        X = X.filled(None if X.dtype.kind == "O" else np.nan)
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        _refuse("x1", str(X.dtype))
    if not isinstance(X, (list, tuple)):
        return X
    try:
        array = np.asarray(X)
    except ValueError:
        return X
    if array.dtype.kind in "mM":
        _refuse("x1", str(array.dtype))
    # In an array of texts, numbers have become texts, and None has, too.
    return np.asarray(X, dtype=object) if array.dtype.kind in "OU" and array.ndim == 2 else X


def has_texts(X: Any, *, truths: bool = True) -> bool:
    """Whether a table has to be read by its columns, because not all of them are numbers; `truths` are no numbers."""
    library = library_of(X)
    if library == "pandas":
        types = sys.modules["pandas"].api.types
        return any(not types.is_numeric_dtype(dtype) or (truths and types.is_bool_dtype(dtype)) for dtype in X.dtypes)
    if library == "polars":
        pl = sys.modules["polars"]
        decimals = pl.Decimal
        return any(truths if dtype == pl.Boolean else not dtype.is_numeric() or dtype == decimals for dtype in X.dtypes)
    return isinstance(X, np.ndarray) and X.dtype.kind in "OU" and X.ndim == 2


def has_row_numbers(X: Any) -> bool:
    """Whether a column of a frame with names numbers the rows; for a frame of numbers."""
    library, names = library_of(X), names_of(X)
    if library is None or names is None:
        return False
    read = _pandas_column if library == "pandas" else _polars_column
    for k, name in enumerate(names):
        column = X.iloc[:, k] if library == "pandas" else X.to_series(k)
        # One column at a time, so that a large frame is not copied as a whole.
        if getattr(column.dtype, "kind", "f") != "c" and _core.Summary([read(name, name, column)]).row_numbers:
            return True
    return False


def columns_of(X: Any, only: Collection[str] | None = None, text: Collection[int] = ()) -> list[Column]:
    """The columns of a frame, or of an array of two dimensions.

    Parameters
    ----------
    X : DataFrame of pandas or polars, or ndarray of shape (n_samples, n_features)
        The table. Columns of an array, and of a frame whose names are not all texts, have None for a name.
    only : collection of str, default=None
        Names of the columns that are wanted, of a frame that has names; None: all of them.
    text : collection of int, default=()
        Places of columns that are categories even if all of their values are numbers.

    Returns
    -------
    columns : list of tuple
        As described at the top of this module.
    """
    library, names = library_of(X), names_of(X)
    if library is None:
        columns = [_array_column(X[:, k], k) for k in range(X.shape[1])]
        return [_as_text(c, X[:, k].tolist(), f"x{k + 1}") if k in text else c for k, c in enumerate(columns)]
    read = _pandas_column if library == "pandas" else _polars_column
    found: list[Column] = []
    for k, label in enumerate(X.columns):
        if names is None or only is None or label.strip() in only:
            column = X.iloc[:, k] if library == "pandas" else X.to_series(k)
            own = read(None if names is None else label, label, column)
            found.append(_as_text(own, column.to_list(), label) if k in text else own)
    return found


def _as_text(column: Column, values: Sequence[Any], label: Any) -> Column:
    """A column as one of categories."""
    codes, texts = (column[1], column[2]) if len(column) > 2 else _coded(values, label)
    return column[0], codes, texts, True


def _array_column(values: NDArray[Any], place: int) -> Column:
    if values.dtype.kind in "OU":
        return (None, *_coded(values.tolist(), f"x{place + 1}"))
    return None, values.astype(np.float64)


def _pandas_column(name: str | None, label: Any, series: Any) -> Column:
    pd = sys.modules["pandas"]
    types, dtype = pd.api.types, series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        texts = [_text(value, label) or "" for value in dtype.categories.tolist()]
        return name, series.cat.codes.to_numpy(np.int32), texts, True
    if types.is_bool_dtype(dtype):
        return name, _truths(series.to_numpy(dtype=np.float64, na_value=np.nan)), ["False", "True"]
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return name, series.to_numpy(dtype=np.float64, na_value=np.nan)
    if dtype.kind in "mMc" or isinstance(dtype, pd.PeriodDtype):
        _refuse(label, str(dtype))
    if isinstance(dtype, pd.StringDtype):
        codes, found = pd.factorize(series)
        return name, codes.astype(np.int32), found.tolist()
    return (name, *_coded(series.tolist(), label))


def _polars_column(name: str | None, label: Any, series: Any) -> Column:
    pl = sys.modules["polars"]
    dtype = series.dtype
    if dtype == pl.Boolean:
        # As polars writes them.
        return name, _truths(series.cast(pl.Float64).to_numpy()), ["false", "true"]
    if dtype.is_numeric() or dtype == pl.Null:
        return name, series.cast(pl.Float64).to_numpy()
    if dtype in (pl.Categorical, pl.Enum):
        return (name, *_coded(series.cast(pl.String).to_list(), label), True)
    if dtype not in (pl.String, pl.Object):
        _refuse(label, str(dtype))
    return (name, *_coded(series.to_list(), label))


def _truths(values: NDArray[np.float64]) -> NDArray[np.int32]:
    """Places of truth values in a list of false and true."""
    return np.where(np.isnan(values), -1, values).astype(np.int32)


def _coded(values: Sequence[Any], label: Any) -> tuple[NDArray[np.int32], list[str]]:
    """Values as texts, each of them once."""
    places: dict[str, int] = {}

    def codes() -> Iterator[int]:
        for row, value in enumerate(values):
            text = value if type(value) is str else _text(value, label, row)
            yield -1 if text is None else places.setdefault(text, len(places))

    found: Iterable[int] = codes()
    return np.fromiter(found, np.int32, len(values)), list(places)


def _text(value: Any, label: Any, row: int | None = None) -> str | None:
    """A value as a table in a file would have it; None if it is missing."""
    if value is None or type(value).__name__ in MISSING:
        return None
    if isinstance(value, (str, bool, np.bool_)):
        return str(value)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    # Intervals are what `pandas.cut` makes.
    if isinstance(value, Decimal) or type(value).__name__ == "Interval":
        return str(value)
    kind = type(value).__name__
    text = repr(value)
    short = text if len(text) <= EXCERPT else text[:EXCERPT] + "..."
    _refuse(label, kind, f"{short} in row {row + 1}" if row is not None else short)


def _refuse(label: Any, kind: str, value: str | None = None) -> NoReturn:
    """The error for a column of a type that is not taken, with the way out."""
    found = f"holds {kind}" if value is None else f"holds a {kind}, {value}"
    dates = any(word in kind.lower() for word in ("date", "time", "duration", "period"))
    before = "numbers, such as years or days since a date" if dates else "strings or numbers"
    raise ColumnTypeError(
        f"column {label!r} {found}, but an argument must be a string or a number; convert it to {before}, or leave "
        "the column out"
    )
