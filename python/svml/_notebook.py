"""What a fitted estimator shows in a notebook, below the diagram of scikit-learn."""

from __future__ import annotations

from html import escape
from typing import Any

# Columns that are listed.
SHOWN = 5

STYLE = (
    "border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums",
    "text-align:left;padding:.15em .8em .15em 0;font-weight:600;vertical-align:top",
    "text-align:left;padding:.15em 0",
)


def summary(estimator: Any) -> str:
    """What was learned, as a small table."""
    model = estimator._model
    rows: list[tuple[str, str]] = []
    report = model.report
    count = report["rows"]
    classes = ", ".join(map(str, estimator.classes_[:8])) + (", ..." if len(estimator.classes_) > 8 else "")
    rows.append(("Learned from", f"{count} rows, {len(estimator.classes_)} classes: {classes}"))
    honest = report.get("honest")
    if honest is not None:
        error, spread, guess = (100 * honest[key] for key in ("error", "standard_error", "guessing"))
        weighted = " (weighted)" if honest.get("weighted") else ""
        words = f"{error:.1f} % ± {spread:.1f} % on held-out rows{weighted}; guessing: {guess:.1f} %"
        rows.append(("Expected error", words))
    members = [f"{m['weight']:.2f} {m['kernel']} {m['form']}, C = {m['cost']:.3g}" for m in model.members]
    if members:
        rows.append(("SVM" if len(members) == 1 else "Mean of SVMs", "; ".join(members)))
    shares = sorted(zip(estimator.feature_importances_, estimator.encoded_feature_names_), reverse=True)[:SHOWN]
    rows.append(("Most important", ", ".join(f"{name} {100 * share:.0f} %" for share, name in shares)))
    if model.device != "cpu":
        rows.append(("Computed on", model.device))
    if report["warnings"]:
        rows.append(("Note", "; ".join(report["warnings"][:3])))
    table, head, cell = STYLE
    lines = (
        f'<tr><th scope="row" style="{head}">{escape(name)}</th><td style="{cell}">{escape(text)}</td></tr>'
        for name, text in rows
    )
    return f'<table style="{table}">{"".join(lines)}</table>'
