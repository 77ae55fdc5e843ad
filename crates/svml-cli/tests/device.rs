//! `--device`, as far as it can be seen without a card: errors, the processor, and what is said.
#![allow(clippy::unwrap_used, missing_docs)]

mod sandbox;

use sandbox::{Sandbox, generated};

/// No computer has so many cards.
const NO_CARD: &str = "cuda:1000000";

fn with_data() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write_table("data.csv", &generated(60));
    sandbox
}

#[test]
fn what_is_no_device_is_wrong_usage() {
    let sandbox = with_data();
    for (command, rest) in [("train", vec!["-o", "m.svml"]), ("compare", vec![])] {
        let mut args = vec![command, "data.csv", "--device", "gpu"];
        args.extend(rest);
        let run = sandbox.svml(&args).code(2);
        let bound =
            "it must be auto, cpu, cuda or cuda:N, where N is the number of a GPU, counted from 0";
        assert!(
            run.err.contains("device = gpu is not allowed") && run.err.contains(bound),
            "{}",
            run.err
        );
    }
    assert!(!sandbox.path("m.svml").exists());
}

#[test]
fn a_card_that_is_not_there_is_an_error_with_a_way_out() {
    let sandbox = with_data();
    let said = |err: &str| {
        let text = err.lines().last().unwrap_or_default().to_owned();
        assert!(text.starts_with(&format!("svml: {NO_CARD} cannot be used: ")), "{err}");
        assert!(text.ends_with("; use --device cpu to compute without it, or --device auto to use a GPU only if there is one"), "{err}");
    };
    said(&sandbox.svml(&["train", "data.csv", "-o", "m.svml", "--device", NO_CARD]).code(1).err);
    assert!(!sandbox.path("m.svml").exists());
    said(&sandbox.svml(&["compare", "data.csv", "--splits", "2", "--device", NO_CARD]).code(1).err);
    said(&sandbox.svml(&["learning-curve", "data.csv", "--device", NO_CARD]).code(1).err);
    // Also where nothing would be computed on it.
    let metric = ["train", "data.csv", "-o", "m.svml", "--method", "pca+none", "--device", NO_CARD];
    said(&sandbox.svml(&metric).code(1).err);

    sandbox.svml(&["train", "data.csv", "-o", "m.svml", "--form", "sphere", "--quiet"]).code(0);
    for args in [
        vec!["predict", "m.svml", "data.csv", "-o", "out.csv"],
        vec!["evaluate", "m.svml", "data.csv"],
        vec!["report", "m.svml", "data.csv", "-o", "out.html"],
    ] {
        let args: Vec<&str> = args.into_iter().chain(["--device", NO_CARD]).collect();
        said(&sandbox.svml(&args).code(1).err);
    }
    assert!(!sandbox.path("out.csv").exists() && !sandbox.path("out.html").exists());
}

#[test]
fn without_a_card_auto_is_the_processor() {
    let sandbox = with_data();
    let train = |name: &str, device: &[&str]| {
        let mut args = vec!["train", "data.csv", "-o", name, "--form", "diagonal"];
        args.extend(device);
        let run = sandbox.svml(&args).code(0);
        assert!(!run.out.contains("Computed on"), "{}", run.out);
        std::fs::read(sandbox.path(name)).unwrap()
    };
    let by_default = train("default.svml", &[]);
    assert!(by_default == train("auto.svml", &["--device", "auto"]));
    assert!(by_default == train("cpu.svml", &["--device", "cpu"]));
    let shown = sandbox.svml(&["show", "cpu.svml"]).code(0).out;
    assert!(shown.lines().any(|line| line == "Device           cpu"), "{shown}");
    let json = sandbox.svml(&["show", "cpu.svml", "--json"]).code(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["device"], "cpu");
    let predict = |device: &[&str]| {
        let mut args = vec!["predict", "cpu.svml", "data.csv", "--decision"];
        args.extend(device);
        sandbox.svml(&args).code(0).out
    };
    assert_eq!(predict(&[]), predict(&["--device", "cpu"]));
    sandbox.svml(&["report", "cpu.svml", "data.csv", "-o", "page.html"]).code(0);
    assert!(sandbox.read("page.html").contains("It was computed on the CPU."));
}
