//! Licence expressions, such as `(MIT OR Apache-2.0) AND Unicode-3.0`.

const ALLOWED: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    // Data: the certificates of the public authorities.
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "NCSA",
    "Unicode-3.0",
    "Zlib",
];

/// Whether `expression` can be kept with licences that are allowed.
pub fn is_allowed(expression: &str) -> bool {
    // The slash is an old form of `OR`.
    let expression = expression.replace('/', " OR ");
    any(expression.trim())
}

fn any(expression: &str) -> bool {
    parts(expression, " OR ").into_iter().any(all)
}

fn all(expression: &str) -> bool {
    let parts = parts(expression, " AND ");
    parts.into_iter().all(|part| {
        match part.strip_prefix('(').and_then(|in_it| in_it.strip_suffix(')')) {
            Some(inner) => any(inner),
            None => ALLOWED.contains(&part),
        }
    })
}

// The parts between `word`s that are in no parentheses.
fn parts<'e>(expression: &'e str, word: &str) -> Vec<&'e str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, letter) in expression.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && expression[at..].starts_with(word) => {
                parts.push(expression[start..at].trim());
                start = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(expression[start..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn one_of_several_is_enough_and_all_of_several_are_needed() {
        let allowed = ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR Zlib", "(MPL-2.0 OR MIT) AND Unicode-3.0"];
        let refused = ["", "GPL-3.0", "MIT AND MPL-2.0", "(MPL-2.0 OR GPL-3.0) AND MIT"];
        assert!(allowed.into_iter().all(is_allowed));
        assert!(!refused.into_iter().any(is_allowed));
    }
}
