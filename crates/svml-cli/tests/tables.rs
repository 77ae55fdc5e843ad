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
    let warning = "warning: columns left out because they look like identifiers, which say nothing about new rows: PassengerId (it numbers the \
                   rows), Name, Ticket (their text differs in almost every row), When (it holds dates); \
                   to use such columns anyway, name them with --use COLS";
    assert_eq!(err.matches("left out because").count(), 1, "{err}");
    assert!(err.contains(warning), "{err}");
    assert!(err.contains("600 rows, 3 feature columns (2 numeric, 1 categorical)"), "{err}");
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
    let line = "Left out         PassengerId (it numbers the rows), Name (its text differs in almost every row), \
                Ticket (its text differs in almost every row), When (it holds dates)\n";
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
    assert!(err.contains("  left out as requested: Name, Fare\n"), "{err}");
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
    assert!(run.err.contains("a column other than the target column"), "{}", run.err);
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
                 note: Fare: 1 row has a missing value, which was imputed\n\
                 note: Sex: 2 rows have a category that is not in the training data, such as 'robot'\n\
                 note: Sex: 1 row has a missing value, which was imputed\n";
    for command in ["predict", "transform"] {
        let run = sandbox.svml(&[command, "m", "odd.csv"]).code(0);
        assert_eq!(run.err, notes);
        assert_eq!(run.out.lines().count(), 5);
        assert_eq!(sandbox.svml(&[command, "m", "odd.csv", "--quiet"]).code(0).err, "");
        let strict = sandbox.svml(&[command, "m", "odd.csv", "--strict"]).code(3);
        let message = "svml: odd.csv: Age: 2 rows are far outside the range of the training data, 1 to 71, such as \
                       900; and 3 more; correct the data, or leave out --strict\n";
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
    assert!(run.err.contains("a column of a CSV table"), "{}", run.err);
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

/// Forty rows of two numbers and a class, some of which are replaced.
fn forty(replaced: &[(usize, &str)]) -> String {
    let row = |i: usize| match replaced.iter().find(|(at, _)| *at == i) {
        Some((_, row)) => format!("{row}\n"),
        None => format!(
            "{},{},{}\n",
            i * 7 % 13,
            i * 5 % 11,
            if i.is_multiple_of(3) { "p" } else { "n" }
        ),
    };
    "a,b,y\n".to_owned() + &(0..40).map(row).collect::<String>()
}

/// What training says, which must end with this code.
fn said_of(table: &str, options: &[&str], code: i32) -> String {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", table);
    let arguments = [&["train", "t.csv", "-o", "m", "--form", "sphere"], options].concat();
    let run = sandbox.svml(&arguments).code(code);
    run.err + &run.out
}

#[test]
fn an_open_quote_is_named_by_its_line_and_swallows_nothing() {
    for (row, words) in [
        ("1,2,\"p", "t.csv: line 31: the quote of the cell '\"p\u{fffd}"),
        ("1,\"2,p", "t.csv: line 31: the quote of the cell '\"2,p\u{fffd}"),
        ("\"1\"2,2,p", "t.csv: line 31: the cell '\"1\"2' continues after its closing quote"),
        ("\"1\" \"2\",2,p", "t.csv: line 31: the cell '\"1\" \"2\"' continues"),
    ] {
        let err = said_of(&forty(&[(29, row)]), &[], 3);
        assert!(err.contains(words), "{row}: {err}");
    }
    // A quote further below closes the first; what follows it tells.
    let err = said_of(&forty(&[(9, "1,\"2,p"), (29, "1,\"2\",p")]), &[], 3);
    assert!(err.contains("t.csv: line 11: the cell "), "{err}");
    // White space after a quote, doubled quotes and quotes within a cell are well.
    let rows = [
        (3, "\"1\" ,2,\"a\"\"b\""),
        (4, " \"1\",2,\"a\"\"b\" "),
        (5, "1,2,5\"n"),
        (6, "\"1\",2,5\"n"),
    ];
    let err = said_of(&forty(&rows), &[], 0);
    assert!(err.contains("classes in column y: 5\"n (2), a\"b (2), n"), "{err}");
}

#[test]
fn columns_of_numbers_that_are_not_read_as_such_are_named() {
    let table = |cell: &dyn Fn(usize) -> String, delimiter: &str| {
        let row = |i: usize| {
            let class = if i.is_multiple_of(3) { "p" } else { "n" };
            [cell(i), (i * 5 % 11).to_string(), class.to_owned()].join(delimiter) + "\n"
        };
        ["a", "b", "y\n"].join(delimiter) + &(0..60).map(row).collect::<String>()
    };
    let price = |i: usize| format!("${}", i % 29);
    let err = said_of(&table(&price, ","), &[], 0);
    let words = "warning: column a was read as text, although its cells look like numbers with a comma, a sign or a \
                 unit, the first being '$0' in line 2; if the column should be numeric, write all numbers like 1234.5";
    assert!(err.contains(words), "{err}");
    let thousands =
        |i: usize| if i < 30 { format!("{}", 970 + i) } else { format!("1,{:03}", i - 30) };
    let err = said_of(&table(&thousands, ";"), &[], 0);
    assert!(
        err.contains(
            "column a: commas were read as decimal commas, but they may be thousands separators, because each is followed by \
             three digits, the first in '1,000' in line 32"
        ),
        "{err}"
    );
}

#[test]
fn what_was_missing_is_counted() {
    let gaps: Vec<(usize, &str)> =
        (0..12).map(|i| (3 * i + 1, if i < 4 { "?,NA,n" } else { "?,1,n" })).collect();
    let table = forty(&gaps);
    let err = said_of(&table, &["--missing", "drop"], 0);
    assert!(
        err.contains("12 of 40 rows left out because of missing values in columns a (12), b (4)\n"),
        "{err}"
    );
    let err = said_of(&table, &["--missing", "impute"], 0);
    assert!(err.contains("  missing values imputed in columns a (12), b (4)\n"), "{err}");
    assert!(!said_of(&forty(&[]), &["--missing", "impute"], 0).contains("missing"));
}

#[test]
fn a_terminal_obeys_no_name_of_a_class_or_column() {
    let table =
        forty(&[]).replace(",p\n", ",\u{1b}]0;pwned\u{7}\n").replace("a,b", "a\u{1b}[31m,\"b\nb\"");
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", &table);
    let run = |arguments: &[&str]| {
        let run = sandbox.svml(arguments).code(0);
        run.err + &run.out
    };
    for (what, text) in [
        ("train", run(&["train", "t.csv", "-o", "m", "--form", "diagonal"])),
        ("show", run(&["show", "m"])),
        ("evaluate", run(&["evaluate", "m", "t.csv"])),
        ("explain", run(&["explain", "m", "t.csv", "--row", "1"])),
    ] {
        let control = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(control), "{what}: {text:?}");
        assert!(!text.contains("b\nb"), "{what}: {text}");
        assert!(text.contains('\u{fffd}'), "{what}: {text}");
    }
    // What is written for programs is what it was.
    assert!(run(&["predict", "m", "t.csv", "--probabilities"]).contains("\u{1b}]0;pwned\u{7}"));
}

#[test]
fn long_names_are_told_in_short() {
    let long = "p".repeat(100_000);
    let table =
        forty(&[]).replace(",p\n", &format!(",{long}\n")).replace("a,b", &format!("{long},b"));
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", &table);
    for arguments in [
        &["train", "t.csv", "-o", "m", "--form", "diagonal"][..],
        &["show", "m"],
        &["evaluate", "m", "t.csv"],
        &["explain", "m", "t.csv", "--row", "1"],
        &["plot", "m", "t.csv", "--kind", "roc", "--class", "other", "-o", "a.svg"],
    ] {
        let run = sandbox.svml(arguments);
        assert!(run.out.len() + run.err.len() < 5000, "{arguments:?}");
        assert!((run.out + &run.err).contains("pppp..."), "{arguments:?}");
    }
}

#[test]
fn libsvm_files_that_are_not_quite_so_are_refused_as_such() {
    let file = |label: fn(usize) -> String| -> String {
        (0..40).map(|i| format!("{} 1:{}.5 2:-{i}\n", label(i), i % 7)).collect()
    };
    for (text, words) in [
        (
            file(|i| format!("{} qid:{}", i % 2, i / 5)),
            "line 1: 'qid:0': query identifiers are only used for ranking",
        ),
        (file(|i| ["p", "n"][i % 2].to_owned()), "line 1: found 'p', but a numeric class label"),
        (
            file(|i| format!("{},{}", i % 2, i % 3)),
            "line 1: found '0,0', but a numeric class label",
        ),
    ] {
        let err = said_of(&text, &[], 3);
        assert!(err.contains(words), "{err}");
    }
}

#[test]
fn advice_helps() {
    let err = said_of(&forty(&[]).replace(',', "|"), &[], 3);
    assert!(
        err.contains(
            "comma, semicolon, tab or spaces; replace any other delimiter with one of these"
        ),
        "{err}"
    );
    let err = said_of(&forty(&[]), &["--target", "-1"], 3);
    assert!(err.contains("there is no column '-1' in the data"), "{err}");
    let few: String = forty(&[]).lines().take(5).map(|line| line.to_owned() + "\n").collect();
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", &few);
    let grid = ["train", "t.csv", "-o", "m", "--method", "euclidean"];
    let err = sandbox.svml(&grid).code(3).err;
    let words = "t.csv: cross-validation with 5 folds needs at least 5 rows, but there are 4; add rows, or use fewer folds, as in --set folds=2";
    assert!(err.contains(words), "{err}");
    sandbox.svml(&[&grid[..], &["--set", "folds=2"]].concat()).code(0);
    let err = sandbox.svml(&["train", "t.csv", "-o", "m", "--form", "nonsense"]).code(2).err;
    assert!(err.contains("it must be auto, sphere, diagonal, full or rank=R"), "{err}");
    let err = said_of(&forty(&[(3, "1e309,1,p")]), &[], 3);
    assert!(
        err.contains(
            "line 5, column a: inf is outside the accepted range, +-1e300 (a number beyond"
        ),
        "{err}"
    );
    let err = said_of(&forty(&[(3, "1e308,1,p")]), &[], 3);
    assert!(err.contains("line 5, column a: 1e308 is outside"), "{err}");
    // A model that does not fill gaps refuses a blank cell too.
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", &forty(&[]));
    sandbox.write("new.csv", "a,b\n1,x\n");
    sandbox.svml(&["train", "t.csv", "-o", "m", "--form", "sphere"]).code(0);
    let err = sandbox.svml(&["predict", "m", "new.csv"]).code(3).err;
    assert!(err.ends_with("but the column was numeric in training; correct the value\n"), "{err}");
}
