//! Figures of ordinary and of awkward data: nothing may be cut off, no number may be missing, every
//! picture must be a file that a reader of SVG takes. With SVML_PICTURES set to a folder the pictures
//! are left there to be looked at.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, Group, Node, Options, Tree};
use svml::learners::Nca;
use svml::{Dataset, Form, Generator, GridSearch, Kernel, Matrix, Method, Model, Run, Svml};
use svml_plot::{
    Confusion, Curve, CurvePanel, DotPanel, Dots, Draw, LearningCurve, Lines, Map, Mark,
    MetricMatrix, Picture, Plane, PlanePath, PrecisionRecall, Relevance, Reliability, Roc, Trace,
};

fn labels(data: &Dataset) -> Vec<String> {
    data.y().iter().map(|&c| data.classes()[c].clone()).collect()
}

/// Checks a picture and writes it where the environment says.
fn check(name: &str, picture: &Picture) {
    let svg = picture.svg();
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(include_bytes!("../fonts/DejaVuSans-subset.ttf").to_vec());
    let options = Options {
        fontdb: Arc::new(fonts),
        font_family: "DejaVu Sans".to_owned(),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).unwrap();
    let (width, height) = (tree.size().width(), tree.size().height());
    let mut texts = 0;
    each_text(tree.root(), &mut |left, top, right, bottom, text| {
        texts += 1;
        let inside = left >= 0.0 && top >= 0.0 && right <= width && bottom <= height;
        assert!(
            inside,
            "{name}: '{text}' at {left} {top} {right} {bottom} leaves {width} x {height}"
        );
    });
    assert!(texts >= 4, "{name} has {texts} texts");
    let png = picture.png().unwrap();
    compare(name, &png, &tree);
    if let Some(folder) = std::env::var_os("SVML_PICTURES") {
        let folder = std::path::PathBuf::from(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.svg")), svg).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), png).unwrap();
    }
}

/// Our pixels against those of a reader of SVG, which places letters closer where they fit into each other.
fn compare(name: &str, png: &[u8], tree: &Tree) {
    let ours = Pixmap::decode_png(png).unwrap();
    let (width, height) = (2.0 * tree.size().width(), 2.0 * tree.size().height());
    let mut theirs = Pixmap::new(width as u32, height as u32).unwrap();
    resvg::render(tree, Transform::from_scale(2.0, 2.0), &mut theirs.as_mut());
    assert_eq!((ours.width(), ours.height()), (theirs.width(), theirs.height()), "{name}");
    let pairs = ours.data().iter().zip(theirs.data());
    let apart: u64 = pairs.map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    let mean = apart as f64 / ours.data().len() as f64;
    assert!(mean < 2.0, "{name}: {mean} of 255 apart");
}

fn each_text(group: &Group, each: &mut impl FnMut(f32, f32, f32, f32, &str)) {
    for node in group.children() {
        match node {
            Node::Group(group) => each_text(group, each),
            Node::Text(text) => {
                let b = text.abs_bounding_box();
                let content: String = text.chunks().iter().map(|c| c.text()).collect();
                each(b.left(), b.top(), b.right(), b.bottom(), &content);
            }
            _ => {}
        }
    }
}

fn all(name: &str, model: &Model, data: &Dataset) {
    let map = Map::new(model, data.x(), Some(&labels(data))).unwrap();
    check(&format!("{name}-map"), &map.draw(&format!("{name}: decision map")));
    if let Some(trace) = Trace::new(model) {
        check(&format!("{name}-trace"), &trace.draw("Learning curve"));
    }
    check(&format!("{name}-metric"), &MetricMatrix::new(model).draw("The metric M = L'L"));
    check(&format!("{name}-relevance"), &Relevance::new(model).draw("Relevance of the features"));
    let reliability = Reliability::new(model, data.x(), &labels(data)).unwrap();
    check(&format!("{name}-reliability"), &reliability.draw("Reliability of the probabilities"));
    let roc = Roc::new(model, data.x(), &labels(data), None).unwrap();
    check(&format!("{name}-roc"), &roc.draw("ROC curve"));
    let curve = PrecisionRecall::new(model, data.x(), &labels(data), None).unwrap();
    check(&format!("{name}-precision-recall"), &curve.draw("Precision and recall"));
    let confusion = Confusion::new(model, data.x(), &labels(data)).unwrap();
    check(&format!("{name}-confusion"), &confusion.draw("Confusion matrix"));
}

fn fit(data: &Dataset, form: Form) -> Model {
    Model::fit(data, Svml { form: form.into(), ..Svml::paper() }).unwrap()
}

#[test]
fn two_classes_in_a_plane() {
    let data = Generator::default().generate().unwrap().data;
    all("rank2", &fit(&data, Form::Rank(2)), &data);
}

#[test]
fn a_full_metric_and_a_euclidean_one() {
    let data = Generator::default().generate().unwrap().data;
    all("full", &fit(&data, Form::Full), &data);
    all("euclidean", &Model::fit(&data, GridSearch::default()).unwrap(), &data);
}

/// Rows with two columns that tell the class, one of them only half of the way, and some that do not.
fn columns(rows: usize) -> Dataset {
    let random =
        Generator { rows, noise: 4, seed: 3, ..Default::default() }.generate().unwrap().data;
    let x = random.x();
    let class = |i: usize| usize::from(x[(i, 0)] + 0.5 * x[(i, 1)].abs() + 0.4 * x[(i, 5)] > 0.3);
    let y: Vec<usize> = (0..rows).map(class).collect();
    let x = Matrix::from_fn(rows, 5, |i, k| x[(i, k)]);
    Dataset::new(x, &y).unwrap()
}

#[test]
fn the_mean_of_several_svms() {
    let data = columns(300);
    let model = Model::fit(&data, Svml::default()).unwrap();
    assert_eq!(model.members().len(), 3, "{model}");
    all("mean", &model, &data);
    let trace = Trace::new(&model).unwrap();
    let kinds = ["gaussian sphere", "exponential diagonal", "laplacian sphere"];
    let halves = kinds.map(|kind| format!("{kind}, on a half"));
    assert_eq!((&trace.names[..3], &trace.names[3..]), (&halves[..], &kinds.map(String::from)[..]));
    assert!(trace.best.is_none());
    let svg = trace.draw("Learning curve").svg().to_owned();
    for (kind, weight) in kinds.iter().zip(&trace.weights[3..]) {
        // Once for the half, once for all rows.
        assert_eq!(svg.matches(&format!(">{kind}</text>")).count(), 2, "{kind}: {svg}");
        assert!(svg.contains(&format!("weight {weight:.2}</text>")), "{kind}: {svg}");
    }
    assert_eq!(svg.matches("on half of the rows</text>").count(), 3, "{svg}");
    assert!(svg.contains("The model is the mean of 3 SVMs") && !svg.contains("kept"));
    let relevance = Relevance::new(&model);
    assert!(relevance.is_spread());
    let svg = relevance.draw("Relevance of the features").svg().to_owned();
    assert!(svg.contains("mean over the SVMs"));
    // Other kernels, alone; and a mean for several classes.
    for kernel in [Kernel::Exponential, Kernel::Laplacian] {
        let params = Svml { form: Form::Diagonal.into(), kernel, ..Svml::default() };
        let model = Model::fit(&data, params).unwrap();
        all(&format!("{kernel}"), &model, &data);
        let svg = Relevance::new(&model).draw("Relevance").svg().to_owned();
        assert!(!svg.contains("mean over the SVMs"));
    }
    let generator = Generator { rows: 150, classes: 3, flipped: 0.0, ..Default::default() };
    let data = generator.generate().unwrap().data;
    let params = Svml { cross_fit: false, ..Svml::default() };
    all("mean-classes", &Model::fit(&data, params).unwrap(), &data);
}

#[test]
fn few_directions_instead_of_a_mean() {
    let data = Generator { rows: 1000, ..Default::default() }.generate().unwrap().data;
    let model = Model::fit(&data, Svml::default()).unwrap();
    all("auto", &model, &data);
    let trace = Trace::new(&model).unwrap();
    assert_eq!(trace.names[2..], ["laplacian sphere, on a half", "gaussian rank=2"]);
    assert_eq!(trace.weights, [0.0, 0.0, 0.0, 1.0]);
    let svg = trace.draw("Learning curve").svg().to_owned();
    assert!(svg.contains("The model is the gaussian rank=2 SVM of step "), "{svg}");
    for part in ["on half of the rows</text>", "the model</text>", ">kept</text>"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    // Too many steps of one SVM for the names of the others to fit above their own.
    let mut long = trace.clone();
    let last = &mut long.stages.last_mut().unwrap().last;
    *last += 200;
    for _ in trace.loss.len()..=*last {
        long.loss.push(0.3);
        long.errors.iter_mut().for_each(|(_, values)| values.push(7.0));
    }
    let picture = long.draw("Learning curve");
    check("auto-long-trace", &picture);
    for part in [">gaussian sphere</text>", "steps 0\u{2013}", ", on half of the rows</text>"] {
        assert!(picture.svg().contains(part), "{part}: {}", picture.svg());
    }
    // With rows for early stopping.
    let criterion = svml::Criterion::HoldOut;
    let model = Model::fit(&columns(300), Svml { criterion, ..Svml::default() }).unwrap();
    let trace = Trace::new(&model).unwrap();
    let (name, stopping) = trace.errors.last().unwrap();
    assert_eq!(name, "rows for early stopping");
    assert!(stopping.iter().all(|error| error.is_finite()));
    let picture = trace.draw("Learning curve");
    check("auto-hold-out-trace", &picture);
    assert!(picture.svg().contains(">rows for early stopping</text>"), "{}", picture.svg());
}

#[test]
fn the_metric_of_another_learner() {
    let data = Generator { rows: 150, ..Default::default() }.generate().unwrap().data;
    let model = Model::fit(&data, Method::svm_after(Nca::default())).unwrap();
    all("nca", &model, &data);
}

#[test]
fn nearest_neighbours() {
    let data = Generator { rows: 150, ..Default::default() }.generate().unwrap().data;
    let nca = Nca { rank: Some(2), ..Nca::default() };
    let model = Model::fit(&data, Method::neighbours_after(nca, 5)).unwrap();
    all("knn", &model, &data);
    let map = Map::new(&model, data.x(), Some(&labels(&data))).unwrap();
    let svg = map.draw("Nearest neighbours").svg().to_owned();
    assert!(svg.contains(">boundary</text>"));
    assert!(!svg.contains("support vector") && !svg.contains("margin"));
    // In ten directions, without a learner, and with three classes.
    all("knn-euclidean", &Model::fit(&data, Method::neighbours(3)).unwrap(), &data);
    let generator = Generator { rows: 150, classes: 3, flipped: 0.0, ..Default::default() };
    let data = generator.generate().unwrap().data;
    all("knn-classes", &Model::fit(&data, Method::neighbours(3)).unwrap(), &data);
}

#[test]
fn twenty_six_classes() {
    let generator = Generator { rows: 1300, classes: 26, flipped: 0.0, ..Default::default() };
    let data = generator.generate().unwrap().data;
    all("classes", &fit(&data, Form::Rank(2)), &data);
}

#[test]
fn sixty_features_with_long_names_of_all_kinds() {
    let generator = Generator { noise: 58, rotated: false, ..Default::default() };
    let data = generator.generate().unwrap().data;
    let names = (0..60)
        .map(|k| match k % 3 {
            0 => format!("a very long name of a measured quantity, in units, number {k}"),
            1 => format!("Gr\u{f6}\u{df}e <{k}> & \u{3b1}"),
            _ => format!("x{k}"),
        })
        .collect();
    let classes = ["a class with a rather long name that has no end", "\u{4e2d}\u{6587}"];
    let renamed: Vec<&str> = data.y().iter().map(|&c| classes[c]).collect();
    let data = Dataset::new(data.x().clone(), &renamed).unwrap().with_names(names).unwrap();
    all("wide", &fit(&data, Form::Diagonal), &data);
}

#[test]
fn few_rows_and_one_feature() {
    let x = Matrix::new(6, 1, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let data = Dataset::new(x, &["a", "a", "a", "b", "b", "b"]).unwrap();
    all("tiny", &fit(&data, Form::Full), &data);
}

#[test]
fn two_features_one_constant_and_an_outlier() {
    let x = Matrix::from_fn(40, 2, |i, j| match (i, j) {
        (39, 0) => 1e6,
        (_, 0) => (i % 20) as f64,
        _ => 7.0,
    });
    let y: Vec<usize> = (0..40).map(|i| usize::from(i >= 20)).collect();
    let data = Dataset::new(x, &y).unwrap();
    all("constant", &fit(&data, Form::Full), &data);
}

#[test]
fn rows_without_labels_and_of_other_classes() {
    let data = Generator { rows: 60, ..Default::default() }.generate().unwrap().data;
    let model = fit(&data, Form::Rank(2));
    let map = Map::new(&model, data.x(), None).unwrap();
    assert!(map.points.iter().all(|p| p.class.is_none()));
    check("unlabelled-map", &map.draw("No labels"));
    let other = vec!["elsewhere".to_owned(); 60];
    assert!(Map::new(&model, data.x(), Some(&other)).unwrap().points[0].class.is_none());
    let ringed = map.points.iter().filter(|p| p.support).count();
    assert_eq!(ringed, model.support_rows().len());
}

#[test]
fn a_metric_without_a_classifier_has_no_background() {
    let data = Generator { rows: 60, ..Default::default() }.generate().unwrap().data;
    let model = Model::fit(&data, Method::metric(Nca::default())).unwrap();
    let map = Map::new(&model, data.x(), Some(&labels(&data))).unwrap();
    assert!(map.decided.is_empty() && map.decision.is_none());
    check("metric-alone", &map.draw("A metric alone"));
}

#[test]
fn the_map_of_a_metric_of_rank_two_is_the_decision_itself() {
    let data = Generator { rows: 120, ..Default::default() }.generate().unwrap().data;
    let model = fit(&data, Form::Rank(2));
    let map = Map::new(&model, data.x(), None).unwrap();
    assert!(map.exact);
    // Between grid points the decision is close to that at the nearest one: check at rows that lie
    // nearly on one, with the value the model gives there.
    let decision = map.decision.as_ref().unwrap();
    let rows = decision.len() / map.columns;
    let h = model.decision(data.x()).unwrap();
    let mut compared = 0;
    for (row, p) in map.points.iter().enumerate() {
        let place =
            |v: f64, [low, high]: [f64; 2], n: usize| (v - low) / (high - low) * (n - 1) as f64;
        let (c, r) = (place(p.x, map.x_range, map.columns), place(p.y, map.y_range, rows));
        if c < 0.0 || r < 0.0 || c >= (map.columns - 1) as f64 || r >= (rows - 1) as f64 {
            continue;
        }
        let (c0, r0) = (c.floor(), r.floor());
        let at = |c: f64, r: f64| decision[r as usize * map.columns + c as usize];
        let (fc, fr) = (c - c0, r - r0);
        let between = (1.0 - fr) * ((1.0 - fc) * at(c0, r0) + fc * at(c0 + 1.0, r0))
            + fr * ((1.0 - fc) * at(c0, r0 + 1.0) + fc * at(c0 + 1.0, r0 + 1.0));
        assert!((between - h[(row, 0)]).abs() < 0.02, "{between} {}", h[(row, 0)]);
        compared += 1;
    }
    assert!(compared > 100);
}

#[test]
fn a_learning_curve() {
    let data = Generator { rows: 300, ..Default::default() }.generate().unwrap().data;
    let method = Method::neighbours(3);
    let curve = LearningCurve::new(&data, &method, None, 3, 0, Run::new, |_, _| true).unwrap();
    let picture = curve.draw("Learning curve");
    check("learning-curve", &picture);
    for size in &curve.sizes {
        assert!(picture.svg().contains(&format!(">{size}</text>")), "{size}");
    }
    assert!(picture.svg().contains("Error on 60 held-out rows: mean of 3 repetitions"));
    let one = LearningCurve::new(&data, &method, Some(&[50]), 2, 0, Run::new, |_, _| true).unwrap();
    check("learning-curve-one", &one.draw("One size"));
}

#[test]
fn words_beside_pictures() {
    let data = columns(300);
    let model = fit(&data, Form::Diagonal);
    let metric = MetricMatrix::new(&model).draw("The metric").svg().to_owned();
    assert!(metric.contains("M is diagonal: one weight for each feature"), "{metric}");
    let full = MetricMatrix::new(&fit(&data, Form::Full)).draw("The metric").svg().to_owned();
    assert!(full.contains("lue with ticks: negative"), "{full}");
    let reliability = Reliability::new(&model, data.x(), &labels(&data)).unwrap();
    let svg = reliability.draw("Reliability").svg().to_owned();
    let error = format!("calibration error {:.1} %", 100.0 * reliability.calibration_error);
    for part in [&error, "dashed: perfect calibration", ">predicted probability of 1</text>"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    let roc = Roc::new(&model, data.x(), &labels(&data), None).unwrap();
    let svg = roc.draw("ROC").svg().to_owned();
    assert!(svg.contains(&format!("AUC {:.3} (", roc.curves[0].auc)), "{svg}");
    // Of many classes the worst are drawn.
    let generator = Generator { rows: 600, classes: 12, flipped: 0.0, ..Default::default() };
    let data = generator.generate().unwrap().data;
    let model = Model::fit(&data, Method::neighbours(9)).unwrap();
    let roc = Roc::new(&model, data.x(), &labels(&data), None).unwrap();
    let svg = roc.draw("ROC").svg().to_owned();
    assert!(svg.contains("The 6 classes of 12 with the lowest AUC"), "{svg}");
    let mut order: Vec<_> = roc.curves.iter().collect();
    order.sort_by(|a, b| a.auc.total_cmp(&b.auc));
    for (k, curve) in order.iter().enumerate() {
        let listed = svg.contains(&format!(">{}</text>", curve.class));
        assert_eq!(listed, k < 6, "{}", curve.class);
    }
}

/// Twenty classes around a circle have twenty different markers in the legend.
#[test]
fn twenty_classes_can_be_told_apart() {
    let generator = Generator { rows: 600, classes: 20, flipped: 0.0, ..Default::default() };
    let data = generator.generate().unwrap().data;
    let model = fit(&data, Form::Rank(2));
    let map = Map::new(&model, data.x(), Some(&labels(&data))).unwrap();
    let picture = map.draw("Twenty classes");
    check("twenty-map", &picture);
    for class in &map.classes {
        assert!(picture.svg().contains(&format!(">{class}</text>")), "{class}");
    }
}

#[test]
fn pictures_of_a_study() {
    let curve = |name: &str, a: f64| Curve {
        name: name.to_owned(),
        points: (0..60).map(|k| (f64::from(k), 20.0 + a * (-0.1 * f64::from(k)).exp())).collect(),
    };
    let panel = CurvePanel {
        x_label: "step".to_owned(),
        y_label: "error".to_owned(),
        whole_x: true,
        percent_y: true,
        curves: vec![curve("training", 3.0), curve("validation", 9.0), curve("test", 14.0)],
        mark: Some((40.0, "kept".to_owned())),
    };
    let alone = CurvePanel { curves: vec![curve("loss", 1.0)], ..panel.clone() };
    check("lines", &Lines { panels: vec![panel.clone()] }.draw("One panel", "A note"));
    check("lines-two", &Lines { panels: vec![alone, panel] }.draw("Two panels", ""));
    check("lines-none", &Lines { panels: vec![CurvePanel::default()] }.draw("No curves", ""));

    let mark = |name: usize, series: usize, value: f64| Mark {
        name,
        series,
        value,
        interval: Some((value / 1.5, value * 1.5)),
    };
    let panel = |title: &str| DotPanel {
        title: title.to_owned(),
        marks: (0..5)
            .flat_map(|n| [mark(n, 0, 0.01 * 7f64.powi(n as i32)), mark(n, 1, 0.3)])
            .collect(),
    };
    let dots = Dots {
        names: (0..5).map(|n| format!("method {n}")).collect(),
        series: vec!["first".to_owned(), "second".to_owned()],
        panels: vec![panel("")],
        columns: 1,
        label: "seconds".to_owned(),
        logarithmic: true,
        reference: None,
    };
    check("dots-log", &dots.draw("Times", "With intervals"));
    let panels = (0..5).map(|k| panel(&format!("set {k}"))).collect();
    let several =
        Dots { panels, columns: 3, logarithmic: false, reference: Some(0.0), ..dots.clone() };
    check("dots-panels", &several.draw("Differences", "In five panels"));
    // Values that a logarithmic axis does not have.
    let zero = DotPanel {
        title: String::new(),
        marks: vec![Mark { value: 0.0, interval: None, ..mark(0, 0, 1.0) }],
    };
    check("dots-zero", &Dots { panels: vec![zero], ..dots }.draw("Zero", ""));

    let plane = Plane {
        x_label: "C".to_owned(),
        y_label: "width".to_owned(),
        x: vec![0.1, 1.0, 10.0],
        y: vec![0.5, 1.0, 2.0],
        cells: vec![vec![20.0, 18.0, 19.0], vec![17.0, 16.5, 18.0], vec![21.0, 19.0, 20.0]],
        chosen: vec![(1, 1)],
        paths: vec![PlanePath { points: vec![(0.5, 1.0), (0.9, 1.3), (2.0, 4.0)], kept: 1 }],
        path_name: "descent".to_owned(),
    };
    let one = plane.draw("A path across a grid", "A note");
    check("plane", &one);
    assert!(!one.svg().contains('\u{d7}'), "a single search needs no counts");
    // The second path passes a place that logarithmic axes do not have.
    let second = PlanePath { points: vec![(0.5, 1.0), (0.0, 1.0), (0.2, 0.8)], kept: 2 };
    let several = Plane {
        chosen: vec![(1, 1), (0, 1), (1, 1)],
        paths: [plane.paths.clone(), vec![second]].concat(),
        ..plane
    };
    let several = several.draw("Two paths across a grid", "Chosen by three searches");
    check("plane-several", &several);
    for (part, times) in [("2\u{d7}", 1), ("1\u{d7}", 1), ("steps that were kept", 1)] {
        assert_eq!(several.svg().matches(part).count(), times, "{part}");
    }
}

#[test]
fn views_of_three_directions() {
    let data =
        Generator { rows: 120, informative: 3, ..Generator::default() }.generate().unwrap().data;
    let model = fit(&data, Form::Rank(3));
    for pair in [[0, 1], [0, 2], [1, 2]] {
        let map = Map::along(&model, data.x(), Some(&labels(&data)), pair).unwrap();
        assert!(!map.exact);
        let label = &map.axis_labels[1];
        assert!(label.starts_with(["second", "third"][pair[1] - 1]), "{label}");
        check(&format!("view-{}-{}", pair[0], pair[1]), &map.draw("One of three views"));
    }
    let plane = fit(&data, Form::Rank(2));
    let (new, along) = (
        Map::new(&plane, data.x(), None).unwrap(),
        Map::along(&plane, data.x(), None, [0, 1]).unwrap(),
    );
    assert!(along.exact);
    assert_eq!(
        (&new.points, &new.decision, &new.axis_labels),
        (&along.points, &along.decision, &along.axis_labels)
    );
}
