//! The library's figures as dicts of arrays, with the names of their fields; `_displays.py` draws them.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use svml::figures::{
    Bin, Confusion, Map, MetricMatrix, Point, PrecisionRecall, Relevance, Reliability, Roc, Trace,
    Waterfall,
};
use svml::{Alike, Explanation};

use crate::convert::array;

/// The map; a class that is not known is -1.
pub fn map<'py>(py: Python<'py>, map: Map) -> PyResult<Bound<'py, PyDict>> {
    let columns = map.columns;
    let grid = |values: Vec<f64>| -> PyResult<Bound<'py, PyArray2<f64>>> {
        let shape = [values.len() / columns, columns];
        values.into_pyarray(py).reshape(shape)
    };
    let of = |value: fn(&Point) -> f64| -> Bound<'py, PyArray1<f64>> {
        map.points.iter().map(value).collect::<Vec<f64>>().into_pyarray(py)
    };
    let classes: Vec<i64> =
        map.points.iter().map(|point| point.class.map_or(-1, |class| class as i64)).collect();
    let support: Vec<bool> = map.points.iter().map(|point| point.support).collect();
    let figure = PyDict::new(py);
    figure.set_item("note", map.note())?;
    figure.set_item("axes", array(py, map.axes)?)?;
    figure.set_item("axis_labels", &map.axis_labels)?;
    figure.set_item("axis_terms", &map.axis_terms)?;
    figure.set_item("ringed", map.ringed)?;
    figure.set_item("outside", map.outside)?;
    figure.set_item("which", map.which)?;
    figure.set_item("flat", map.flat)?;
    figure.set_item("exact", map.exact)?;
    figure.set_item("rows", map.rows)?;
    figure.set_item("classes", &map.classes)?;
    figure.set_item("x", of(|point| point.x))?;
    figure.set_item("y", of(|point| point.y))?;
    figure.set_item("class", classes.into_pyarray(py))?;
    figure.set_item("support", support.into_pyarray(py))?;
    figure.set_item("x_range", map.x_range)?;
    figure.set_item("y_range", map.y_range)?;
    figure.set_item("background", &map.background)?;
    figure.set_item("margins", map.margins)?;
    let shape = [map.decided.len() / columns, columns];
    figure.set_item("decided", map.decided.into_pyarray(py).reshape(shape)?)?;
    figure.set_item("decision", map.decision.map(grid).transpose()?)?;
    figure.set_item("strength", grid(map.strength)?)?;
    Ok(figure)
}

/// The learning curves.
pub fn trace<'py>(py: Python<'py>, trace: Trace) -> PyResult<Bound<'py, PyDict>> {
    let errors = PyDict::new(py);
    for (name, values) in trace.errors {
        errors.set_item(name, values.into_pyarray(py))?;
    }
    let named = trace.stages.iter().zip(&trace.names);
    let stages: Vec<(String, usize, usize)> =
        named.map(|(stage, name)| (name.clone(), stage.first, stage.last)).collect();
    let figure = PyDict::new(py);
    figure.set_item("loss", trace.loss.into_pyarray(py))?;
    figure.set_item("errors", errors)?;
    figure.set_item("stages", stages)?;
    figure.set_item("best", trace.best)?;
    figure.set_item("weights", trace.weights.into_pyarray(py))?;
    figure.set_item("stop", trace.stop.map(|stop| stop.to_string()))?;
    Ok(figure)
}

/// The matrix of the metric.
pub fn metric_matrix<'py>(py: Python<'py>, matrix: MetricMatrix) -> PyResult<Bound<'py, PyDict>> {
    let figure = PyDict::new(py);
    figure.set_item("names", matrix.names)?;
    figure.set_item("values", array(py, matrix.values)?)?;
    figure.set_item("features", matrix.features)?;
    figure.set_item("mean_of", matrix.mean_of)?;
    Ok(figure)
}

/// The relevance of the features.
pub fn relevance<'py>(py: Python<'py>, relevance: Relevance) -> PyResult<Bound<'py, PyDict>> {
    let figure = PyDict::new(py);
    figure.set_item("names", relevance.names)?;
    figure.set_item("values", relevance.values.into_pyarray(py))?;
    figure.set_item("low", relevance.low.into_pyarray(py))?;
    figure.set_item("high", relevance.high.into_pyarray(py))?;
    Ok(figure)
}

/// The calibration of the probabilities.
pub fn reliability<'py>(py: Python<'py>, reliability: Reliability) -> PyResult<Bound<'py, PyDict>> {
    let of = |value: fn(&Bin) -> f64| -> Bound<'py, PyArray1<f64>> {
        reliability.bins.iter().map(value).collect::<Vec<f64>>().into_pyarray(py)
    };
    let rows: Vec<usize> = reliability.bins.iter().map(|bin| bin.rows).collect();
    let figure = PyDict::new(py);
    figure.set_item("event", &reliability.event)?;
    figure.set_item("rows", rows.into_pyarray(py))?;
    figure.set_item("predicted", of(|bin| bin.predicted))?;
    figure.set_item("observed", of(|bin| bin.observed))?;
    figure.set_item("low", of(|bin| bin.interval[0]))?;
    figure.set_item("high", of(|bin| bin.interval[1]))?;
    figure.set_item("counts", reliability.counts.into_pyarray(py))?;
    figure.set_item("calibration_error", reliability.calibration_error)?;
    Ok(figure)
}

/// ROC curves, a dict for each.
pub fn roc<'py>(py: Python<'py>, roc: Roc) -> PyResult<Bound<'py, PyDict>> {
    let curves = (roc.curves.into_iter())
        .map(|curve| {
            let one = PyDict::new(py);
            one.set_item("class", curve.class)?;
            one.set_item("rows", curve.rows)?;
            one.set_item("thresholds", curve.thresholds.into_pyarray(py))?;
            one.set_item("false_positive_rate", curve.false_positive_rate.into_pyarray(py))?;
            one.set_item("true_positive_rate", curve.true_positive_rate.into_pyarray(py))?;
            one.set_item("auc", curve.auc)?;
            one.set_item("interval", curve.interval)?;
            Ok(one)
        })
        .collect::<PyResult<Vec<_>>>()?;
    let figure = PyDict::new(py);
    figure.set_item("curves", curves)?;
    figure.set_item("rows", roc.rows)?;
    Ok(figure)
}

/// Precision against recall, a dict for each curve.
pub fn precision_recall<'py>(
    py: Python<'py>,
    all: PrecisionRecall,
) -> PyResult<Bound<'py, PyDict>> {
    let curves = (all.curves.into_iter())
        .map(|curve| {
            let one = PyDict::new(py);
            one.set_item("class", curve.class)?;
            one.set_item("rows", curve.rows)?;
            one.set_item("thresholds", curve.thresholds.into_pyarray(py))?;
            one.set_item("recall", curve.recall.into_pyarray(py))?;
            one.set_item("precision", curve.precision.into_pyarray(py))?;
            one.set_item("average_precision", curve.average_precision)?;
            one.set_item("interval", curve.interval)?;
            one.set_item("base_rate", curve.base_rate)?;
            Ok(one)
        })
        .collect::<PyResult<Vec<_>>>()?;
    let figure = PyDict::new(py);
    figure.set_item("curves", curves)?;
    figure.set_item("rows", all.rows)?;
    Ok(figure)
}

/// The confusion matrix.
pub fn confusion<'py>(py: Python<'py>, confusion: Confusion) -> PyResult<Bound<'py, PyDict>> {
    let n = confusion.classes.len();
    let counts: Vec<usize> = confusion.counts.into_iter().flatten().collect();
    let shares: Vec<f64> = confusion.shares.into_iter().flatten().collect();
    let figure = PyDict::new(py);
    figure.set_item("classes", confusion.classes)?;
    figure.set_item("counts", counts.into_pyarray(py).reshape([n, n])?)?;
    figure.set_item("shares", shares.into_pyarray(py).reshape([n, n])?)?;
    figure.set_item("error", confusion.error)?;
    figure.set_item("interval", confusion.interval)?;
    figure.set_item("rows", confusion.rows)?;
    Ok(figure)
}

/// The contributions of columns, and what the rows hold there as texts.
pub fn explanation<'py>(
    py: Python<'py>,
    why: Explanation,
    cells: Vec<Vec<String>>,
) -> PyResult<Bound<'py, PyDict>> {
    let between: Vec<usize> = why.between.iter().flatten().copied().collect();
    let rows = why.between.len();
    let found = PyDict::new(py);
    found.set_item("columns", &why.columns)?;
    found.set_item("contributions", array(py, why.contributions)?)?;
    found.set_item("output", why.output.into_pyarray(py))?;
    found.set_item("base", why.base.into_pyarray(py))?;
    found.set_item("between", between.into_pyarray(py).reshape([rows, 2])?)?;
    found.set_item("cells", cells)?;
    Ok(found)
}

/// The training rows that are like some rows, the same number for each of them.
pub fn alike<'py>(py: Python<'py>, found: Vec<Vec<Alike>>) -> PyResult<Bound<'py, PyDict>> {
    let shape = [found.len(), found.first().map_or(0, Vec::len)];
    let all: Vec<Alike> = found.into_iter().flatten().collect();
    let numbers = |of: fn(&Alike) -> usize| -> PyResult<Bound<'py, PyArray2<usize>>> {
        all.iter().map(of).collect::<Vec<usize>>().into_pyarray(py).reshape(shape)
    };
    let values = |of: fn(&Alike) -> f64| -> PyResult<Bound<'py, PyArray2<f64>>> {
        all.iter().map(of).collect::<Vec<f64>>().into_pyarray(py).reshape(shape)
    };
    let arrays = PyDict::new(py);
    arrays.set_item("row", numbers(|alike| alike.row)?)?;
    arrays.set_item("class", numbers(|alike| alike.class)?)?;
    arrays.set_item("distance", values(|alike| alike.distance)?)?;
    arrays.set_item("pull", values(|alike| alike.pull)?)?;
    Ok(arrays)
}

/// Why one row is classified as it is.
pub fn waterfall<'py>(py: Python<'py>, figure: Waterfall) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("columns", figure.columns)?;
    found.set_item("values", figure.values)?;
    found.set_item("contributions", figure.contributions.into_pyarray(py))?;
    found.set_item("others", figure.others)?;
    found.set_item("rest", figure.rest)?;
    found.set_item("base", figure.base)?;
    found.set_item("output", figure.output)?;
    found.set_item("between", figure.between.to_vec())?;
    Ok(found)
}
