//! What a fit and its decisions are with fewer instructions than the processor has (`SVML_INSTRUCTIONS`).
#![allow(clippy::unwrap_used, missing_docs)]
#![cfg(target_arch = "x86_64")]

mod sandbox;

use sandbox::{Sandbox, table};
use svml::Generator;

/// Classes and decision values of the new rows by `m.svml`.
fn decided(sandbox: &Sandbox, set: &str) -> Vec<(String, f64)> {
    run(sandbox, set, &["predict", "m.svml", "new.csv", "--decision", "-o", "out.csv"]);
    let text = sandbox.read("out.csv");
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    rows.map(|cells| (cells[0].to_owned(), cells[1].parse().unwrap())).collect()
}

fn run(sandbox: &Sandbox, set: &str, args: &[&str]) {
    let output = sandbox.command(args).env("SVML_INSTRUCTIONS", set).output().unwrap();
    assert!(output.status.success(), "{set}, {args:?}: {output:?}");
}

/// How far decisions are apart, relative to the largest; and how many rows have another class.
fn apart(one: &[(String, f64)], other: &[(String, f64)]) -> (f64, usize) {
    assert_eq!(one.len(), other.len());
    let largest = one.iter().fold(0.0, |largest: f64, (_, h)| largest.max(h.abs()));
    let both = || one.iter().zip(other);
    let far = both().fold(0.0, |far: f64, (a, b)| far.max((a.1 - b.1).abs()));
    (far / largest, both().filter(|(a, b)| a.0 != b.0).count())
}

#[test]
fn fewer_instructions_round_differently_and_decide_alike() {
    let sandbox = Sandbox::new();
    let generator = Generator { rows: 300, ..Generator::default() };
    sandbox.write("t.csv", &table(&generator.generate().unwrap().data));
    let new = Generator { rows: 10_000, seed: 1, ..generator };
    sandbox.write("new.csv", &table(&new.generate().unwrap().data));

    for options in [&[][..], &["--form", "full"], &["--landmarks", "100"]] {
        let fit = [&["train", "t.csv", "-o", "m.svml", "--quiet"][..], options].concat();
        run(&sandbox, "all", &fit);
        let model = std::fs::read(sandbox.path("m.svml")).unwrap();
        let all = decided(&sandbox, "all");
        assert_eq!(all.len(), 10_000);

        // These run the same operations, some at a time.
        assert_eq!(decided(&sandbox, "avx2"), all, "{options:?}");
        run(&sandbox, "avx2", &fit);
        assert_eq!(std::fs::read(sandbox.path("m.svml")).unwrap(), model, "{options:?}");

        let baseline = decided(&sandbox, "baseline");
        let (far, others) = apart(&all, &baseline);
        assert!(far <= 1e-9 && others <= 1, "{options:?}: {far:e}, {others}");
        // The variable is heeded: without fused multiplication and addition sums are rounded once more.
        if std::is_x86_feature_detected!("fma") {
            assert_ne!(baseline, all, "{options:?}");
        }
        // Over many steps of learning, rounding can grow to another model that is as good: with landmarks it does here.
        if !options.contains(&"--landmarks") {
            run(&sandbox, "baseline", &fit);
            let (far, others) = apart(&all, &decided(&sandbox, "baseline"));
            assert!(far <= 1e-6 && others <= 1, "{options:?}, own fit: {far:e}, {others}");
        }
    }
}
