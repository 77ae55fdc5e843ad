//! `svml plot`: a model as a picture.

use svml_plot::{
    Confusion, Draw, Map, MetricMatrix, PrecisionRecall, Relevance, Reliability, Roc, Trace,
};

use crate::args::{Kind, Plot};
use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::files::{self, Rows};
use crate::words;

/// Runs the command.
pub fn run(args: &Plot, console: &Console) -> Outcome {
    let png = files::is_png(&args.output)?;
    let has_class = matches!(args.kind, Kind::Reliability | Kind::Roc | Kind::PrecisionRecall);
    if args.class.is_some() && !has_class {
        return Err(Failure::Usage(
            "--class works only with --kind reliability, roc or precision-recall; leave it out"
                .to_owned(),
        ));
    }
    if args.features && args.kind != Kind::Relevance {
        return Err(Failure::Usage(
            "--features works only with --kind relevance; leave it out".to_owned(),
        ));
    }
    let data = args.data.as_deref().map(|data| ("DATA", data));
    let read: Vec<_> = [("MODEL", args.model.as_str())].into_iter().chain(data).collect();
    files::check_apart(&read, &[("-o", &args.output)])?;
    files::check_writable(&args.output)?;
    let model = match args.kind {
        Kind::Map | Kind::Trace | Kind::Metric | Kind::Relevance => files::model(&args.model)?,
        _ => files::classifier(&args.model)?,
    };
    let class = args.class.as_deref();
    if let Some(class) = class.filter(|class| !model.classes().iter().any(|known| known == class)) {
        return Err(Failure::Usage(format!(
            "--class {class}: the model has no such class; its classes are {}",
            words::listed_names(model.classes())
        )));
    }
    let rows = || -> Result<Rows, Failure> {
        let Some(data) = &args.data else {
            return Err(Failure::Usage(
                "this kind of plot shows rows: give a data file after the model".to_owned(),
            ));
        };
        files::rows(&model, data, &args.reading, console)
    };
    let title = |default: &str| args.title.clone().unwrap_or_else(|| default.to_owned());
    let picture = match args.kind {
        Kind::Map => {
            let rows = rows()?;
            Map::new(&model, &rows.rows.x, rows.rows.labels.as_deref())
                .map_err(|e| Failure::with_file(&rows.name, e))?
                .draw(&title("Decision map"))
        }
        Kind::Trace => {
            let trace = Trace::new(&model).ok_or_else(|| {
                Failure::Data(format!(
                    "{}: this model was not learned step by step, so it has no trace; choose another --kind",
                    args.model
                ))
            })?;
            trace.draw(&title("Learning, step by step"))
        }
        Kind::Metric => {
            let title = title("The metric M = L'L, standardised features");
            MetricMatrix::new(&model).draw(&title)
        }
        Kind::Relevance if args.features => {
            Relevance::by_feature(&model).draw(&title("Relevance of the features"))
        }
        Kind::Relevance => Relevance::new(&model).draw(&title("Relevance of the columns")),
        Kind::Reliability | Kind::Roc | Kind::PrecisionRecall | Kind::Confusion => {
            let rows = rows()?;
            let (x, labels) = (&rows.rows.x, files::labels(&rows)?);
            let drawn = match (args.kind, class) {
                (Kind::Roc, _) => {
                    Roc::new(&model, x, labels, class).map(|roc| roc.draw(&title("ROC curve")))
                }
                (Kind::PrecisionRecall, _) => PrecisionRecall::new(&model, x, labels, class)
                    .map(|curve| curve.draw(&title("Precision and recall"))),
                (Kind::Confusion, _) => Confusion::new(&model, x, labels)
                    .map(|confusion| confusion.draw(&title("Confusion matrix"))),
                (_, None) => Reliability::new(&model, x, labels)
                    .map(|found| found.draw(&title("Reliability of the probabilities"))),
                (_, Some(class)) => Reliability::of_class(&model, x, labels, class)
                    .map(|found| found.draw(&title("Reliability of the probabilities"))),
            };
            drawn.map_err(|e| Failure::of_model(&args.model, &rows.name, e))?
        }
    };
    files::write_picture(&picture, png, &args.output)?;
    console.note(&format!("the plot is in {}", args.output));
    Ok(())
}
