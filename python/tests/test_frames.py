"""Tables with texts, categories, truth values and gaps, by the rules of the command."""

import csv
import datetime
import io
import os
import pickle
import subprocess
import sys
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import svml
from svml import ITML, LMNN, NCA, SVML, RelevanceDisplay, SVMLClassifier, _core
from svml._frames import columns_of

ALL = [SVMLClassifier, SVML, NCA, LMNN, ITML]
COMMAND = os.environ.get("SVML_COMMAND")
needs_command = pytest.mark.skipif(COMMAND is None, reason="SVML_COMMAND does not name the command")
ENCODED = ["size", "colour=blue", "colour=green", "colour=red", "ok=False", "ok=True", "city=a", "city=b", "count"]

pytestmark = pytest.mark.filterwarnings("ignore:columns left out because they look like identifiers")


def table(n=90, gaps=False):
    """A table of all kinds of columns, and classes."""
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(
        {
            "size": rng.randn(n).round(3),
            "colour": pd.Categorical(rng.choice(["red", "blue", "green"], n)),
            "ok": rng.rand(n) > 0.5,
            "city": rng.choice(["a", "b"], n),
            "who": [f"name {k}" for k in range(n)],
            "count": rng.randint(0, 9, n),
        }
    )
    y = pd.Series(np.where((frame["size"] > 0) ^ frame["ok"] ^ (frame["colour"] == "red"), "yes", "no"), name="class")
    if gaps:
        frame = frame.astype({"count": "Int64", "city": object, "ok": "boolean"})
        for place, name in enumerate(["size", "colour", "ok", "city", "count"]):
            frame.loc[frame.index[place::17], name] = pd.NA if name in ("count", "ok") else None
    return frame, y


@pytest.fixture(scope="module")
def mixed():
    return table()


@pytest.fixture(scope="module")
def fitted(mixed):
    return SVMLClassifier().fit(*mixed)


@pytest.mark.parametrize("estimator", ALL)
def test_every_estimator_takes_a_frame(estimator, mixed):
    X, y = mixed
    model = estimator(max_iter=5).fit(X, y)
    assert list(model.feature_names_in_) == list(X.columns) and model.n_features_in_ == 6
    assert list(model.encoded_feature_names_) == ENCODED
    assert model.components_.shape[1] == len(model.mean_) == len(model.feature_importances_) == len(ENCODED)
    Z = model.transform(X)
    assert Z.shape == (len(X), model.n_components_) and np.isfinite(Z).all()
    assert len(model.get_feature_names_out()) == Z.shape[1]
    np.testing.assert_array_equal(model.set_output(transform="pandas").transform(X).to_numpy(), Z)
    # The encoded rows, from which the map can be had.
    rows = model._model.schema.encode(columns_of(X))
    np.testing.assert_allclose((rows - model.mean_) @ model.components_.T, Z, atol=1e-9)


def test_pandas_and_polars_are_the_same(mixed, fitted):
    X, y = mixed
    frames = [
        pl.from_pandas(X),
        pl.from_pandas(X).with_columns(pl.col("colour").cast(pl.Enum(["red", "green", "blue"]))),
        pl.from_pandas(X).with_columns(pl.col("city").cast(pl.Categorical)),
        X.convert_dtypes(),
        X.convert_dtypes(dtype_backend="pyarrow"),
        X.astype({"colour": str, "city": "category", "ok": object, "count": object}),
        X.astype({"count": str, "size": object, "who": object}),
        X.astype({"city": "string", "size": "Float64", "count": "uint8"}),
    ]
    expected = fitted.decision_function(X)
    for frame in frames:
        np.testing.assert_array_equal(fitted.decision_function(frame), expected)
        model = SVMLClassifier().fit(frame, y)
        np.testing.assert_array_equal(model.decision_function(X), expected)
        np.testing.assert_array_equal(model.predict(frame), fitted.predict(X))
        # Truth values are written as the library of the frame writes them.
        assert [name.lower() for name in model.encoded_feature_names_] == [name.lower() for name in ENCODED]


def test_arrays_and_lists_with_texts(mixed):
    X, y = mixed
    X = X.drop(columns="who")
    by_name = SVMLClassifier().fit(X, y)
    for rows in (X.to_numpy(dtype=object), X.to_numpy(dtype=object).tolist(), X.to_numpy(dtype=object).astype(str)):
        model = SVMLClassifier().fit(rows, y)
        assert model.encoded_feature_names_[0] == "x1" and not hasattr(model, "feature_names_in_")
        np.testing.assert_array_equal(model.decision_function(rows), by_name.decision_function(X))
        with pytest.raises(ValueError, match="X has 3 features, but SVMLClassifier is expecting 5 features"):
            model.predict(X.to_numpy(dtype=object)[:, :3])
    # Without names they are matched by place.
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(by_name.predict(X.to_numpy(dtype=object)), by_name.predict(X))
    renamed = X.set_axis(range(5), axis=1)
    model = SVMLClassifier().fit(renamed, y)
    np.testing.assert_array_equal(model.decision_function(renamed), by_name.decision_function(X))


def test_objects_that_are_numbers_are_numbers():
    rng = np.random.RandomState(1)
    values = rng.randn(60, 2)
    y = (values.sum(axis=1) > 0).astype(int)
    expected = SVMLClassifier().fit(values, y).decision_function(values)
    texts = np.array([[repr(float(v)) for v in row] for row in values], dtype=object)
    decimals = pd.DataFrame({"a": [Decimal(t) for t in texts[:, 0]], "b": values[:, 1].astype(object)})
    commas = pd.DataFrame({"a": [t.replace(".", ",") for t in texts[:, 0]], "b": [f" {t} " for t in texts[:, 1]]})
    for table in (values.astype(object), texts, decimals, commas, pl.from_pandas(commas)):
        model = SVMLClassifier().fit(table, y)
        np.testing.assert_array_equal(model.decision_function(table), expected)
        assert model._model.schema.kinds == ["number", "number"]


def test_a_slip_in_a_column_of_numbers_is_named():
    X = pd.DataFrame({"age": [*range(20, 58), "oops", None], "size": [k * k % 31 for k in range(40)]})
    y = [0, 1] * 20
    few = X.assign(**{"age": [*range(20, 54), *["oops"] * 5, None]})
    with pytest.warns(UserWarning, match="^column age was read as text because 5 of its 39 values are not numbers"):
        SVMLClassifier(max_iter=2, missing="impute").fit(few, y)
    # A single one is refused or imputed, wherever it is.
    cases = (X, "age"), (pl.from_pandas(X.astype({"age": str})), "age"), (X.to_numpy(), "x1"), (X.to_numpy().tolist(), "x1")
    for table, name in cases:
        with pytest.raises(ValueError, match=rf"^row 39, column {name}: 'oops' is not a number, but 38 of the 39") as error:
            SVMLClassifier(max_iter=2).fit(table, y)
        assert "missing=\"impute\"" in str(error.value) and "text=[...]" in str(error.value)
        with pytest.warns(UserWarning, match=f"^column {name}: 1 of its 39 values is not a number, such as 'oops', and was"):
            model = SVMLClassifier(max_iter=2, missing="impute").fit(table, y)
        assert model._model.schema.kinds == ["number", "number"]
        with pytest.warns(UserWarning, match=f"{name}: 1 row has a value that is not a number, such as 'oops'"):
            assert len(model.predict(table)) == 40


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_text_on_purpose(library):
    X = library({"zip": [k % 3 for k in range(60)], "size": [k * k % 31 for k in range(60)]})
    y = [k % 3 == 1 for k in range(60)]
    for table, text in (X, ["zip"]), (X, [0]), (X.to_numpy(), (0,)), (X.to_numpy().tolist(), [0]):
        model = SVMLClassifier(form="diagonal", text=text).fit(table, y)
        assert model._model.schema.kinds == ["onehot", "number"]
        assert model.predict(table).tolist() == y
    for text, value in ["zip", "'zip'"], [["nip"], "'nip'"], [[2], "2"], [[True], "True"]:
        with pytest.raises(ValueError, match=f"The 'text' parameter .*Got .*{value}"):
            SVMLClassifier(text=text).fit(X, y)


def test_dates_and_masks_in_arrays():
    rng = np.random.RandomState(0)
    X = rng.randn(60, 2)
    y = (X[:, 0] > 0).astype(int)
    dates = np.datetime64("2026-01-01") + rng.randint(0, 99, (60, 2))
    masked = np.ma.array(X, mask=np.zeros_like(X, bool))
    whole = SVMLClassifier(form="sphere").fit(X, y)
    for table in dates, dates - dates[0], dates.tolist():
        with pytest.raises((ValueError, TypeError), match="years or days since a date"):
            SVMLClassifier().fit(table, y)
        with pytest.raises((ValueError, TypeError), match="years or days since a date"):
            whole.predict(table)
    np.testing.assert_array_equal(whole.predict(masked), whole.predict(X))
    masked[3, 1] = np.ma.masked
    gap = X.copy()
    gap[3, 1] = np.nan
    for table in masked, (10 * masked).astype(int), masked.astype(object):
        with pytest.raises(ValueError, match="NaN|value is missing"):
            SVMLClassifier().fit(table, y)
        with pytest.raises(ValueError, match="NaN|not a number|value is missing"):
            whole.predict(table)
    imputing = SVMLClassifier(form="sphere", missing="impute")
    expected = imputing.fit(gap, y).decision_function(gap)
    np.testing.assert_array_equal(imputing.fit(masked, y).decision_function(masked), expected)
    with pytest.raises(ValueError, match="y has masked entries"):
        SVMLClassifier().fit(X, np.ma.array(y, mask=y == 1))


@pytest.mark.parametrize(
    "classes", [[2**53, 2**53 + 1], [-1, 1], ["007", "7"], ["1.0", "x"], [2**63, 2**64 - 1], ["10", "9"]]
)
def test_classes_come_back_from_a_file(classes, tmp_path):
    X = np.arange(60.0).reshape(30, 2) % 7
    y = np.array(classes)[(X[:, 0] > 3).astype(int)]
    model = SVMLClassifier(form="sphere").fit(X, y)
    model.save(tmp_path / "m")
    again = svml.load(tmp_path / "m")
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.classes_.dtype.kind == model.classes_.dtype.kind
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@needs_command
def test_classes_of_a_file_are_texts(tmp_path):
    rows = [f"{k % 7},{k * k % 11},{{}}" for k in range(40)]
    for names, classes in (["1.0", "2.0"], [1.0, 2.0]), (["007", "7"], ["007", "7"]):
        (tmp_path / "t.csv").write_text("\n".join(["a,b,class", *(r.format(names[k % 7 < 3]) for k, r in enumerate(rows))]))
        run("train", tmp_path / "t.csv", "-o", tmp_path / "m", "--form", "sphere")
        model = svml.load(tmp_path / "m")
        assert model.classes_.tolist() == classes
        X = np.array([[k % 7, k * k % 11] for k in range(40)], float)
        y = np.array([classes[k % 7 < 3] for k in range(40)])
        assert model.evaluate(X, y).error == 0


def test_categories_that_are_numbers_stay_categories():
    rng = np.random.RandomState(2)
    codes = rng.choice([1, 2, 10], 60)
    X = pd.DataFrame({"grade": pd.Categorical(codes), "size": rng.randn(60)})
    model = SVMLClassifier(max_iter=5).fit(X, codes == 2)
    assert list(model.encoded_feature_names_) == ["grade=1", "grade=10", "grade=2", "size"]
    # In new rows they may be numbers.
    for type in (int, float, str, object):
        np.testing.assert_array_equal(model.decision_function(X.astype({"grade": type})), model.decision_function(X))
    np.testing.assert_array_equal(
        model.set_params(n_jobs=2).decision_function(np.column_stack([codes, X["size"]])), model.decision_function(X)
    )


def test_columns_are_matched_by_name(mixed, fitted):
    X, _ = mixed
    expected = fitted.decision_function(X)
    other = X[X.columns[::-1]].drop(columns="who").assign(day=pd.Timestamp("2024-02-29"), extra=1)
    np.testing.assert_array_equal(fitted.decision_function(other), expected)
    with pytest.raises(ValueError, match="no column 'city' in the data; the columns are: size, .*, City"):
        fitted.predict(X.drop(columns="city").assign(City="a"))
    with pytest.raises(ValueError, match="are both named 'city'; rename one"):
        fitted.predict(pd.concat([X, X[["city"]]], axis=1))
    # scikit-learn may be the one who says it.
    with pytest.raises(ValueError, match="'city'"):
        SVMLClassifier().fit(pd.concat([X, X[["city"]]], axis=1), mixed[1])


def test_new_categories(mixed, fitted):
    X, y = mixed
    new = X.astype({"colour": str, "city": object})
    new.loc[new.index[:2], "city"] = "z"
    rows = fitted._model.schema.encode(columns_of(new))
    assert (rows[:2, 6:8] == 0).all()
    assert np.isfinite(fitted.decision_function(new)).all()
    codes = SVMLClassifier(categories="codes").fit(X.drop(columns="who"), y)
    assert list(codes.encoded_feature_names_) == ["size", "colour", "ok", "city", "count"]
    with pytest.raises(ValueError, match="row 1, column city: category 'z' did not occur .*known: a, b.*onehot"):
        codes.predict(new)
    filled = SVMLClassifier(categories="codes", missing="impute").fit(X.drop(columns="who"), y)
    assert np.isfinite(filled.decision_function(new)).all()
    with pytest.raises(ValueError, match="row 1, column size: 'large' is not a number, but the column was numeric"):
        fitted.predict(X.assign(size="large"))
    numbers = SVMLClassifier().fit(X[["size", "count"]], y)
    with pytest.raises(ValueError, match="row 1, column size: 'large' is not a number, but the column was numeric"):
        numbers.predict(X[["size", "count"]].assign(size="large"))


def test_gaps():
    X, y = table(gaps=True)
    for frame in (X, pl.from_pandas(X)):
        with pytest.raises(ValueError, match=r'row 1, column size: the value is missing; .* fit with missing="impute"'):
            SVMLClassifier().fit(frame, y)
    models = [SVMLClassifier(missing="impute").fit(frame, y) for frame in (X, pl.from_pandas(X))]
    expected = models[0].decision_function(X)
    assert np.isfinite(expected).all() and models[0].score(X, y) > 0.8
    texts = X.astype({"city": object, "count": object, "colour": object})
    texts.loc[texts["city"].isna(), "city"] = "?"
    texts.loc[texts["count"].isna(), "count"] = "N/A"
    texts.loc[texts["colour"].isna(), "colour"] = float("nan")
    for frame in (X, pl.from_pandas(X), texts):
        for model in models:
            np.testing.assert_array_equal(model.decision_function(frame), expected)
    # Numbers alone.
    numbers = X[["size"]].assign(other=np.arange(len(X)) / 2)
    with pytest.raises(ValueError, match="contains NaN"):
        NCA().fit(numbers, y)
    for rows in (numbers, numbers.to_numpy()):
        assert np.isfinite(NCA(missing="impute").fit(rows, y).transform(rows)).all()
    complete = SVMLClassifier().fit(*table())
    with pytest.raises(ValueError, match="row 1, column size: the value is missing"):
        complete.predict(X)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pd.date_range("2024-01-01", periods=90), "datetime64"),
        (pd.date_range("2024-01-01", periods=90, tz="UTC"), "datetime64"),
        (pd.timedelta_range("1D", periods=90), "timedelta64"),
        (pd.period_range("2024-01", periods=90, freq="M"), "period"),
        (pd.Categorical(pd.date_range("2024-01-01", periods=90)), "Timestamp"),
        ([datetime.date(2024, 1, 1)] * 90, "date"),
        ([None] + [datetime.time(12)] * 89, "time, .* in row 2"),
        ([[1, 2]] * 90, "list"),
        ([{"a": 1}] * 90, "dict"),
        ([b"x"] * 90, "bytes"),
        ([1j] * 90, "complex"),
    ],
)
def test_what_is_no_number_and_no_text_is_refused(values, kind, mixed):
    X, y = mixed
    with pytest.raises(TypeError, match=f"column 'when' holds (a )?{kind}.*leave the column out") as raised:
        SVMLClassifier().fit(X.assign(when=values), y)
    assert isinstance(raised.value, ValueError)
    with pytest.raises(ValueError, match="holds a dict"):
        SVMLClassifier().fit(np.array([[{}, 1], [{}, 2]], dtype=object), [0, 1])


@pytest.mark.parametrize(
    "value",
    [
        datetime.date(2024, 1, 1),
        datetime.datetime(2024, 1, 1),
        datetime.time(1),
        datetime.timedelta(1),
        [1],
        {"a": 1},
        b"x",
    ],
)
def test_polars_columns_that_are_refused(value, mixed):
    X, y = mixed
    frame = pl.from_pandas(X).with_columns(pl.Series("when", [value] * len(X)))
    with pytest.raises(TypeError, match="column 'when' holds .*leave the column out"):
        SVMLClassifier().fit(frame, y)


def test_tables_that_cannot_be_learned_from(mixed):
    X, y = mixed
    with pytest.raises(ValueError, match=r'nothing to learn from: who .*; fit with categories="codes"'):
        SVMLClassifier().fit(X[["who"]], y)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        SVMLClassifier().fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVMLClassifier().fit(X, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        SVMLClassifier().fit(X, None)
    with pytest.raises(ValueError, match="row 4, column size: inf is outside the accepted range"):
        SVMLClassifier().fit(X.assign(size=[0, 1, 2, np.inf] + [0] * 86), y)
    fitted = SVMLClassifier(max_iter=2).fit(X, y)
    for none in (X[:0], pl.from_pandas(X)[:0], X[:0].to_numpy(dtype=object)):
        with pytest.raises(ValueError, match="Found array with 0 sample"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted.predict(none)
    for params in ({"missing": "drop"}, {"categories": None}):
        with pytest.raises(svml.InvalidParameterError, match="parameter of NCA must be '.*' or '.*'. Got"):
            NCA(**params).fit(X, y)


def test_all_of_scikit_learn_goes_on(mixed, fitted, tmp_path):
    X, y = mixed
    assert cross_val_score(SVMLClassifier(), X, y, cv=3).mean() > 0.7
    assert cross_val_score(SVMLClassifier(), pl.from_pandas(X), y.to_numpy(), cv=3).mean() > 0.7
    search = GridSearchCV(SVMLClassifier(form="diagonal"), {"categories": ["auto", "onehot"]}, cv=2).fit(X, y)
    assert search.best_estimator_.n_features_in_ == 6
    pipeline = make_pipeline(SVML(max_iter=5), StandardScaler()).fit(X, y)
    assert len(pipeline.get_feature_names_out()) == pipeline.transform(X).shape[1]
    assert clone(fitted).get_params() == fitted.get_params()
    fitted.save(tmp_path / "m.svml")
    expected = fitted.decision_function(X)
    for same in (pickle.loads(pickle.dumps(fitted)), svml.load(tmp_path / "m.svml")):
        np.testing.assert_array_equal(same.decision_function(X), expected)
        assert list(same.feature_names_in_) == list(X.columns)
        assert list(same.encoded_feature_names_) == ENCODED
    weights = np.where(np.arange(len(X)) % 2, 1.0, 2.0)
    rows = X.drop(columns="who")
    weighted = SVMLClassifier(form="diagonal").fit(rows, y, sample_weight=weights)
    twice = SVMLClassifier(form="diagonal").fit(pd.concat([rows, rows[::2]]), pd.concat([y, y[::2]]))
    np.testing.assert_allclose(weighted.decision_function(rows), twice.decision_function(rows), atol=1e-6)
    assert sorted(RelevanceDisplay.from_estimator(fitted).names) == sorted(X.columns.drop("who"))
    assert "colour=red" in RelevanceDisplay.from_estimator(fitted, features=True).names
    # A fit on something else forgets the table.
    again = clone(fitted).fit(X, y).fit(X[["size", "count"]].to_numpy(), y)
    assert again.n_features_in_ == 2 and not hasattr(again, "feature_names_in_")


@pytest.mark.parametrize("estimator", ALL)
def test_sparse_matrices(estimator, small):
    X, y = small
    X = np.where(np.abs(X) > 0.5, X, 0)
    model = estimator(max_iter=5).fit(X, y)
    expected = model.transform(X)
    for form in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.lil_matrix):
        np.testing.assert_array_equal(model.transform(form(X)), expected)
        np.testing.assert_array_equal(estimator(max_iter=5).fit(form(X), y).transform(X), expected)
    np.testing.assert_array_equal(
        estimator(max_iter=5).fit(sparse.csr_array(X.astype(np.float32)), y).transform(X),
        estimator(max_iter=5).fit(X.astype(np.float32), y).transform(X),
    )


def test_sparse_matrices_are_bounded(small, fitted):
    model = SVMLClassifier(max_iter=5).fit(*small)
    huge = sparse.csr_array((1 << 20, 1 << 10))
    message = "dense table of 1048576 rows and 1024 columns would need 8.0 GiB, more than the limit of 2.0 GiB"
    with pytest.raises(MemoryError, match=message):
        model.predict(huge)
    with pytest.raises(MemoryError, match=message):
        SVMLClassifier().fit(huge, np.arange(1 << 20) % 2)
    with pytest.raises(ValueError, match="X has 4 features, but SVMLClassifier is expecting 6"):
        fitted.predict(sparse.csr_array(small[0]))


def test_single_precision_in_frames(mixed):
    X, y = mixed
    single = X.astype({"size": np.float32})
    expected = SVMLClassifier().fit(single.astype({"size": np.float64}), y).decision_function(single)
    for frame in (single, pl.from_pandas(single)):
        np.testing.assert_array_equal(SVMLClassifier().fit(frame, y).decision_function(single), expected)


def test_summaries_of_parts_merge_to_that_of_the_whole():
    X, _ = table(gaps=True)
    for frame, cut in ((X, X.iloc.__getitem__), (pl.from_pandas(X), pl.from_pandas(X).__getitem__)):
        whole = _core.Summary(columns_of(frame))
        a, b, c = (_core.Summary(columns_of(cut(part))) for part in (slice(0, 7), slice(7, 7), slice(7, 90)))
        for merged in (a.merge(b).merge(c), c.merge(b.merge(a)), b.merge(c).merge(a)):
            assert merged == whole and merged.rows == 90
        assert a != whole and pickle.loads(pickle.dumps(whole)) == whole
        schema = _core.Schema(a.merge(b).merge(c), missing="impute")
        assert schema == _core.Schema(whole, missing="impute") == pickle.loads(pickle.dumps(schema))
        assert schema.kinds == ["number", "onehot", "onehot", "onehot", "ignored", "number"]
        rows = schema.encode(columns_of(frame))
        parts = [schema.encode(columns_of(cut(part))) for part in (slice(0, 7), slice(7, 7), slice(7, 90))]
        np.testing.assert_array_equal(np.concatenate(parts), rows)
    assert whole.missing == [6, 6, 6, 6, 0, 6]
    assert whole.distinct == [0, 3, 2, 2, 90, 0]
    with pytest.raises(ValueError, match="columns of a part of the table: found 1, expected 6"):
        whole.merge(_core.Summary([("size", np.zeros(1))]))


def run(*args):
    done = subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def decisions(text):
    """The column of decision values, each read to its last bit."""
    return np.array([float(row["decision"]) for row in csv.DictReader(io.StringIO(text))])


@needs_command
@pytest.mark.parametrize("missing", ["refuse", "impute"])
@pytest.mark.parametrize("categories", ["auto", "onehot", "codes"])
def test_the_same_model_as_the_command_bit_for_bit(categories, missing, tmp_path):
    X, y = table(gaps=missing == "impute")
    file, theirs, ours = tmp_path / "t.csv", tmp_path / "theirs.svml", tmp_path / "ours.svml"
    X.assign(**{"class": y}).to_csv(file, index=False)
    run("train", file, "-o", theirs, "--quiet", "--missing", missing, "--categories", categories)
    answers = decisions(run("predict", theirs, file, "--decision"))
    read = pd.read_csv(file)
    frames = [X, read, pl.read_csv(file), pl.from_pandas(read)]
    loaded = svml.load(theirs)
    assert loaded.missing == missing
    for frame in frames:
        np.testing.assert_array_equal(loaded.decision_function(frame), answers)
    # A table of texts alone, as it is in the file.
    np.testing.assert_array_equal(
        loaded.decision_function(pd.read_csv(file, dtype=str, keep_default_na=False)), answers
    )
    for frame in frames[:2]:
        model = SVMLClassifier(missing=missing, categories=categories)
        model.fit(frame[list(X.columns)], read["class"]).save(ours)
        assert ours.read_bytes() == theirs.read_bytes()
        np.testing.assert_array_equal(model.decision_function(frame), answers)
    np.testing.assert_array_equal(decisions(run("predict", ours, file, "--decision")), answers)


@needs_command
def test_a_model_of_a_frame_is_used_by_the_command(mixed, tmp_path):
    X, y = mixed
    for frame, write in ((X, lambda f, p: f.to_csv(p, index=False)), (pl.from_pandas(X), lambda f, p: f.write_csv(p))):
        model = SVMLClassifier().fit(frame, y.rename("bought"))
        model.save(tmp_path / "m.svml")
        write(frame, tmp_path / "new.csv")
        answers = decisions(run("predict", tmp_path / "m.svml", tmp_path / "new.csv", "--decision"))
        np.testing.assert_array_equal(answers, model.decision_function(frame))
    # The other library's truth values, other columns and another order.
    X.assign(bought=y, more=1)[["more", "bought", *X.columns[::-1]]].to_csv(tmp_path / "new.csv", index=False)
    answers = decisions(run("predict", tmp_path / "m.svml", tmp_path / "new.csv", "--decision"))
    np.testing.assert_array_equal(answers, model.decision_function(X))
    assert "error" in run("evaluate", tmp_path / "m.svml", tmp_path / "new.csv")


@needs_command
def test_a_file_of_numbers_takes_its_columns_from_a_frame(wine_frame, tmp_path):
    X, y = wine_frame
    X.assign(kind=y).to_csv(tmp_path / "t.csv", index=False)
    run("train", tmp_path / "t.csv", "-o", tmp_path / "m.svml", "--quiet", "--form", "diagonal")
    model = svml.load(tmp_path / "m.svml")
    expected = model.decision_function(X)
    other = X[X.columns[::-1]].assign(kind=y, note="text")
    for frame in (other, pl.from_pandas(other)):
        np.testing.assert_array_equal(model.decision_function(frame), expected)
    with pytest.raises(ValueError, match="alcohol"):
        model.predict(other.drop(columns="alcohol"))


def test_neither_library_is_imported_by_the_package(tmp_path):
    # scikit-learn imports pandas where it is there, so that it must not be.
    program = (
        "import sys; sys.modules.update(pandas=None, polars=None, pyarrow=None); import numpy as np, svml;"
        "X = np.array([['a'], ['b']] * 9); svml.SVMLClassifier(max_iter=2).fit(X, [0, 1] * 9).predict(X)"
    )
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=tmp_path).returncode == 0


def passengers(n=600):
    """Rows like those of the Titanic's passengers, with four columns that are different in every row, and classes."""
    rng = np.random.RandomState(5)
    frame = pd.DataFrame(
        {
            "PassengerId": np.arange(1, n + 1),
            "Name": [f"Passenger, {k * 7919 % 104729}" for k in range(n)],
            "Ticket": [f"T{k * 37:05}" for k in range(n)],
            "When": pd.date_range("2026-01-01", periods=n, freq="7h").strftime("%d.%m.%Y %H:%M"),
            "Age": rng.randint(1, 80, n),
            "Fare": rng.gamma(2, 15, n).round(2),
            "Sex": rng.choice(["female", "male"], n),
        }
    )
    survived = ((frame["Age"] < 14) | ((frame["Sex"] == "female") & (frame["Fare"] > 15))) ^ (rng.rand(n) < 0.08)
    return frame, pd.Series(np.where(survived, "yes", "no"), name="Survived")


IDENTIFIERS = (
    r"columns left out because they look like identifiers, which say nothing about new rows: "
    r"PassengerId \(it numbers the rows\), Name, Ticket "
    r"\(their text differs in almost every row\), When \(it holds dates\); use categories='codes' or 'onehot'"
)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_identifiers_are_named_and_left_out(library):
    X, y = passengers()
    # In any order, and with gaps, as a split leaves them.
    order = np.random.RandomState(0).permutation(len(X))
    train, test = X.iloc[order[:450]], X.iloc[order[450:]]
    rows = train if library == "pandas" else pl.from_pandas(train)
    with pytest.warns(UserWarning, match=IDENTIFIERS):
        model = SVMLClassifier(form="diagonal").fit(rows, y.iloc[order[:450]].to_numpy())
    assert list(model.encoded_feature_names_) == ["Age", "Fare", "Sex=female", "Sex=male"]
    assert model.n_features_in_ == 7
    assert sum("left out" in text for text in model.warnings_) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.score(test, y.iloc[order[450:]]) > 0.85
        # Columns that are left out need not be there, and may hold anything.
        some = test.drop(columns=["Name", "When"]).assign(PassengerId="?")
        np.testing.assert_array_equal(model.predict(some), model.predict(test))
    everything = SVMLClassifier(form="sphere", max_iter=2, categories="codes").fit(train, y.iloc[order[:450]])
    assert list(everything.encoded_feature_names_) == list(X.columns)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_row_numbers_among_numbers(library):
    X, y = passengers()
    numbers = X[["PassengerId", "Age", "Fare"]]
    frame = numbers if library == "pandas" else pl.from_pandas(numbers)
    with pytest.warns(UserWarning, match=r"PassengerId \(it numbers the rows\); use categories="):
        model = SVMLClassifier(form="diagonal").fit(frame, y.to_numpy())
    without = SVMLClassifier(form="diagonal").fit(frame[["Age", "Fare"]], y.to_numpy())
    np.testing.assert_array_equal(model.decision_function(frame), without.decision_function(frame[["Age", "Fare"]]))
    # Numbers without names are not looked at, and neither is a table whose columns are all wanted.
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*left out")
        for rows, how in ((numbers.to_numpy(), "auto"), (frame, "codes")):
            assert len(SVMLClassifier(form="sphere", categories=how).fit(rows, y.to_numpy()).mean_) == 3
        # A measurement that is sorted, one that is a little short of different, and one that is constant.
        sorted_ = np.sort(np.random.RandomState(0).choice(5000, 600, replace=False))
        twice = np.r_[0, np.arange(599)]
        measured = pd.DataFrame({"sorted": sorted_, "twice": twice})
        assert len(SVMLClassifier(form="sphere").fit(measured, y).mean_) == 2


def test_rows_unlike_those_of_training_are_counted():
    X, y = passengers()
    X = X[["Age", "Fare", "Sex"]]
    model = SVMLClassifier(form="diagonal", missing="impute").fit(X, y)
    odd = X[:5].astype({"Age": float}).assign(Age=[30, 900, np.nan, -200, 40], Sex=["male", "robot", "x", None, "male"])
    told = (
        r"^Age: 2 rows are far outside the range of the training data, \d+ to \d+, such as 900; "
        "Sex: 2 rows have a category that is not in the training data, such as 'robot'$"
    )
    for ask in (model.predict, model.predict_proba, model.decision_function, model.transform):
        for rows in (odd, pl.from_pandas(odd)):
            with pytest.warns(UserWarning, match=told) as caught:
                ask(rows)
            # What transforms is wrapped by scikit-learn.
            assert len(caught) == 1 and (caught[0].filename == __file__ or ask == model.transform)
    numbers = SVMLClassifier(form="sphere").fit(X[["Age", "Fare"]], y)
    with pytest.warns(UserWarning, match="^Fare: 1 row is far outside the range"):
        numbers.predict(pd.DataFrame({"Age": [30], "Fare": [1e6]}))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*training data")
        numbers.predict(np.array([[30, 1e6]]))
        model.predict(X)


def test_importance_by_column(fitted, mixed):
    display = RelevanceDisplay.from_estimator(fitted)
    of_column = dict(zip(display.names, display.relevance))
    names = [name.partition("=")[0] for name in fitted.encoded_feature_names_]
    for name, share in of_column.items():
        own = fitted.feature_importances_[[n == name for n in names]].sum()
        assert share == pytest.approx(own, abs=1e-12)
    assert sum(of_column.values()) == pytest.approx(1)
    # One width treats columns alike, however many levels they have.
    sphere = RelevanceDisplay.from_estimator(SVMLClassifier(form="sphere").fit(*mixed))
    np.testing.assert_allclose(sphere.relevance, 1 / 5, rtol=1e-9)


@needs_command
def test_the_command_leaves_out_the_same(tmp_path):
    X, y = passengers()
    X.assign(Survived=y).to_csv(tmp_path / "t.csv", index=False)
    subprocess.run([COMMAND, "train", "t.csv", "-o", "m", "--quiet"], cwd=tmp_path, check=True)
    SVMLClassifier().fit(X, y).save(tmp_path / "p")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "p").read_bytes()
    kept = subprocess.run(
        [COMMAND, "predict", "p", "t.csv", "--keep", "PassengerId,Name"], cwd=tmp_path, check=True, capture_output=True
    )
    rows = pd.read_csv(io.BytesIO(kept.stdout))
    assert list(rows.columns) == ["PassengerId", "Name", "Survived"]
    pd.testing.assert_frame_equal(rows[["PassengerId", "Name"]], X[["PassengerId", "Name"]], check_dtype=False)
