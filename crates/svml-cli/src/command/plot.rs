//! `svml plot`: a model as a picture.

use svml_plot::{Draw, Map, MetricMatrix, Relevance, Reliability, Trace};

use crate::args::{Kind, Plot};
use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::files::{self, Rows};

/// Runs the command.
pub fn run(args: &Plot, console: &Console) -> Outcome {
    let Some(png) = files::picture_format(&args.output) else {
        return Err(Failure::Usage(format!(
            "-o {}: the name of a picture must end in .svg or .png",
            args.output
        )));
    };
    files::check_writable(&args.output)?;
    let model = match args.kind {
        Kind::Reliability => files::classifier(&args.model)?,
        _ => files::model(&args.model)?,
    };
    let rows = || -> Result<Rows, Failure> {
        let Some(data) = &args.data else {
            return Err(Failure::Usage(
                "this picture shows rows: give a data file after the model".to_owned(),
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
                    "{}: this model was not learned step by step, so there is no curve; draw another --kind",
                    args.model
                ))
            })?;
            trace.draw(&title("Learning curve"))
        }
        Kind::Metric => {
            let title = title("The metric M = L'L, standardised features");
            MetricMatrix::new(&model).draw(&title)
        }
        Kind::Relevance => Relevance::new(&model).draw(&title("Relevance of the features")),
        Kind::Reliability => {
            let rows = rows()?;
            let labels = files::labels(&rows)?;
            Reliability::new(&model, &rows.rows.x, labels)
                .map_err(|e| Failure::with_file(&rows.name, e))?
                .draw(&title("Reliability of the probabilities"))
        }
    };
    files::write_picture(&picture, png, &args.output)?;
    console.note(&format!("the picture is in {}", args.output));
    Ok(())
}
