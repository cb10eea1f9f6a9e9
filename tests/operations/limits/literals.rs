//! A size is compared with a constant of the list in `tidings::limits`, and with no number in its place.

use std::fs;
use std::path::{Path, PathBuf};

/// Lengths of a text in one fixed form.
const FIXED: [&str; 2] = [
    "if text.len() != 22 {",
    "let digits = address.strip_prefix(ERASED).filter(|digits| digits.len() == 64);",
];

/// Constants that are no limits of input: of texts that the engine shortens or compares, of what it
/// keeps, and of answers from servers.
const OTHERS: [&str; 36] = [
    "attempt.rs LONGEST_WAIT",
    "batch.rs LONGEST",
    "batch.rs LONGEST_WAIT",
    "error.rs MAX_LISTED",
    "excerpt.rs MAX",
    "excerpt.rs MAX_WORDS",
    "expression.rs MAX_PATH",
    "feed.rs LONGEST_SLEEP",
    "filter.rs MAX",
    "http.rs LONGEST_ANSWER",
    "http.rs LONGEST_REASON",
    "job.rs MAX_LOG",
    "job.rs MAX_PROVIDER_MESSAGES",
    "lib.rs LONGEST_TIMEOUT",
    "lines.rs LONGEST_LINE",
    "outcome.rs LONGEST_REASON",
    "path.rs MAX",
    "payload.rs MAX_PROBLEM",
    "plural.rs MAX_NUMBER",
    "references.rs MAX_CHECKS",
    "references.rs MAX_COMPARED",
    "roots.rs MAX_KEY",
    "roots.rs MAX_NOTES",
    "send_result.rs LONGEST",
    "stage.rs MAX_DELIVERIES",
    "suggest.rs MAX_LEN",
    "suppression.rs MAX_SUBSCRIBERS",
    "sweep.rs MAX_REMOVED",
    "sweep.rs MAX_ROWS_READ",
    "template.rs MAX_DEPTH",
    "texts.rs MAX_LOCALES",
    "texts.rs MAX_PREPARED",
    "thread.rs LONGEST_SLEEP",
    "tree.rs LONGEST",
    "turn.rs MAX_EXTENSIONS",
    "wire.rs LONGEST_ANSWER",
];

#[test]
fn no_limit_is_outside_of_the_list() {
    let (mut literals, mut constants) = (Vec::new(), Vec::new());
    for folder in ["domain", "engine", "providers"] {
        for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(folder)) {
            let source = fs::read_to_string(&file).unwrap();
            let name = file.file_name().unwrap_or_default().display();
            let code = source.split("#[cfg(test)]").next().unwrap_or_default().lines();
            for line in code.filter(|line| !line.trim_start().starts_with("//")) {
                if is_sized_by_a_number(line) {
                    literals.push(line.trim().to_owned());
                }
                constants.extend(private_limit(line).map(|constant| format!("{name} {constant}")));
            }
        }
    }
    literals.sort();
    assert_eq!(literals, FIXED);
    constants.sort();
    constants.dedup();
    assert_eq!(constants, OTHERS);
}

// A length, a count or a refusal, beside a number of several digits.
fn is_sized_by_a_number(line: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    let is_number = |word: &str| {
        let digits = word.trim_matches('_');
        digits.len() > 1 && digits.chars().all(|c| c.is_ascii_digit() || c == '_')
    };
    has(&["len()", "count()", "at_most", "max:", ".nth("])
        && has(&["> ", "< ", ">= ", "<= ", "== ", "!= ", "..", "at_most", "max:", ".nth("])
        && line.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_number)
}

// The name of a constant that is named as a limit, is not public, and is a number of its own.
fn private_limit(line: &str) -> Option<&str> {
    let (name, rest) = line.trim_start().strip_prefix("const ")?.split_once(": ")?;
    let (_, value) = rest.split_once(" = ")?;
    let is_limit = name.starts_with("MAX") || name.starts_with("LONGEST");
    (is_limit && !value.contains("::MAX")).then_some(name)
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let each = entries.flat_map(|path| match path.file_name().and_then(|name| name.to_str()) {
        Some("tests" | "tests.rs" | "laws.rs") => Vec::new(),
        _ if path.is_dir() => sources(&path),
        _ => vec![path],
    });
    each.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}
