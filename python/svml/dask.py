"""One fit on many computers: rows on the workers of a Dask cluster.

`SVMLClassifier` is the ordinary classifier for Dask arrays and data frames. Rows stay on the workers, which compute sums
over them, and the optimiser runs where `fit` is called; prediction is lazy, block by block. Install it with
``svml[dask]``; the guide is docs/dask.md.

>>> import dask.array as da
>>> from distributed import Client
>>> from svml.dask import SVMLClassifier
>>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None)
>>> X = da.random.default_rng(0).standard_normal((2000, 4), chunks=(500, 4))
>>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
>>> model = SVMLClassifier(form="full").fit(X, y)
>>> bool((model.predict(X) == y).mean().compute() > 0.9)
True
>>> client.close()
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

try:
    import dask.array as da
    import distributed  # noqa: F401
    from dask.base import compute, is_dask_collection, tokenize
    from dask.delayed import delayed
except ImportError as error:
    raise ImportError(
        f"svml.dask needs Dask, and {error.name} is not installed; install svml with it: pip install 'svml[dask]'"
    ) from error

import svml
from svml import _core, _frames
from svml._base import Callbacks, label_of
from svml._cluster import (
    ClusterError,
    Plan,
    Reading,
    Rows,
    Seen,
    VersionError,
    Watched,
    WorkerMemoryError,
    client_of,
)

__all__ = ["ClusterError", "SVMLClassifier", "VersionError", "WorkerMemoryError"]

CLIENT = """
    client : distributed.Client, default=None
        The client of the cluster to fit on; None means the current client. It is not kept in pickles."""


def _documented() -> str:
    """The documentation of the ordinary estimator, with what is different here."""
    text = svml.SVMLClassifier.__doc__ or ""
    _, _, rest = text.partition("    Parameters\n    ----------\n")
    parameters, _, rest = rest.partition("\n\n    Attributes\n")
    # Rows that are elsewhere may be lost and made again; what is asked of them is not kept in a file.
    before, _, after = parameters.partition("    checkpoint : ")
    parameters = before + after[after.index("    categories : ") :]
    attributes, _, _ = rest.partition("    See Also\n")
    return f"""The SVM that learns its own metric and C, on the workers of a Dask cluster.

    `fit` takes Dask arrays and data frames, whose rows stay on their workers; predictions for them are lazy. Everything else
    is as in `svml.SVMLClassifier`: parameters, fitted attributes, the model file. The model depends on how the rows are
    divided into partitions, but not, bit for bit, on the number of workers or on which worker has which rows; with
    partitions of 65,536 rows, it is identical to that of `svml.SVMLClassifier` for more than 131,072 rows.

    Three parameters have a different meaning: `memory_limit` applies to each worker, which may use a quarter of it to cache
    intermediate results, and None means the worker's own limit; `n_jobs` is the number of threads of the driver and the
    maximum number of threads of a worker, where None means one on the driver and all threads of a worker; `device` applies
    to the driver, which learns from a sample, and to predictions on each worker, while the sums during a fit are computed on
    the CPUs of the workers. ``landmarks="exact"`` and ``validation="loo"`` need all rows together and raise an error.

    Parameters
    ----------
{parameters}{CLIENT}

    Attributes
{attributes}    See Also
    --------
    svml.SVMLClassifier : The same on one computer.

    References
    ----------
    .. [1] Z. Xu, K. Q. Weinberger and O. Chapelle, "Distance Metric Learning for Kernel Machines",
           arXiv:1208.3422, 2012.
    """


class SVMLClassifier(svml.SVMLClassifier):
    __doc__ = _documented()

    def __init__(
        self,
        *,
        form: str = "auto",
        kernel: str = "gaussian",
        n_components: int | None = None,
        validation: int | str = 2,
        surrogate: str = "squared_hinge",
        steepness: float = 5.0,
        regularization: float = 0.01,
        init: str = "auto",
        C_init: float = 0.5,
        learn_C: bool = True,
        solver: str = "lbfgs",
        max_iter: int = 100,
        tol: float = 1e-2,
        patience: int = 5,
        refit: bool = True,
        cross_fit: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        equal_rows: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
        landmarks: int | str = "auto",
        memory_limit: int | None = None,
        categories: str = "auto",
        missing: str = "refuse",
        text: Sequence[str | int] | None = None,
        time_limit: float | None = None,
        callbacks: Callbacks = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        device: str = "auto",
        client: Any = None,
    ) -> None:
        super().__init__(
            form=form,
            kernel=kernel,
            n_components=n_components,
            validation=validation,
            surrogate=surrogate,
            steepness=steepness,
            regularization=regularization,
            init=init,
            C_init=C_init,
            learn_C=learn_C,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            patience=patience,
            refit=refit,
            cross_fit=cross_fit,
            class_weight=class_weight,
            equal_rows=equal_rows,
            random_state=random_state,
            landmarks=landmarks,
            memory_limit=memory_limit,
            categories=categories,
            missing=missing,
            text=text,
            time_limit=time_limit,
            callbacks=callbacks,
            verbose=verbose,
            n_jobs=n_jobs,
            device=device,
        )
        self.client = client

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Any:
        """Learn from rows on the workers of a cluster, with their classes.

        An interrupt ends the fit with the best result so far, if there is one; a second interrupt ends it immediately.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            The rows. Chunks may be of any size, including unknown and empty.
        y : dask array or series, or array-like, of shape (n_samples,)
            The class of each row.
        sample_weight : dask array or series, or array-like, of shape (n_samples,), default=None
            Sample weights: a row of weight 2 counts like two such rows, a row of weight 0 is ignored.
        groups : None
            Not supported here: rows are processed in parts, in which the rows of a group may not be together.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if groups is not None:
            raise ValueError(
                "groups are not supported on Dask, where rows are processed in parts; use svml.SVMLClassifier, which "
                "takes groups up to 131072 rows"
            )
        started = time.monotonic()
        _check_collection(X)
        self._check_reading()
        self._check_together()
        limit, observer = self._check_time_limit(), self._observer()
        # The driver learns from a sample, which is large.
        device = self._device(_core.LEAST_ROWS)
        watched = Watched(_core.Flag(), None if limit is None else started + limit)
        meta = X._meta if _is_frame(X) else np.empty((0, X.shape[1]), X.dtype)
        validate_data(self, meta, skip_check_array=True)
        _frames.as_table(meta)
        text = tuple(self._text_columns(meta))
        texts = bool(text) or _frames.has_texts(meta)
        client = client_of(self.client)
        with Rows(client, watched, self.memory_limit, self.n_jobs) as rows:
            try:
                rows.check_workers()
                reading = Reading(svml.__version__, X.shape[1], texts, text, self.missing == "impute")
                seen = rows.read(list(_partitions(X, y, sample_weight, client)), reading)
                classes = self._classes_of(seen)
                schema = self._schema_of(seen.summary, getattr(y, "name", None), 3) if seen.summary else None
                columns = len(schema.coded) if schema else X.shape[1]
                labels = [label_of(value) for value in classes.tolist()]
                # The limit is for workers; the driver, which has some rows only, takes what it has.
                params = {**self._library_params(labels), "memory_limit": None}
                rows.make_parts(seen, Plan(svml.__version__, classes, columns, schema))
            except _core.Cancelled:
                raise TimeoutError("the time limit was reached before all rows were read; raise time_limit") from None
            try:
                model = _core.fit_rows(
                    json.dumps(params),
                    rows.ask,
                    labels,
                    columns=columns,
                    names=None if schema else self._column_names(),
                    schema=schema,
                    impute=self.missing == "impute",
                    threads=self._threads(),
                    time_limit=None if limit is None else max(1e-3, started + limit - time.monotonic()),
                    device=device,
                    observer=observer,
                    interrupt=watched.flag,
                )
            except _core.ParameterError as error:
                raise self._renamed(*error.args) from None
            finally:
                self._end_watching()
        self.classes_ = classes
        self._model = model
        self._from_file = False
        self._warn()
        return self

    def predict(self, X: Any) -> Any:
        """The class of each row.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        y : dask array or ndarray of shape (n_samples,)
            The classes; for Dask collections, a dask array with a block for each block of X.
        """
        return self._lazily("predict", X, 1, self._dtype()) if _is_dask(X) else super().predict(X)

    def decision_function(self, X: Any) -> Any:
        """The decision value of each row.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        values : dask array or ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes a single value, positive for the second class. With more, one value for each class, of which the
            largest decides: the number of pairs won, plus a fraction of less than one third that breaks ties.
        """
        if not _is_dask(X):
            return super().decision_function(X)
        check_is_fitted(self)
        count = len(self.classes_)
        return self._lazily("decision_function", X, 1 if count == 2 else (count,))

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class for each row.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        p : dask array or ndarray of shape (n_samples, n_classes)
            Probabilities; the most probable class is always the predicted one, unless `class_weight` is given: weights
            change what is predicted, and probabilities are corrected for them.
        """
        if not _is_dask(X):
            return super().predict_proba(X)
        check_is_fitted(self)
        return self._lazily("predict_proba", X, (len(self.classes_),))

    def transform(self, X: Any) -> Any:
        """Map rows with the learned metric.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        Z : dask array or ndarray of shape (n_samples, n_components)
            ``(X - mean_) @ components_.T``, with the encoded columns of X: Euclidean distances between rows of Z are
            distances in the metric.
        """
        if not _is_dask(X):
            return super().transform(X)
        check_is_fitted(self)
        return self._lazily("transform", X, (self.n_components_,))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is predicted correctly.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)
            The rows.
        y : dask array or series, or array-like, of shape (n_samples,)
            The class of each row.
        sample_weight : dask array or series, or array-like, of shape (n_samples,), default=None
            How much each row counts.

        Returns
        -------
        score : float
            The weighted share.
        """
        if not _is_dask(X):
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self)
        model = self._sent()
        count = delayed(_right, pure=False)
        counts = [count(model, *partition) for partition in _partitions(X, y, sample_weight, self.client)]
        right, of_all = np.sum(_computed(counts, self.client), axis=0)
        return float(right / of_all)

    def to_local(self) -> svml.SVMLClassifier:
        """The ordinary estimator with the same parameters and, if it is fitted, the same model.

        Returns
        -------
        estimator : svml.SVMLClassifier
            It needs no Dask.
        """
        local = svml.SVMLClassifier()
        local.__dict__.update({name: value for name, value in self.__dict__.items() if name != "client"})
        return local

    def _check_together(self) -> None:
        """Refuses what needs all rows together."""
        if self.landmarks == "exact":
            raise self._invalid("landmarks", "'auto' or an integer, because the rows are spread over many workers", self.landmarks)
        if self.validation == "loo":
            raise self._invalid(
                "validation", "an integer of at least 2 or 'hold_out', because the rows are spread over many workers", "loo"
            )
        limit = self.memory_limit
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1):
            raise self._invalid("memory_limit", "a positive number of bytes or None", limit)
        jobs = self.n_jobs
        if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, (int, np.integer)) or jobs == 0):
            raise self._invalid("n_jobs", "an integer that is not 0 or None", jobs)

    def _classes_of(self, seen: Seen) -> NDArray[Any]:
        """The classes; those whose rows all have weight 0 do not count."""
        if sum(seen.rows) < 2:
            raise ValueError(
                f"Found array with {sum(seen.rows)} sample(s) while a minimum of 2 is required by {type(self).__name__}."
            )
        check_classification_targets(seen.labels)
        if not np.any(seen.weights > 0):
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return seen.labels[seen.weights > 0]

    def _dtype(self) -> Any:
        check_is_fitted(self)
        return self.classes_.dtype

    def _sent(self) -> Any:
        """The ordinary estimator, once for all blocks; each of them has a thread."""
        local = self.to_local().set_params(n_jobs=1, callbacks=None)
        name = f"svml-model-{tokenize(self._model.to_bytes(), self.classes_)}"
        return delayed(local, name=name, traverse=False)

    def _lazily(self, method: str, X: Any, width: Any, dtype: Any = np.float64) -> Any:
        """What a method gives for each block; `width` is 1 for a value for each row, or the shape of several."""
        check_is_fitted(self)
        more = () if width == 1 else width
        meta = np.empty((0, *more), dtype)
        model, prefix = self._sent(), f"svml-{method.replace('_', '-')}"
        if _is_frame(X):
            block = delayed(_of_block, pure=True)
            blocks = [
                da.from_delayed(
                    block(part, model, method, more, dtype, dask_key_name=f"{prefix}-{tokenize(part, model)}"),
                    (np.nan, *more),
                    meta=meta,
                )
                for part in X.to_delayed()
            ]
            return da.concatenate(blocks, allow_unknown_chunksizes=True)
        validate_data(self, np.empty((1, X.shape[1])), reset=False, skip_check_array=True)
        X = X.rechunk({1: -1})
        return X.map_blocks(
            _of_block,
            model,
            method,
            more,
            dtype,
            dtype=dtype,
            chunks=(X.chunks[0], *((count,) for count in more)),
            drop_axis=[] if more else [1],
            meta=meta,
            name=f"{prefix}-{tokenize(X, model)}",
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> Any:
        # A client cannot be copied; a copy of the estimator has none, and its clone gets this one.
        clone = super(SVMLClassifier, copy.copy(self)).__sklearn_clone__()
        clone.client = self.client
        return clone


def _of_block(block: Any, model: svml.SVMLClassifier, method: str, more: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """What a method gives for the rows of a block, of which there may be none."""
    if len(block) == 0:
        return np.empty((0, *more), dtype)
    return getattr(model, method)(block)


def _right(model: svml.SVMLClassifier, x: Any, y: Any, weights: Any) -> tuple[float, float]:
    """The weight of the rows of a block whose class is predicted, and of all."""
    weights = np.broadcast_to(np.asarray(1.0 if weights is None else weights, dtype=np.float64), len(x))
    if len(x) == 0:
        return 0.0, 0.0
    return float(weights[model.predict(x) == np.asarray(y)].sum()), float(weights.sum())


def _is_dask(X: Any) -> bool:
    return isinstance(X, da.Array) or _is_frame(X)


def _is_frame(X: Any) -> bool:
    """Whether it is a dataframe of Dask; that module need not be imported for an answer."""
    return is_dask_collection(X) and hasattr(X, "map_partitions") and getattr(X, "ndim", 0) == 2


def _check_collection(X: Any) -> None:
    if not _is_dask(X):
        raise TypeError(
            f"X must be a dask array or a dask dataframe, got {type(X).__name__}; make it one, as by "
            "dask.array.from_array(X, chunks=(65536, -1)), or use svml.SVMLClassifier, which fits on this computer"
        )
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead; reshape X, one row for each sample")
    if np.isnan(X.shape[1]):
        raise ValueError("the number of columns of X is unknown; call X.compute_chunk_sizes() first")


def _partitions(X: Any, y: Any, weights: Any, client: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Rows, classes and weights of each partition, delayed."""
    if y is None:
        raise ValueError("SVMLClassifier requires y to be passed, but the target y is None")
    if not _is_frame(X):
        X = X.rechunk({1: -1})
    xs = X.to_delayed() if _is_frame(X) else X.to_delayed().ravel().tolist()
    lengths = None if _is_frame(X) or np.isnan(X.chunks[0]).any() else X.chunks[0]
    if lengths is None and any(not _is_scalar(beside) and not is_dask_collection(beside) for beside in (y, weights)):
        lengths = _computed([delayed(len)(x) for x in xs], client)
    ys = _aligned("y", y, X, lengths, len(xs))
    ws = [weights] * len(xs) if _is_scalar(weights) else _aligned("sample_weight", weights, X, lengths, len(xs))
    return zip(xs, ys, ws)


def _computed(things: list[Any], client: Any) -> Sequence[Any]:
    """What delayed things are, by a client or, without one, by what Dask uses."""
    return compute(*things) if client is None else client.gather(client.compute(things))


def _is_scalar(weights: Any) -> bool:
    return weights is None or (not is_dask_collection(weights) and np.ndim(weights) == 0)


def _aligned(name: str, values: Any, X: Any, lengths: Sequence[int] | None, count: int) -> list[Any]:
    """Values for the rows of each partition of X, of the lengths that are known or None."""
    if not is_dask_collection(values):
        _check_length(name, len(values), lengths)
        ends = np.cumsum(lengths or ()).tolist()
        plain = values if hasattr(values, "iloc") else np.asarray(values)
        return [np.asarray(plain[end - rows : end]) for end, rows in zip(ends, lengths or ())]
    if isinstance(values, da.Array):
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise ValueError(f"{name} should be a 1d array, got an array of shape {values.shape} instead.")
        known = not np.isnan(values.chunks[0]).any()
        if known and lengths is not None:
            _check_length(name, values.shape[0], lengths)
            values = values.rechunk((tuple(lengths),))
        parts = values.to_delayed().ravel().tolist()
    else:
        divided = _is_frame(X) and values.known_divisions and X.known_divisions
        if divided and values.divisions != X.divisions:
            values = values.repartition(divisions=X.divisions)
        parts = values.to_delayed()
    if len(parts) != count:
        raise ValueError(
            f"X has {count} partitions and {name} has {len(parts)}, and not all of their lengths are known; cut them alike, or "
            "call compute_chunk_sizes() on arrays before"
        )
    return parts


def _check_length(name: str, found: int, lengths: Sequence[int] | None) -> None:
    expected = sum(lengths or ())
    if found != expected:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {expected}, {name} has {found}"
        )
