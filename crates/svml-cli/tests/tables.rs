//! Tables as people have them: identifiers, columns to leave out, rows unlike those of training, columns to carry along.
#![allow(clippy::unwrap_used, missing_docs)]

mod sandbox;

use std::path::PathBuf;

use sandbox::Sandbox;
use serde_json::Value;

const HEADER: &str = "PassengerId,Name,Ticket,When,Age,Fare,Sex,Survived\n";

/// Rows like those of the Titanic's passengers: four columns that are different in every row, and three that count.
fn passengers(rows: std::ops::Range<usize>, header: bool) -> String {
    let row = |i: usize| {
        let noise = (i * 7919) % 1000;
        let (age, fare, woman) = (1 + i * 37 % 71, (i * i) % 97, i * 13 % 5 < 2);
        let survived = (age < 14 || (woman && fare > 10)) != (noise < 80);
        format!(
            "{},\"Passenger, {}\",T{:05},2026-{:02}-{:02} {:02}:{:02},{age},{fare}.5,{},{}\n",
            i + 1,
            noise * 1009 + i,
            i * 7 % 99991,
            1 + i % 12,
            1 + i % 28,
            i % 24,
            i % 60,
            if woman { "female" } else { "male" },
            if survived { "yes" } else { "no" },
        )
    };
    let header = if header { HEADER } else { "" };
    header.to_owned() + &rows.map(row).collect::<String>()
}

fn trained(options: &[&str]) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.write("train.csv", &passengers(0..600, true));
    sandbox.write("new.csv", &passengers(600..1000, true));
    let run =
        sandbox.svml(&[&["train", "train.csv", "-o", "m", "--form", "diagonal"], options].concat());
    let err = run.code(0).err;
    (sandbox, err)
}

fn shown(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.svml(&["show", "m", "--json"]).code(0).out).unwrap()
}

#[test]
fn identifiers_are_named_and_left_out() {
    let (sandbox, err) = trained(&[]);
    let warning = "warning: left out as identifiers, which say nothing about new rows: PassengerId (it numbers the \
                   rows), Name, Ticket (their texts are different in almost every row), When (it holds dates); \
                   --use COLS uses columns all the same";
    assert_eq!(err.matches("left out as").count(), 1, "{err}");
    assert!(err.contains(warning), "{err}");
    assert!(err.contains("600 rows, 3 feature columns (2 of numbers, 1 of categories)"), "{err}");
    let shown = shown(&sandbox);
    assert_eq!(shown["features"], 4);
    let reasons: Vec<&str> = shown["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons, ["row_number", "unique", "unique", "date"]);
    let text = sandbox.svml(&["show", "m"]).code(0).out;
    let line = "Left out         PassengerId (it numbers the rows), Name (its text is different in almost every row), \
                Ticket (its text is different in almost every row), When (it holds dates)\n";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("Relevance of the columns") && !text.contains("Sex=female"), "{text}");
    let features = sandbox.svml(&["show", "m", "--features"]).code(0).out;
    assert!(features.contains("Relevance of the features") && features.contains("Sex=female"));
    // One in twelve labels is wrong on purpose.
    let run = sandbox.svml(&["evaluate", "m", "new.csv", "--json"]).code(0);
    let error = serde_json::from_str::<Value>(&run.out).unwrap()["error"].as_f64().unwrap();
    assert!(error < 0.15, "{error}");
    assert_eq!(run.err, "");
    // Without a header all columns have to be there, or all that are used.
    sandbox.write("bare.csv", &passengers(600..640, false));
    sandbox.write("used.csv", "30,20.5,male\n31,20.5,female\n");
    for file in ["bare.csv", "used.csv"] {
        sandbox.svml(&["predict", "m", file]).code(0);
    }
}

#[test]
fn columns_are_left_out_and_used_as_asked() {
    let names = |sandbox: &Sandbox| -> Vec<String> {
        let columns = shown(sandbox)["relevance_by_column"].clone();
        let mut names: Vec<String> = columns
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["column"].as_str().unwrap().to_owned())
            .collect();
        names.sort_unstable();
        names
    };
    let (sandbox, err) = trained(&["--drop", "Fare,2"]);
    assert!(err.contains("  left out as asked: Name, Fare\n"), "{err}");
    assert!(err.contains("PassengerId (it numbers the rows), Ticket (its text"), "{err}");
    assert_eq!(names(&sandbox), ["Age", "Sex"]);
    sandbox.write("few.csv", "Sex,Age\nmale,30\n");
    sandbox.svml(&["predict", "m", "few.csv"]).code(0);

    let (sandbox, err) = trained(&["--only", "PassengerId,Sex"]);
    assert_eq!(names(&sandbox), ["PassengerId", "Sex"]);
    assert!(!err.contains("identifiers"), "{err}");
    let (sandbox, _) = trained(&["--use", "PassengerId"]);
    assert_eq!(names(&sandbox), ["Age", "Fare", "PassengerId", "Sex"]);

    let run = sandbox.svml(&["train", "train.csv", "-o", "x", "--drop", "Cabin"]).code(3);
    assert!(
        run.err.contains("no column 'Cabin'") && run.err.contains("PassengerId, Name"),
        "{}",
        run.err
    );
    let run = sandbox.svml(&["train", "train.csv", "-o", "x", "--drop", "Survived"]).code(2);
    assert!(run.err.contains("another column than that of the classes"), "{}", run.err);
    let run = sandbox.svml(&["train", "train.csv", "-o", "x", "--drop", "Sex,Age,Fare"]).code(3);
    assert!(run.err.contains("nothing to learn from") && run.err.contains("--use"), "{}", run.err);
    let args =
        ["compare", "train.csv", "--splits", "2", "--methods", "knn:k=3", "--only", "Age,Sex"];
    let run = sandbox.svml(&args).code(0);
    assert!(run.out.contains("600 rows, 3 features"), "{}", run.out);
}

#[test]
fn rows_unlike_those_of_training_are_reported() {
    let (sandbox, _) = trained(&["--missing", "impute"]);
    let rows = "1,A,T1,2026-01-01,30,20.5,male\n2,B,T2,never,900,20.5,robot\n3,C,T3,?,-90,?,cyborg\n4,D,?,?,30,3,?\n";
    sandbox.write("odd.csv", &format!("{}{rows}", HEADER.replace(",Survived", "")));
    let notes = "note: Age: 2 rows are far outside the range of the training data, 1 to 71, such as 900\n\
                 note: Fare: 1 row has no value, which was filled\n\
                 note: Sex: 2 rows have a category that was not in the training data, such as 'robot'\n\
                 note: Sex: 1 row has no value, which was filled\n";
    for command in ["predict", "transform"] {
        let run = sandbox.svml(&[command, "m", "odd.csv"]).code(0);
        assert_eq!(run.err, notes);
        assert_eq!(run.out.lines().count(), 5);
        assert_eq!(sandbox.svml(&[command, "m", "odd.csv", "--quiet"]).code(0).err, "");
        let strict = sandbox.svml(&[command, "m", "odd.csv", "--strict"]).code(3);
        let message = "svml: odd.csv: Age: 2 rows are far outside the range of the training data, 1 to 71, such as \
                       900; and 3 more like that; correct the data, or leave out --strict\n";
        assert_eq!(strict.err, message);
        assert_eq!(strict.out, "");
    }
    sandbox.svml(&["evaluate", "m", "new.csv", "--strict"]).code(0);
}

#[test]
fn columns_are_carried_along() {
    let (sandbox, _) = trained(&[]);
    let run = sandbox
        .svml(&["predict", "m", "new.csv", "--keep", "PassengerId,Name", "--probabilities"])
        .code(0);
    let mut lines = run.out.lines();
    assert_eq!(lines.next(), Some("PassengerId,Name,Survived,p_no,p_yes"));
    let name = passengers(600..601, false).split('"').nth(1).unwrap().to_owned();
    assert!(lines.next().unwrap().starts_with(&format!("601,\"{name}\",")), "{}", run.out);
    assert_eq!(lines.count(), 399);
    // The same predictions as without.
    let alone = sandbox.svml(&["predict", "m", "new.csv"]).code(0).out;
    let last = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.rsplit(',').next().unwrap().to_owned()).collect()
    };
    let all = sandbox.svml(&["predict", "m", "new.csv", "--keep", "all"]).code(0).out;
    assert_eq!(last(&all)[1..], last(&alone)[1..]);
    assert_eq!(all.lines().next().unwrap(), format!("{},predicted_Survived", HEADER.trim()));
    // The kept columns are those of the file, cell by cell.
    let kept: Vec<&str> =
        all.lines().skip(1).map(|line| line.rsplit_once(',').unwrap().0).collect();
    let file = sandbox.read("new.csv");
    assert_eq!(kept, file.lines().skip(1).collect::<Vec<_>>());
    let again = sandbox.svml_with_input(&["predict", "m", "-"], all.as_bytes()).code(0).out;
    assert_eq!(again, alone);
    let run = sandbox.svml(&["predict", "m", "new.csv", "--keep", "Cabin"]).code(3);
    assert!(run.err.contains("no column 'Cabin'"), "{}", run.err);
    sandbox.write("t.txt", "1 1:2 2:3\n-1 1:1\n1 1:3\n-1 1:0 2:1\n");
    sandbox.svml(&["train", "t.txt", "-o", "sparse", "--method", "knn:k=1"]).code(0);
    let run = sandbox.svml(&["predict", "sparse", "t.txt", "--keep", "1"]).code(2);
    assert!(run.err.contains("a table of cells (CSV)"), "{}", run.err);
}

/// Public tables have no identifiers, and none is found in them.
#[test]
fn tables_without_identifiers_keep_their_columns() {
    let shared = std::env::var_os("SVML_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let Ok(files) = std::fs::read_dir(shared.join("suite")) else {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("skipped: there is no folder suite in {}", shared.display());
        }
        return;
    };
    let mut count = 0;
    for file in
        files.map(|file| file.unwrap().path()).filter(|f| f.extension().is_some_and(|e| e == "csv"))
    {
        let missing = svml::data::Missing::Impute;
        let options = svml::data::ReadOptions { missing, ..Default::default() };
        let data = svml::Dataset::from_path(&file, &options).unwrap();
        assert_eq!(data.schema().identifiers(), None, "{}", file.display());
        count += 1;
    }
    assert!(count > 10, "{count}");
}
