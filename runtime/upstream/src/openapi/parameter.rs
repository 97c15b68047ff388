//! Writes arguments as parts of a URL, in the styles of OpenAPI 3.0 and 3.1, which follow RFC 6570.

use super::argument::{Argument, ArgumentMap};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::value::RawValue;

/// Everything except the unreserved characters of RFC 3986.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Also keeps the reserved characters that do not end a value in a query.
const RESERVED: &AsciiSet = &STRICT
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';');

/// Stands between a key and its value; no encoded text has it.
const PART: &str = "&";

/// Depth limit of an object with brackets.
const DEEPEST: usize = 16;

/// The location of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterLocation {
    /// In the path.
    Path,
    /// After the question mark.
    Query,
}

/// The style of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterStyle {
    /// `a,b`
    Simple,
    /// `.a.b`
    Label,
    /// `;name=a;name=b`
    Matrix,
    /// `name=a&name=b`
    Form,
    /// `name=a%20b`
    SpaceDelimited,
    /// `name=a%7Cb`
    PipeDelimited,
    /// `name[key]=a`
    DeepObject,
    /// JSON text, for a parameter with a media type.
    Json,
}

/// Styles by name, with the location where each is allowed.
pub(super) const STYLES: [(&str, ParameterStyle, ParameterLocation); 7] = [
    ("simple", ParameterStyle::Simple, ParameterLocation::Path),
    ("label", ParameterStyle::Label, ParameterLocation::Path),
    ("matrix", ParameterStyle::Matrix, ParameterLocation::Path),
    ("form", ParameterStyle::Form, ParameterLocation::Query),
    ("spaceDelimited", ParameterStyle::SpaceDelimited, ParameterLocation::Query),
    ("pipeDelimited", ParameterStyle::PipeDelimited, ParameterLocation::Query),
    ("deepObject", ParameterStyle::DeepObject, ParameterLocation::Query),
];

/// One parameter.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) style: ParameterStyle,
    pub(super) explode: bool,
    /// Reserved characters stay as they are.
    pub(super) allow_reserved: bool,
}

impl Parameter {
    /// The value in a path; the error says why it cannot be written.
    pub(super) fn in_path(&self, value: &RawValue) -> Result<String, String> {
        let name = self.encoded(&self.name);
        let (before, between) = match (self.style, self.explode) {
            (ParameterStyle::Label, true) => (".", "."),
            (ParameterStyle::Label, false) => (".", ","),
            (ParameterStyle::Matrix, true) => (";", ";"),
            (ParameterStyle::Matrix, false) => (";", ","),
            _ => ("", ","),
        };
        let is_matrix = self.style == ParameterStyle::Matrix;
        let named = |text: String| match (is_matrix, text.is_empty()) {
            (false, _) => text,
            (true, true) => name.clone(),
            (true, false) => format!("{name}={text}"),
        };
        let text = match self.read(value)? {
            _ if self.style == ParameterStyle::Json => self.encoded(value.get()),
            Argument::List(items) => {
                let items = self.texts(&items)?;
                match is_matrix && self.explode {
                    true => items.into_iter().map(named).collect::<Vec<_>>().join(between),
                    false => named(items.join(between)),
                }
            }
            Argument::Map(map) if self.explode => self.pairs(&map, "=")?.join(between),
            Argument::Map(map) => named(self.pairs(&map, ",")?.join(between)),
            value => named(self.text(&value)?),
        };
        if text.is_empty() {
            return Err(format!("{} must not be empty: it is a part of the path", self.name));
        }
        Ok(format!("{before}{text}"))
    }

    /// Adds the value to a query, in `name=value` pairs; the error says why it cannot be written.
    pub(super) fn in_query(&self, value: &RawValue, query: &mut Vec<String>) -> Result<(), String> {
        let name = self.encoded(&self.name);
        let delimiter = match self.style {
            ParameterStyle::SpaceDelimited => "%20",
            ParameterStyle::PipeDelimited => "%7C",
            _ => ",",
        };
        match self.read(value)? {
            _ if self.style == ParameterStyle::Json => {
                query.push(format!("{name}={}", self.encoded(value.get())))
            }
            _ if self.style == ParameterStyle::DeepObject => self.brackets(&name, value, 0, query)?,
            Argument::List(items) => {
                let items = self.texts(&items)?;
                if !self.explode {
                    self.check_parts(&items)?;
                }
                match self.explode {
                    true => query.extend(items.into_iter().map(|item| format!("{name}={item}"))),
                    // By RFC 6570, an empty list is omitted.
                    false if items.is_empty() => {}
                    false => query.push(format!("{name}={}", items.join(delimiter))),
                }
            }
            Argument::Map(map) if self.explode => query.extend(self.pairs(&map, "=")?),
            Argument::Map(map) if map.is_empty() => {}
            Argument::Map(map) => {
                let pairs = self.pairs(&map, PART)?;
                let parts: Vec<&str> = pairs.iter().flat_map(|pair| pair.split(PART)).collect();
                self.check_parts(&parts)?;
                query.push(format!("{name}={}", parts.join(delimiter)))
            }
            value => query.push(format!("{name}={}", self.text(&value)?)),
        }
        Ok(())
    }

    /// Members of an object, each as key, `between` and value.
    fn pairs(&self, map: &ArgumentMap<'_>, between: &str) -> Result<Vec<String>, String> {
        let members = map.iter().filter(|(_, value)| value.get() != "null");
        members
            .map(|(key, value)| {
                Ok(format!("{}{between}{}", self.encoded(key), self.text(&self.read(value)?)?))
            })
            .collect()
    }

    /// The styles with a blank or a bar between parts have no form for one inside a part.
    fn check_parts(&self, parts: &[impl AsRef<str>]) -> Result<(), String> {
        let (delimiter, shown) = match self.style {
            ParameterStyle::SpaceDelimited => ("%20", "a blank"),
            ParameterStyle::PipeDelimited => ("%7C", "a bar (|)"),
            _ => return Ok(()),
        };
        match parts.iter().any(|part| part.as_ref().contains(delimiter)) {
            true => {
                Err(format!("{} has {shown} in a part, which is what stands between its parts", self.name))
            }
            false => Ok(()),
        }
    }

    fn texts(&self, items: &[&RawValue]) -> Result<Vec<String>, String> {
        items.iter().map(|item| self.text(&self.read(item)?)).collect()
    }

    /// `name[key]=value`, to any depth; items of lists have their index as the key.
    fn brackets(
        &self,
        name: &str,
        value: &RawValue,
        depth: usize,
        query: &mut Vec<String>,
    ) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!("{} nests too deeply for a query", self.name));
        }
        let mut below = |key: &str, value: &RawValue| {
            self.brackets(&format!("{name}%5B{}%5D", self.encoded(key)), value, depth + 1, query)
        };
        match self.read(value)? {
            Argument::Map(map) => map.iter().try_for_each(|(key, value)| below(key, value)),
            Argument::List(items) => {
                items.iter().enumerate().try_for_each(|(at, item)| below(&at.to_string(), item))
            }
            Argument::Null => Ok(()),
            value => {
                query.push(format!("{name}={}", self.text(&value)?));
                Ok(())
            }
        }
    }

    fn read<'v>(&self, value: &'v RawValue) -> Result<Argument<'v>, String> {
        Argument::read(value).map_err(|error| format!("{} cannot be read: {error}", self.name))
    }

    /// A value without parts, as text.
    fn text(&self, value: &Argument<'_>) -> Result<String, String> {
        match value {
            Argument::Text(text) => Ok(self.encoded(text)),
            Argument::Number(number) => Ok(self.encoded(&number_text(number))),
            Argument::Bool(value) => Ok(value.to_string()),
            Argument::Null => Ok(String::new()),
            Argument::List(_) | Argument::Map(_) => Err(format!(
                "{} holds a list or map inside another, which an address cannot carry",
                self.name
            )),
        }
    }

    fn encoded(&self, text: &str) -> String {
        utf8_percent_encode(text, if self.allow_reserved { RESERVED } else { STRICT }).to_string()
    }
}

/// A number for a URL: 2.0 and 2 are written alike, so it does not matter whether a program computed it by a
/// division. Other numbers keep their digits.
fn number_text(number: &str) -> String {
    let is_integer = !number.contains(['.', 'e', 'E']) && number != "-0";
    match number.parse::<f64>() {
        // Without the sign of a negative zero.
        Ok(value) if !is_integer && value.fract() == 0.0 && value.abs() < 1e15 => {
            format!("{:.0}", value + 0.0)
        }
        _ => number.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    fn parameter(style: &str, explode: bool) -> (Parameter, ParameterLocation) {
        let (_, style, place) = STYLES.into_iter().find(|(name, ..)| *name == style).unwrap();
        (Parameter { name: "color".to_owned(), style, explode, allow_reserved: false }, place)
    }

    /// The table in the specification, with the exploded label as in RFC 6570.
    #[test]
    fn the_table_of_styles() {
        let (list, map) = (json!(["blue", "black", "brown"]), json!({"R": 100, "G": 200, "B": 150}));
        let rows = [
            ("matrix", false, ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"),
            ("matrix", true, ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"),
            ("label", false, ".blue", ".blue,black,brown", ".R,100,G,200,B,150"),
            ("label", true, ".blue", ".blue.black.brown", ".R=100.G=200.B=150"),
            ("simple", false, "blue", "blue,black,brown", "R,100,G,200,B,150"),
            ("simple", true, "blue", "blue,black,brown", "R=100,G=200,B=150"),
            ("form", false, "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"),
            ("form", true, "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"),
            (
                "spaceDelimited",
                false,
                "color=blue",
                "color=blue%20black%20brown",
                "color=R%20100%20G%20200%20B%20150",
            ),
            (
                "pipeDelimited",
                false,
                "color=blue",
                "color=blue%7Cblack%7Cbrown",
                "color=R%7C100%7CG%7C200%7CB%7C150",
            ),
            (
                "deepObject",
                true,
                "color=blue",
                "color%5B0%5D=blue&color%5B1%5D=black&color%5B2%5D=brown",
                "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
            ),
        ];
        for (style, explode, word, of_list, of_map) in rows {
            let (parameter, place) = parameter(style, explode);
            for (value, wanted) in [(&json!("blue"), word), (&list, of_list), (&map, of_map)] {
                let value = &*to_raw_value(value).unwrap();
                let written = match place {
                    ParameterLocation::Path => parameter.in_path(value).unwrap(),
                    ParameterLocation::Query => {
                        let mut query = Vec::new();
                        parameter.in_query(value, &mut query).unwrap();
                        query.join("&")
                    }
                };
                assert_eq!(written, wanted, "{style} {explode} {value}");
            }
        }
    }

    #[test]
    fn odd_values() {
        let (path, _) = parameter("simple", false);
        let in_path = |value: Value| path.in_path(&to_raw_value(&value).unwrap());
        assert_eq!(in_path(json!("a/b c?é%")).unwrap(), "a%2Fb%20c%3F%C3%A9%25");
        assert_eq!(in_path(json!(1.5)).unwrap(), "1.5");
        assert!(in_path(json!("")).is_err() && in_path(json!([])).is_err());
        assert!(in_path(json!([[1]])).unwrap_err().contains("inside another"));
        for (number, wanted) in [
            ("12345678901234567890123", "12345678901234567890123"),
            ("-9223372036854775809", "-9223372036854775809"),
            ("[2.0, 18446744073709551616]", "2,18446744073709551616"),
            ("-0", "0"),
            ("1e21", "1e21"),
        ] {
            assert_eq!(path.in_path(serde_json::from_str(number).unwrap()).unwrap(), wanted);
        }
        let (mut form, _) = parameter("form", true);
        let query = |parameter: &Parameter, value: Value| {
            let mut query = Vec::new();
            parameter.in_query(&to_raw_value(&value).unwrap(), &mut query).map(|()| query.join("&"))
        };
        assert_eq!(query(&form, json!("a&b=c+d")).unwrap(), "color=a%26b%3Dc%2Bd");
        assert_eq!(
            (query(&form, json!([])).unwrap(), query(&form, json!({})).unwrap()),
            (String::new(), String::new())
        );
        assert_eq!(query(&form, json!(true)).unwrap(), "color=true");
        assert!(query(&form, json!([{"a": 1}])).is_err());
        form.allow_reserved = true;
        assert_eq!(query(&form, json!("a/b:c?d&e#f")).unwrap(), "color=a/b:c?d%26e%23f");
        form.style = ParameterStyle::Json;
        assert_eq!(query(&form, json!({"a": [1]})).unwrap(), "color=%7B%22a%22:%5B1%5D%7D");
        let (deep, _) = parameter("deepObject", true);
        assert_eq!(query(&deep, json!({"a": {"b": [1, null]}})).unwrap(), "color%5Ba%5D%5Bb%5D%5B0%5D=1");
    }
}
