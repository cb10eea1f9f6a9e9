//! Suggestions: the known word closest to a misspelled one.

/// Longest word to suggest a correction for, in characters.
const MAX_LEN: usize = 64;

/// Returns the word of `known` closest to `word`, for a "did you mean".
///
/// Case is ignored. One error is always allowed, and at most a third of the characters. An error is
/// a wrong, missing, extra or swapped character. Returns `None` if no known word is that close.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word = folded(word)?;
    let near = known.into_iter().filter_map(|one| {
        let other = folded(one)?;
        let allowed = (word.len().max(other.len()) / 3).max(1);
        let distance = distance(&word, &other);
        (distance <= allowed && distance < other.len()).then_some((distance, one))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, one)| one)
}

// Returns the characters in lower case. Returns `None` if there are too many.
fn folded(word: &str) -> Option<Vec<char>> {
    let characters: Vec<_> = word.chars().take(MAX_LEN + 1).flat_map(char::to_lowercase).collect();
    (characters.len() <= MAX_LEN).then_some(characters)
}

// Returns the optimal string alignment distance: the number of insertions, deletions, replacements
// and swaps of neighbours. The table keeps two lines only.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut last = None;
    for (row, &x) in a.iter().enumerate() {
        let mut line = vec![row + 1];
        let mut left = row + 1;
        let mut previous = None;
        for (column, (&y, pair)) in b.iter().zip(above.windows(2)).enumerate() {
            let &[diagonal, up] = pair else { continue };
            left = (left + 1).min(up + 1).min(diagonal + usize::from(x != y));
            let swapped = last == Some(y) && previous == Some(x);
            if let Some(&two_back) = before.get(column.wrapping_sub(1)).filter(|_| swapped) {
                left = left.min(two_back + 1);
            }
            line.push(left);
            previous = Some(y);
        }
        before = std::mem::replace(&mut above, line);
        last = Some(x);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near() {
        let known = ["active", "critical", "channels", "filters", "isTranslationEnabled"];
        for (word, expected) in [
            ("actve", Some("active")),
            ("acitve", Some("active")),
            ("critcal", Some("critical")),
            ("filter", Some("filters")),
            ("Channels", Some("channels")),
            ("istranslationenabled", Some("isTranslationEnabled")),
            ("payload", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(nearest("x", ["a", "x1"]), Some("x1"));
        assert_eq!(nearest("x", ["a"]), None, "nothing of it is right");
        assert_eq!(nearest(&"x".repeat(65), [&*"x".repeat(64)]), None);
    }

    #[test]
    fn the_nearest_is_the_first_of_the_nearest() {
        assert_eq!(nearest("color", ["colors", "colour", "color"]), Some("color"));
        assert_eq!(nearest("colr", ["colors", "color"]), Some("color"));
    }

    #[test]
    fn swaps_insertions_deletions_and_replacements_count_one() {
        for (a, b, expected) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("abc", "acb", 1),
            ("abc", "bac", 1),
            ("abc", "axc", 1),
            ("abc", "abxc", 1),
            ("abc", "ac", 1),
            ("kitten", "sitting", 3),
        ] {
            let [a, b] = [a, b].map(|word: &str| word.chars().collect::<Vec<_>>());
            assert_eq!(distance(&a, &b), expected, "{a:?} {b:?}");
        }
    }
}
