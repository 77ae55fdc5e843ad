//! Properties of the readers: no bytes make them panic, and tables that are written in any of the accepted
//! styles read back exactly.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use svml::Matrix;
use svml::data::{Categories, Dataset, Delimiter, Format, Missing, ReadOptions};

/// Every way in, for training and for new rows; only the absence of panics is checked.
fn read_all_ways(bytes: &[u8], training: &[u8]) {
    for missing in [Missing::Refuse, Missing::Drop, Missing::Impute] {
        for categories in [Categories::Codes, Categories::OneHot] {
            let options = ReadOptions { missing, categories, ..ReadOptions::default() };
            for text in [bytes, training] {
                let Ok(data) = Dataset::from_reader(text, &options) else {
                    continue;
                };
                assert_eq!(data.y().len(), data.rows());
                assert_eq!(data.schema().width(), data.columns());
                assert!(data.y().iter().all(|&class| class < data.classes().len()));
                data.schema().validate().unwrap();
                data.check_missing().unwrap();
                let new = [data.schema().read(bytes, &options), data.schema().read_libsvm(bytes)];
                for rows in new.into_iter().flatten() {
                    assert_eq!(rows.x.cols(), data.columns());
                    assert!(rows.labels.is_none_or(|l| l.len() == rows.x.rows()));
                }
            }
        }
    }
    for delimiter in [Delimiter::Comma, Delimiter::Semicolon, Delimiter::Tab, Delimiter::Spaces] {
        for header in [None, Some(true), Some(false)] {
            let options =
                ReadOptions { delimiter: Some(delimiter), header, ..ReadOptions::default() };
            let _ = Dataset::from_csv(bytes, &options);
        }
    }
    let _ = Dataset::from_libsvm(bytes, &ReadOptions::default());
}

/// Bytes that occur in data files more often than chance would have it.
fn file_like() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        Just("\n"),
        Just("\r"),
        Just("\r\n"),
        Just(","),
        Just(";"),
        Just("\t"),
        Just(" "),
        Just("\""),
        Just("\"\""),
        Just(":"),
        Just("#"),
        Just("?"),
        Just("NA"),
        Just("inf"),
        Just("1"),
        Just("2"),
        Just("-1.5"),
        Just("1,5"),
        Just("1e999"),
        Just("0:"),
        Just("1:1"),
        Just("2:3"),
        Just("99999999999999999999:1"),
        Just("100000:1"),
        Just("a"),
        Just("b"),
        Just("\u{feff}"),
        Just("\u{a0}"),
        Just("é"),
        Just("\0"),
    ];
    prop::collection::vec(token, 0..60).prop_map(|tokens| tokens.concat().into_bytes())
}

/// Rows that are all of one width, so that reading gets past the first checks.
fn table_like() -> impl Strategy<Value = Vec<u8>> {
    let cell = prop_oneof![
        Just("1"),
        Just("2.5"),
        Just("?"),
        Just(""),
        Just("a"),
        Just("b"),
        Just("\"c, d\""),
        Just("nan"),
        Just("-0"),
        Just("inf"),
        Just("x1"),
        Just(" 7 "),
    ];
    (1_usize..5, prop::sample::select(vec![",", ";", "\t", "  "])).prop_flat_map(
        move |(width, delimiter)| {
            let row =
                prop::collection::vec(cell.clone(), width).prop_map(move |c| c.join(delimiter));
            prop::collection::vec(row, 0..8).prop_map(|rows| rows.join("\n").into_bytes())
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all_ways(&bytes, b"1,a,+\n2,b,-\n");
    }

    #[test]
    fn nothing_like_a_file_panics(bytes in file_like(), training in table_like()) {
        read_all_ways(&bytes, &training);
    }

    #[test]
    fn nothing_like_a_table_panics(bytes in table_like(), training in table_like()) {
        read_all_ways(&bytes, &training);
        read_all_ways(&bytes, b"1 1:1 2:1\n-1\n");
    }
}

/// How a table of numbers is written.
#[derive(Clone, Debug)]
struct Style {
    delimiter: &'static str,
    decimal_comma: bool,
    end: &'static str,
    last_end: bool,
    header: bool,
    quotes: bool,
    mark: bool,
    blank_lines: bool,
    padding: bool,
    number_labels: bool,
}

fn style() -> impl Strategy<Value = Style> {
    let delimiter = prop::sample::select(vec![",", ";", "\t", " ", "   ", " \t "]);
    let end = prop::sample::select(vec!["\n", "\r\n", "\r"]);
    (delimiter, end, any::<[bool; 8]>()).prop_map(|(delimiter, end, flags)| {
        let [decimal_comma, last_end, header, quotes, mark, blank_lines, padding, number_labels] =
            flags;
        Style {
            delimiter,
            // With spaces the comma would look like the delimiter.
            decimal_comma: decimal_comma && matches!(delimiter, ";" | "\t"),
            end,
            last_end,
            header,
            quotes,
            mark,
            blank_lines,
            padding,
            number_labels,
        }
    })
}

fn written(rows: &[(Vec<f64>, bool)], style: &Style) -> String {
    let cell = |text: String| {
        let quote = if style.quotes { "\"" } else { "" };
        let (before, after) = if style.padding { (" ", "  ") } else { ("", "") };
        format!("{before}{quote}{text}{quote}{after}")
    };
    let line = |cells: Vec<String>| {
        let cells: Vec<String> = cells.into_iter().map(cell).collect();
        cells.join(style.delimiter)
    };
    let mut lines = Vec::new();
    if style.header {
        let width = rows[0].0.len();
        let names = (0..width).map(|j| format!("name{j}"));
        lines.push(line(names.chain(["class".to_owned()]).collect()));
    }
    for (values, label) in rows {
        let label = match (style.number_labels, label) {
            (true, false) => "-1",
            (true, true) => "1",
            (false, false) => "no",
            (false, true) => "yes",
        };
        let values = values.iter().map(|v| {
            let text = format!("{v:?}");
            if style.decimal_comma { text.replace('.', ",") } else { text }
        });
        lines.push(line(values.chain([label.to_owned()]).collect()));
        if style.blank_lines {
            lines.push(String::new());
        }
    }
    let mut text = lines.join(style.end);
    if style.last_end {
        text.push_str(style.end);
    }
    if style.mark {
        text.insert(0, '\u{feff}');
    }
    text
}

fn rows() -> impl Strategy<Value = Vec<(Vec<f64>, bool)>> {
    let value = prop_oneof![
        -1e300..1e300,
        -10.0..10.0,
        (-100_i32..100).prop_map(f64::from),
        -1e-300..1e-300,
    ];
    (1_usize..6).prop_flat_map(move |width| {
        let row = (prop::collection::vec(value.clone(), width), any::<bool>());
        prop::collection::vec(row, 1..70)
    })
}

fn matrix(rows: &[(Vec<f64>, bool)]) -> Matrix {
    let values: Vec<&[f64]> = rows.iter().map(|(values, _)| values.as_slice()).collect();
    Matrix::from_rows(&values).unwrap()
}

fn bits(x: &Matrix) -> Vec<u64> {
    x.as_slice().iter().map(|v| v.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn tables_of_any_style_read_back(rows in rows(), style in style()) {
        let text = written(&rows, &style);
        let data = Dataset::from_reader(text.as_bytes(), &ReadOptions::default()).unwrap();
        prop_assert_eq!(bits(data.x()), bits(&matrix(&rows)));
        prop_assert_eq!(data.schema().named(), style.header);
        let names = if style.number_labels { ["-1", "1"] } else { ["no", "yes"] };
        for ((_, label), &class) in rows.iter().zip(data.y()) {
            prop_assert_eq!(&data.classes()[class], names[usize::from(*label)]);
        }
        let new = data.schema().read(text.as_bytes(), &ReadOptions::default()).unwrap();
        prop_assert_eq!(bits(&new.x), bits(data.x()));
        prop_assert_eq!(new.labels.unwrap().len(), rows.len());
    }

    #[test]
    fn libsvm_reads_back(rows in rows(), zeros in any::<bool>(), end in prop::sample::select(vec!["\n", "\r\n", "\r"])) {
        let mut text = String::new();
        for (values, label) in &rows {
            text.push_str(if *label { "+1" } else { "-1" });
            for (j, v) in values.iter().enumerate() {
                if zeros || *v != 0.0 {
                    text.push_str(&format!(" {}:{v:?}", j + 1));
                }
            }
            text.push_str(end);
        }
        let options = ReadOptions { format: Some(Format::Libsvm), ..ReadOptions::default() };
        let x = matrix(&rows);
        match Dataset::from_reader(text.as_bytes(), &options) {
            Ok(data) => {
                // Columns of zeros at the right end are not in the file.
                for (i, row) in data.x().iter_rows().enumerate() {
                    prop_assert_eq!(row, &x.row(i)[..row.len()]);
                    prop_assert!(x.row(i)[row.len()..].iter().all(|&v| v == 0.0));
                    prop_assert_eq!(data.classes()[data.y()[i]] == "1", rows[i].1);
                }
            }
            Err(_) => prop_assert!(!zeros && x.as_slice().iter().all(|&v| v == 0.0)),
        }
    }
}

/// Looks at the message of an error: it is one short line, and says where or what.
fn assert_clear(error: &svml::Error, input: &str) {
    let message = error.to_string();
    assert!((10..700).contains(&message.len()), "{input}: {message}");
    assert!(!message.contains(char::is_control), "{input}: {message:?}");
}

/// An array of numpy of doubles, with any shape in its header.
fn npy(shape: &str, numbers: &[f64]) -> Vec<u8> {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    numbers.iter().for_each(|v| file.extend(v.to_le_bytes()));
    file
}

#[test]
fn files_cut_at_any_byte_are_read_or_refused_in_words() {
    let table = "a,\"b\n\"\"b\"\"\",c\r\n1.5,\"x, y\",p\r\n-2e3,z,q\r\n0,\"x, y\",p\r\n";
    let libsvm = "1 1:0.5 3:-2e1 # c\n-1 2:7\n+1 1:1\n";
    let array = npy("(3, 2)", &[1.0, 0.0, 2.0, 1.0, 3.0, 0.0]);
    for file in [table.as_bytes(), libsvm.as_bytes(), &array] {
        for end in 0..=file.len() {
            let cut = &file[..end];
            match Dataset::from_reader(cut, &ReadOptions::default()) {
                Ok(data) => data.schema().validate().unwrap(),
                Err(error) => assert_clear(&error, &String::from_utf8_lossy(cut)),
            }
        }
        Dataset::from_reader(file, &ReadOptions::default()).unwrap();
    }
    // Within quotes it is the quote that is named.
    let end = table.find(", y").unwrap();
    let error =
        Dataset::from_reader(&table.as_bytes()[..end], &ReadOptions::default()).unwrap_err();
    assert!(
        error.to_string().starts_with("line 3: the quote of the cell '\"x' is never closed"),
        "{error}"
    );
}

#[test]
fn hostile_numbers_and_lines_are_named() {
    let read = |bytes: &[u8]| Dataset::from_reader(bytes, &ReadOptions::default());
    let numbers = [1.0, 0.0, 2.0, 1.0];
    for shape in [
        "(-1, 2)",
        "(0, 2)",
        "(2, 0)",
        "(2147483647, 2)",
        "(2147483648, 2147483648)",
        "(9223372036854775807, 2)",
        "(9223372036854775808, 2)",
        "(18446744073709551616, 2)",
        "(2, 100002)",
        "(2,)",
        "()",
        "(2, 2, 1)",
        "(3, 2)",
        "(1e1, 2)",
    ] {
        assert_clear(&read(&npy(shape, &numbers)).unwrap_err(), shape);
    }
    read(&npy("(2, 2)", &numbers)).unwrap();
    let long = "x".repeat(1_000_000);
    let nines = "9".repeat(1_000_000);
    for (text, line) in [
        (format!("1,2,a\n3,4,{long}\n5,b\n"), 3),
        (format!("a,b,c\n1,{nines},x\n"), 0),
        (format!("1,2,a\n{long}\n"), 2),
        (format!("1 1:1\n1 1:{long}\n"), 2),
        (format!("1 1:1\n1 {nines}:1\n"), 2),
        (format!("1 1:1\n{long} 1:1\n"), 2),
        (format!("1,2,a\n\"{long},3,a\n"), 2),
        ("1,2\n3,\0\n".to_owned(), 2),
        ("1 1:1\n1 2147483647:1\n".to_owned(), 2),
        ("1 1:1\n1 9223372036854775808:1\n".to_owned(), 2),
        ("1 1:1\n1 -1:1\n".to_owned(), 2),
        ("1 1:1\n1 0:1\n".to_owned(), 2),
        ("1 1:1\n1 1:nan\n".to_owned(), 2),
        ("1 1:1\n1 1:1,5\n".to_owned(), 2),
    ] {
        let options = ReadOptions {
            format: text.starts_with("1 1").then_some(Format::Libsvm),
            ..ReadOptions::default()
        };
        let error = Dataset::from_reader(text.as_bytes(), &options).unwrap_err();
        assert_clear(&error, &text[..text.len().min(40)]);
        if line > 0 {
            let message = error.to_string();
            assert!(message.starts_with(&format!("line {line}: ")), "{message}");
        }
    }
}
