//! The page docs/reliability.md.

use std::fmt::Write;
use std::path::Path;

use svml::internals::write_atomically;

use super::gates::{GATES, Gate, How, SHORT};
use super::record::{self, Record};

/// Writes the page from the results.
pub fn write(results: &Path, out: &Path) -> Result<(), String> {
    let page = page(GATES, SHORT, &record::read(results)?);
    write_atomically(out, page.as_bytes()).map_err(|e| e.to_string())
}

fn page(gates: &[Gate], short: &[&str], records: &[Record]) -> String {
    let mut page = String::from(
        "# Reliability\n\nMade by `cargo run --release -p study -- reliability report` from study/results/reliability.jsonl; only the \
         wording is typed by hand.\n\nEach gate is a promise, with the program that checks it and the result of its last run. \
         [attack.md](attack.md) describes how an early version was broken, and what the same attack finds now.\n\n\
         | | gate | requirement | checked by | met |\n|---|---|---|---|---|\n",
    );
    for (i, gate) in gates.iter().enumerate() {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} |",
            i + 1,
            gate.title,
            gate.asks,
            looked_at_by(&gate.how),
            met(&gate.how, records)
        );
    }
    page += "\n## What is not met\n\n";
    let failed = gates.iter().enumerate().filter(|(_, gate)| met(&gate.how, records) == "no");
    let failed = failed
        .map(|(i, gate)| format!("- Gate {}, {}: see its last run below.", i + 1, gate.title));
    for line in failed.chain(short.iter().map(|line| format!("- {line}"))) {
        let _ = writeln!(page, "{line}");
    }
    page += "\n## Results of the last runs\n";
    for gate in gates {
        for check in checks(&gate.how) {
            let Some(record) = last(check, records) else { continue };
            let _ = writeln!(
                page,
                "\n### {check}\n\n{}; {}; {}.\n",
                record.header.date, record.header.computer, record.header.versions
            );
            for sentence in &record.seen {
                let _ = writeln!(page, "- {sentence}");
            }
        }
    }
    let missing: Vec<_> = gates
        .iter()
        .flat_map(|gate| checks(&gate.how).iter().map(move |check| (gate.title, check)))
        .filter(|(_, check)| last(check, records).is_none())
        .map(|(title, check)| format!("- {title}: {check}"))
        .collect();
    if !missing.is_empty() {
        let _ = write!(page, "\n## Not yet run\n\n{}\n", missing.join("\n"));
    }
    page
}

fn checks(how: &How) -> &'static [&'static str] {
    match how {
        How::Checks(names) | How::Both(_, names) | How::Made(names) => names,
        How::Tests(_) => &[],
    }
}

fn last<'a>(check: &str, records: &'a [Record]) -> Option<&'a Record> {
    records.iter().rev().find(|record| record.check == check)
}

fn looked_at_by(how: &How) -> String {
    let programs = |names: &[&str]| format!("`study reliability` {}", names.join(", "));
    match how {
        How::Tests(files) => (*files).to_owned(),
        How::Checks(names) => programs(names),
        How::Both(files, names) => format!("{files}; {}", programs(names)),
        How::Made(names) => {
            names.iter().map(|name| format!("`make {name}`")).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Tests are met where this page is printed from a state that passed; of checks all must have run and held.
fn met(how: &How, records: &[Record]) -> &'static str {
    let checks = checks(how);
    let all = |held: bool| {
        checks.iter().all(|check| last(check, records).is_some_and(|record| record.met || !held))
    };
    match how {
        How::Tests(_) => "in every run",
        _ if !all(false) => "not run",
        _ if all(true) => "yes",
        _ => "no",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::computer;

    fn record(check: &str, met: bool, seen: &str) -> Record {
        Record {
            check: check.to_owned(),
            header: computer::header(),
            met,
            seen: vec![seen.to_owned()],
        }
    }

    #[test]
    fn the_last_run_of_each_check_is_what_counts() {
        let gates = [
            Gate { title: "A", asks: "a", how: How::Checks(&["one", "two"]) },
            Gate { title: "B", asks: "b", how: How::Checks(&["three"]) },
            Gate { title: "C", asks: "c", how: How::Tests("c.rs") },
            Gate { title: "D", asks: "d", how: How::Made(&["two"]) },
        ];
        let mut records = vec![
            record("one", false, "Bad."),
            record("one", true, "Good."),
            record("two", true, "Fine."),
        ];
        let text = page(&gates, &["E falls short."], &records);
        assert!(text.contains("| A | a | `study reliability` one, two | yes |"), "{text}");
        assert!(text.contains("| B | b | `study reliability` three | not run |"), "{text}");
        assert!(text.contains("- Good.") && !text.contains("- Bad."), "{text}");
        assert!(text.contains("| C | c | c.rs | in every run |"), "{text}");
        assert!(text.ends_with("## Not yet run\n\n- B: three\n"), "{text}");
        assert!(text.contains("| D | d | `make two` | yes |"), "{text}");
        assert!(text.contains("## What is not met\n\n- E falls short.\n"), "{text}");
        records.push(record("two", false, "Worse."));
        let text = page(&gates, &[], &records);
        assert!(text.contains("one, two | no |"), "{text}");
        assert!(text.contains("## What is not met\n\n- Gate 1, A: "), "{text}");
    }
}
