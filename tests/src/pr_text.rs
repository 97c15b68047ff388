//! Parses the text that `pr-str` prints, so that answers are compared by value, not by character.

/// A printed value.
#[derive(Clone, Debug)]
pub enum Data {
    /// `nil`, `true`, `false`, quoted symbols, vars: equal when their text is.
    Word(String),
    /// An integer of any size, without sign `+` and leading zeros.
    Integer(String),
    /// A float.
    Float(f64),
    /// A string, or a character (a string of one character).
    Text(String),
    /// A keyword, without its colon.
    Keyword(String),
    /// `#"…"`.
    Pattern(String),
    /// A vector, list or sequence: they are equal when their elements are.
    Sequence(Vec<Data>),
    /// A set, in any order.
    Set(Vec<Data>),
    /// A map, in any order.
    Map(Vec<(Data, Data)>),
    /// A function in any of its printed forms.
    Function,
}

impl PartialEq for Data {
    fn eq(&self, other: &Data) -> bool {
        use Data::*;
        match (self, other) {
            (Word(a), Word(b)) | (Integer(a), Integer(b)) | (Text(a), Text(b)) => a == b,
            (Keyword(a), Keyword(b)) | (Pattern(a), Pattern(b)) => a == b,
            (Float(a), Float(b)) => same_float(*a, *b),
            (Sequence(a), Sequence(b)) => a == b,
            (Set(a), Set(b)) => same_unordered(a, b),
            (Map(a), Map(b)) => same_unordered(a, b),
            (Function, Function) => true,
            _ => false,
        }
    }
}

fn same_float(a: f64, b: f64) -> bool {
    let near = || (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
    a == b || (a.is_nan() && b.is_nan()) || (a.is_finite() && b.is_finite() && near())
}

fn same_unordered<T: PartialEq>(a: &[T], b: &[T]) -> bool {
    let mut rest: Vec<&T> = b.iter().collect();
    a.len() == b.len()
        && a.iter().all(|item| match rest.iter().position(|other| *other == item) {
            Some(index) => {
                rest.swap_remove(index);
                true
            }
            None => false,
        })
}

/// Reads one value; `None` if the text is not exactly one value.
pub fn read(text: &str) -> Option<Data> {
    let mut reader = Reader { rest: text };
    let data = reader.form()?;
    reader.skip_space();
    reader.rest.is_empty().then_some(data)
}

/// True if both texts print the same value.
pub fn same(a: &str, b: &str) -> bool {
    a == b || read(a).is_some_and(|a| Some(a) == read(b))
}

struct Reader<'a> {
    rest: &'a str,
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | ',' | '\t' | '\r' | '\n' | '\u{c}')
}

fn ends_atom(c: char) -> bool {
    is_space(c) || "()[]{}\";".contains(c)
}

impl<'a> Reader<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches(is_space);
    }

    fn take(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn split(&mut self, at: usize) -> &'a str {
        let (head, rest) = self.rest.split_at(at);
        self.rest = rest;
        head
    }

    fn form(&mut self) -> Option<Data> {
        self.skip_space();
        if self.take("(") {
            return self.until(')').map(Data::Sequence);
        }
        if self.take("[") {
            return self.until(']').map(Data::Sequence);
        }
        if self.take("#{") {
            return self.until('}').map(Data::Set);
        }
        if self.take("{") {
            let items = self.until('}')?;
            let pairs = items.chunks_exact(2);
            let even = pairs.remainder().is_empty();
            return even.then(|| Data::Map(pairs.map(|pair| (pair[0].clone(), pair[1].clone())).collect()));
        }
        if self.take("#\"") {
            return self.string(true).map(Data::Pattern);
        }
        if self.take("\"") {
            return self.string(false).map(Data::Text);
        }
        if self.rest.starts_with("#<") {
            self.take("#");
            return self.balanced('<', '>').map(|_| Data::Function);
        }
        if self.take("#fn") {
            return if self.rest.starts_with('[') { self.balanced('[', ']') } else { Some("") }
                .map(|_| Data::Function);
        }
        if self.take("#duration") {
            return self.balanced('[', ']').map(|inner| Data::Word(format!("#duration{inner}")));
        }
        if self.take("\\") {
            return self.character().map(Data::Text);
        }
        let end = self.rest.find(ends_atom).unwrap_or(self.rest.len());
        (end > 0).then(|| atom(self.split(end)))
    }

    fn until(&mut self, close: char) -> Option<Vec<Data>> {
        let mut items = Vec::new();
        loop {
            self.skip_space();
            if let Some(rest) = self.rest.strip_prefix(close) {
                self.rest = rest;
                return Some(items);
            }
            items.push(self.form()?);
        }
    }

    fn balanced(&mut self, open: char, close: char) -> Option<&'a str> {
        let mut depth = 0;
        for (index, c) in self.rest.char_indices() {
            depth += i32::from(c == open) - i32::from(c == close);
            if depth == 0 {
                return Some(self.split(index + c.len_utf8()));
            }
        }
        None
    }

    fn character(&mut self) -> Option<String> {
        let first = self.rest.chars().next()?.len_utf8();
        let end = self.rest[first..].find(ends_atom).map_or(self.rest.len(), |end| first + end);
        let name = self.split(end);
        Some(
            match name {
                "newline" => "\n",
                "space" => " ",
                "tab" => "\t",
                "return" => "\r",
                "backspace" => "\u{8}",
                "formfeed" => "\u{c}",
                other => other,
            }
            .to_owned(),
        )
    }

    /// The rest of a string; a pattern keeps its escapes.
    fn string(&mut self, pattern: bool) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.rest.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => match chars.next()? {
                    '"' => text.push('"'),
                    other if pattern => text.extend(['\\', other]),
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'b' => text.push('\u{8}'),
                    'f' => text.push('\u{c}'),
                    '0' => text.push('\0'),
                    'u' => {
                        let digits: String = chars.by_ref().take(4).collect();
                        text.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                    }
                    other => text.push(other),
                },
                other => text.push(other),
            }
        }
        self.rest = chars.as_str();
        Some(text)
    }
}

fn atom(text: &str) -> Data {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let numeric = digits.starts_with(|c: char| c.is_ascii_digit());
    match text {
        "##Inf" => Data::Float(f64::INFINITY),
        "##-Inf" => Data::Float(f64::NEG_INFINITY),
        "##NaN" => Data::Float(f64::NAN),
        _ if numeric && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            let sign = if text.starts_with('-') { "-" } else { "" };
            let digits = digits.trim_start_matches('0');
            Data::Integer(if digits.is_empty() { "0".into() } else { format!("{sign}{digits}") })
        }
        _ if numeric && text.parse::<f64>().is_ok() => Data::Float(text.parse().unwrap()),
        _ => match text.strip_prefix(':') {
            Some(name) if !name.is_empty() => Data::Keyword(name.into()),
            _ => Data::Word(text.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn values_are_compared_not_characters() {
        for (a, b) in [
            ("[1 2]", "(1, 2)"),
            ("{:a 1 :b #{1 2}}", "{:b #{2 1} :a 1}"),
            ("1.0", "1.0000000000000002"),
            ("##NaN", "##NaN"),
            ("#fn[x]", "#<builtin +>"),
            ("\\a", "\"a\""),
            ("\"\\u0041\"", "\"A\""),
            ("-007", "-7"),
        ] {
            assert!(same(a, b), "{a} {b}");
        }
    }

    #[test]
    fn different_values_differ() {
        for (a, b) in [
            ("1", "1.0"),
            ("[1 2]", "[2 1]"),
            ("#{1 1}", "#{1 2}"),
            ("{:a 1}", "{:a 1 :b 2}"),
            (":a", "\"a\""),
            ("nil", "false"),
            ("[1", "[1]"),
            ("#\"a\"", "\"a\""),
        ] {
            assert!(!same(a, b), "{a} {b}");
        }
    }
}
