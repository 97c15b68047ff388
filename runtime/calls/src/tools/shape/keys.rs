//! Decides whether a key in a tool's result is a field name (`created_at`) or may be data (a token, an address), since
//! a result type that is inferred from results may contain field names only.
//!
//! A key that is data says something about the result, so when in doubt it counts as data. The rules go by the look of
//! identifiers: few and short words of letters that can be spoken, and few digits.

/// Limit of characters.
const LONGEST: usize = 40;

/// Limit of words.
const MOST_WORDS: usize = 7;

/// Limit of the letters of a word.
const LONGEST_WORD: usize = 20;

/// Limit of a key of capitals and digits alone.
const LONGEST_CODE: usize = 15;

/// Limits of all digits, of the digits of a number, and of numbers.
const MOST_DIGITS: usize = 4;
const LONGEST_NUMBER: usize = 3;
const MOST_NUMBERS: usize = 2;

/// From this length on, a word that cannot be spoken is no word.
const SPOKEN: usize = 6;

/// From this length on, the letters of a word must be as frequent as in words.
const LONG: usize = 10;

/// True for a key that looks like the name of a field.
pub(super) fn is_name(key: &str) -> bool {
    let is_first = |first: char| first.is_alphabetic() || matches!(first, '_' | '$' | '@');
    let inner = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
    let mut characters = key.chars();
    if !characters.next().is_some_and(is_first) || !characters.all(inner) || key.chars().count() > LONGEST {
        return false;
    }
    let is_code = !key.contains(|character: char| character.is_lowercase() || character == '_');
    if is_code && key.len() > LONGEST_CODE {
        return false;
    }
    let parts = parts(key);
    let numbers: Vec<&str> = parts.iter().copied().filter(|part| is_number(part)).collect();
    let words: Vec<&str> = parts.iter().copied().filter(|part| !is_number(part)).collect();
    let digits: usize = numbers.iter().map(|number| number.len()).sum();
    let letters: usize = words.iter().map(|word| word.chars().count()).sum();
    digits <= MOST_DIGITS
        && numbers.len() <= MOST_NUMBERS
        && numbers.iter().all(|number| number.len() <= LONGEST_NUMBER)
        && (1..=MOST_WORDS).contains(&words.len())
        && !(words.len() >= 3 && has_inner_number(key))
        // Letters at random in two cases fall into many short parts.
        && (words.len() < 4 || key.contains('_') || letters >= 4 * words.len())
        && words.iter().all(|word| is_word(word))
}

/// [`is_name`] for the heading of a column, which may have several words.
pub(super) fn is_heading(text: &str) -> bool {
    is_name(&text.replace(' ', "_")) && !text.starts_with(' ')
}

fn is_number(part: &str) -> bool {
    part.starts_with(|character: char| character.is_numeric())
}

/// True for letters on both sides of a number, as in `aB3cD`.
fn has_inner_number(key: &str) -> bool {
    let letters = |text: &str| text.ends_with(char::is_alphabetic);
    let inner = |(at, digit): (usize, char)| {
        let after = key[at + digit.len_utf8()..].trim_start_matches(char::is_numeric);
        digit.is_numeric() && letters(&key[..at]) && after.starts_with(char::is_alphabetic)
    };
    key.char_indices().any(inner)
}

/// The words and numbers of `snake_case`, `kebab-case` and `camelCase`.
fn parts(key: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut last) = (0, None::<char>);
    for (at, character) in key.char_indices() {
        // The last capital of `HTTPStatus` begins a word.
        if let Some(capital) = last.filter(|last| last.is_uppercase() && character.is_lowercase())
            && at - capital.len_utf8() > start
        {
            parts.push(&key[start..at - capital.len_utf8()]);
            start = at - capital.len_utf8();
        }
        let is_break = last.is_some_and(|last| {
            last.is_alphanumeric() != character.is_alphanumeric()
                || last.is_numeric() != character.is_numeric()
                || last.is_lowercase() && character.is_uppercase()
        });
        if is_break {
            parts.push(&key[start..at]);
            start = at;
        }
        last = Some(character);
    }
    parts.push(&key[start..]);
    parts.retain(|part| part.starts_with(char::is_alphanumeric));
    parts
}

/// True for letters that could be a word or an abbreviation.
fn is_word(word: &str) -> bool {
    let word = word.to_lowercase();
    let length = word.chars().count();
    if length > LONGEST_WORD {
        return false;
    }
    // Other alphabets have other rules.
    if !word.is_ascii() || length < SPOKEN {
        return true;
    }
    let is_vowel = |letter: char| "aeiouy".contains(letter);
    let longest = |wanted: bool| {
        let runs = word.split(move |letter| is_vowel(letter) != wanted);
        runs.map(str::len).max().unwrap_or_default()
    };
    let vowels = word.chars().filter(|letter| is_vowel(*letter)).count();
    let rare = word.chars().filter(|letter| "jkqvwxz".contains(*letter)).count();
    let is_spoken = vowels > 0 && (longest(false) <= 4 || word.ends_with("ngths")) && longest(true) <= 4;
    is_spoken
        && (length < LONG
            || 4 * vowels >= length
                && longest(false) <= 4
                && longest(true) <= 3
                && rare <= 2
                && is_usual(&word))
}

/// True when pairs of letters of a word are usual ones. Of a word about three in four are, of letters at random one in
/// four.
fn is_usual(word: &str) -> bool {
    let is_common = |pair: &&[u8]| USUAL_PAIRS.as_bytes().chunks(3).any(|usual| usual.starts_with(pair));
    let pairs = word.as_bytes().windows(2);
    let all = pairs.len();
    5 * pairs.filter(is_common).count() >= 3 * all
}

/// The most frequent pairs of letters in English words.
const USUAL_PAIRS: &str = "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le \
    ve co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr \
    ly nc et ut ss so rs un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su id os iv ia \
    am fi ci vi pl ig tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke ei oo bo pt cr sc tt ag au ue um da do ck kn dg gn \
    ub qu gr av ov pp bs ir ad ap ho ui";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fields_are_names() {
        for name in [
            "id",
            "ID",
            "_id",
            "$schema",
            "@type",
            "createdAt",
            "created_at",
            "x-request-id",
            "html_url",
            "iban",
            "HTTPStatus",
            "address2",
            "sha256",
            "md5",
            "nextPageToken",
            "is_deleted",
            "strengths",
            "transaction_count",
            "internationalization",
            "numberOfOpenPullRequests",
            "isbn13",
            "x",
            "größe",
            "名前",
            "unread_messages_count",
            "availability_zone",
            "description",
            "approximateArrivalTimestamp",
            "base64Data",
            "acknowledged",
            "unsubscribed",
            "neighborhood",
            "hyperparameters",
            "geburtsdatum",
            "is_on_the_way",
            "configuration",
            "authorization",
            "notifications",
            "subscription_status",
            "organization",
            "relationships",
            "recommendations",
            "jurisdiction",
            "manufacturer",
            "requirements",
            "environment",
            "thumbnailUrl",
            "participants",
            "confidential",
            "chargebacks",
            "accessibility",
            "accommodation",
            "departments",
            "background",
            "questionnaire",
        ] {
            assert!(is_name(name), "{name}");
        }
        assert!(is_heading("Order ID") && is_heading("Sum") && !is_heading("4711 x") && !is_heading(" a"));
    }

    #[test]
    fn data_are_no_names() {
        for data in [
            "",
            "4711",
            "2026-03-01",
            "ann@example.com",
            "Ann Example",
            "a.b",
            "AKIAIOSFODNN7EXAMPLE",
            "user-48213",
            "550e8400-e29b-41d4-a716-446655440000",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
            "eyJhbGciOiJIUzI1NiJ9",
            "DE89370400440532013000",
            "+4915112345678",
            "bkqwzxjvhgtr",
            "d41d8cd98f00b204",
            "xoxb-1234-abcd",
            "user-4821",
            "kqzvwxjtrmnbpfgh",
            "a1b2c3d4",
            "C:\\Users",
            "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPbdG",
            "correcthorsebatterystaple",
            "beeainsspebahitx",
            "TfjcaziMf5LuPjLASOtq",
            "ykXnuofrktfZXwccHgIj",
        ] {
            assert!(!is_name(data), "{data}");
        }
    }
}
