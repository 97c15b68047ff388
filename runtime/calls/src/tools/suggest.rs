//! Finds the known name nearest to a misspelled one, for hints about unknown tools, keys and other names.

/// Longer names have no near ones.
const LONGEST: usize = 64;

/// Minimum length of a prefix that is taken for the name.
const SHORTEST_BEGINNING: usize = 4;

/// The nearest of the known names, if any is near: the one with few edits, else the shortest with the same
/// prefix. Case, and `-` for `_`, do not count as differences.
pub fn nearest<'k>(wanted: &str, known: &[&'k str]) -> Option<&'k str> {
    if wanted.len() > LONGEST {
        return None;
    }
    let (distance, name) = known.iter().map(|name| (distance(wanted, name), *name)).min()?;
    if distance <= 1 + wanted.chars().count() / 4 {
        return Some(name);
    }
    let folded = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    let beginning = folded(wanted);
    let begin_alike = known.iter().copied().filter(|name| folded(name).starts_with(&beginning));
    begin_alike.min_by_key(|name| (name.len(), *name)).filter(|_| wanted.len() >= SHORTEST_BEGINNING)
}

/// Edit distance of two names, if the second one is not too long to be near.
fn distance(a: &str, b: &str) -> usize {
    if b.len() > LONGEST {
        return usize::MAX;
    }
    let fold = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    strsim::osa_distance(&fold(a), &fold(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_names() {
        assert_eq!(distance("read-file", "read_file"), 0);
        assert_eq!(distance("reed_file", "read_file"), 1);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(nearest("gitub", &["fs", "github"]), Some("github"));
        assert_eq!(nearest("database", &["fs", "github"]), None);
        assert_eq!(nearest("x", &[]), None);
        assert_eq!(
            nearest("list-dir", &["list", "list_directory_tree", "list_directory"]),
            Some("list_directory")
        );
        assert_eq!(nearest("lis", &["list_directory"]), None);
    }
}
