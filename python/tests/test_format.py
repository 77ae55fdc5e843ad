"""A reader of the model file that was written from docs/model-format.md alone: what the page says is enough."""

import json
import struct
import zlib

import numpy as np
import pytest

from svml import SVMLClassifier


class Reader:
    """A model of version 3 or 6."""

    def __init__(self, data):
        body, (checksum,) = data[:-4], struct.unpack("<I", data[-4:])
        assert body[:8] == b"SVML\r\n\x1a\n" and zlib.crc32(body) == checksum
        self.version, length = struct.unpack("<IQ", body[8:20])
        header = json.loads(body[20 : 20 + length])
        arrays = np.frombuffer(body[20 + length :], "<f8")
        d, k, s = len(header["scaler"]["mean"]), len(header["classes"]), len(header["support_rows"])
        self.members = header.get("members") or [
            {"weight": 1.0, "kernel": "gaussian", **{key: header[key] for key in ("form", "cost", "bias")}}
        ]

        def take(*shape):
            nonlocal arrays
            count = int(np.prod(shape))
            taken, arrays = arrays[:count].reshape(shape), arrays[count:]
            return taken

        for member in self.members:
            form = member["form"]
            if form == "sphere":
                member["L"] = take(1) * np.eye(d)
            elif form == "diagonal":
                member["L"] = np.diag(take(d))
            else:
                rank = d if form == "full" else int(form.removeprefix("rank="))
                member["L"] = take(rank, d)
        support = take(s, d)
        for member in self.members:
            member["beta"] = take(k - 1, s)
        assert len(arrays) == 0
        self.scaler, self.temperature, self.k = header["scaler"], header["temperature"], k
        self.class_of = np.repeat(np.arange(k), header["support_counts"])
        self.support = self.scaled(support)

    def scaled(self, X):
        scale = np.array(self.scaler["scale"])
        u = ((X - np.array(self.scaler["mean"])) / np.where(scale > 0, scale, 1)).clip(-1e70, 1e70)
        return np.where(scale > 0, u, 0)

    def kernel(self, member, u):
        L, apart = member["L"], u[:, None, :] - self.support[None, :, :]
        if member["kernel"] == "laplacian":
            return np.exp(-(np.abs(np.diag(L)) * np.abs(apart)).sum(axis=2))
        distance = np.linalg.norm(apart @ L.T, axis=2)
        return np.exp(-distance if member["kernel"] == "exponential" else -(distance**2))

    def outputs(self, X):
        """The mean of the outputs of the members, pair by pair."""
        u = self.scaled(X)
        pairs = [(i, j) for i in range(self.k) for j in range(i + 1, self.k)]
        mean = np.zeros((len(X), len(pairs)))
        for member in self.members:
            K = self.kernel(member, u)
            for p, (i, j) in enumerate(pairs):
                # Row j - 1 of beta has the SVM of class i with class j, row i that of class j with class i.
                beta = np.where(self.class_of == i, member["beta"][j - 1], 0)
                beta = np.where(self.class_of == j, member["beta"][i], beta)
                mean[:, p] += member["weight"] * (K @ beta + member["bias"][p])
        return mean, pairs

    def decision(self, X):
        h, pairs = self.outputs(X)
        if self.k == 2:
            return h[:, 0]
        won, favour = np.zeros((2, len(X), self.k))
        for p, (i, j) in enumerate(pairs):
            second = h[:, p] > 0
            won[:, i] += ~second
            won[:, j] += second
            favour[:, i] -= h[:, p]
            favour[:, j] += h[:, p]
        return won + favour / (3 * (np.abs(favour) + 1))

    def probabilities(self, X):
        values = self.decision(X)
        if self.k == 2:
            values = np.column_stack([np.zeros_like(values), values])
        e = np.exp((values - values.max(axis=1, keepdims=True)) / self.temperature)
        return e / e.sum(axis=1, keepdims=True)

    def mahalanobis(self):
        """M on features as they are."""
        M = 0
        for member in self.members:
            own = member["L"].T @ member["L"]
            M = M + (own if len(self.members) == 1 else member["weight"] * own / np.trace(own))
        scale = np.array(self.scaler["scale"])
        inverse = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1), 0)
        return M * np.outer(inverse, inverse)


@pytest.mark.filterwarnings("ignore:column .* is constant")
@pytest.mark.parametrize("data", ["wine", "cancer"])
@pytest.mark.parametrize(
    ("params", "version"),
    [
        ({}, 6),
        ({"cross_fit": False}, 6),
        ({"form": "sphere", "kernel": "laplacian"}, 6),
        ({"form": "low_rank", "n_components": 2, "kernel": "exponential"}, 6),
        ({"form": "low_rank", "n_components": 2}, 3),
        ({"form": "full", "max_iter": 3}, 3),
    ],
)
def test_the_page_is_enough_to_read_a_file(data, params, version, request):
    X, y = request.getfixturevalue(data)
    # One column that is constant, and so left out.
    X = np.column_stack([X, np.full(len(X), 7.0)])
    model = SVMLClassifier(**params).fit(X[::2], y[::2])
    read = Reader(model._model.to_bytes())
    assert read.version == version
    assert len(read.members) == len(model.members_)
    np.testing.assert_allclose(read.decision(X), model.decision_function(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(read.probabilities(X), model.predict_proba(X), rtol=1e-8, atol=1e-9)
    M = model.get_mahalanobis_matrix()
    np.testing.assert_allclose(read.mahalanobis(), M, rtol=1e-9, atol=1e-12 * np.abs(M).max())
