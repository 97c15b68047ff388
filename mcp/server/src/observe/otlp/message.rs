//! Messages of the OpenTelemetry protocol, as the fields that they have, in both encodings of OTLP/HTTP: JSON and
//! Protocol Buffers.
//!
//! Numbers and names of fields are those of <https://github.com/open-telemetry/opentelemetry-proto>, version 1. In JSON
//! 64-bit integers are texts and ids are hexadecimal, by the mapping of the OTLP specification.

use ptc_base::digest::hex;
use serde_json::{Map, Value as Json, json};

/// How bodies of requests are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// `http/json`.
    Json,
    /// `http/protobuf`.
    Protobuf,
}

/// A message: number, name and value of each field that is set, in the order of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Message(Vec<(u32, &'static str, Part)>);

/// The value of a field, by its type in the protocol.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// `bytes` that are an id.
    Id(Vec<u8>),
    Text(String),
    Bool(bool),
    /// `enum` and `uint32`.
    Small(u32),
    /// `int64`.
    Int(i64),
    /// `fixed64` and `sfixed64` that is not negative.
    Fixed(u64),
    /// `fixed32`.
    Fixed32(u32),
    Double(f64),
    /// `repeated fixed64`.
    Fixeds(Vec<u64>),
    /// `repeated double`.
    Doubles(Vec<f64>),
    Message(Message),
    Messages(Vec<Message>),
}

/// Makes a method that sets a field.
macro_rules! setters {
    ($($name:ident($type:ty) = $part:ident;)*) => {
        $(pub(super) fn $name(mut self, number: u32, name: &'static str, value: $type) -> Message {
            self.0.push((number, name, Part::$part(value)));
            self
        })*
    };
}

impl Message {
    setters! {
        id(Vec<u8>) = Id;
        text(String) = Text;
        bool(bool) = Bool;
        small(u32) = Small;
        int(i64) = Int;
        fixed(u64) = Fixed;
        fixed32(u32) = Fixed32;
        double(f64) = Double;
        fixeds(Vec<u64>) = Fixeds;
        doubles(Vec<f64>) = Doubles;
        message(Message) = Message;
        messages(Vec<Message>) = Messages;
    }

    /// The body of a request.
    pub(super) fn encoded(&self, encoding: Encoding) -> Vec<u8> {
        match encoding {
            Encoding::Json => self.json().to_string().into_bytes(),
            Encoding::Protobuf => self.protobuf(),
        }
    }

    fn json(&self) -> Json {
        Json::Object(
            self.0.iter().map(|(_, name, part)| ((*name).to_owned(), part.json())).collect::<Map<_, _>>(),
        )
    }

    fn protobuf(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, _, part) in &self.0 {
            part.write(*number, &mut bytes);
        }
        bytes
    }
}

impl Part {
    fn json(&self) -> Json {
        match self {
            Part::Id(bytes) => hex(bytes).into(),
            Part::Text(text) => text.as_str().into(),
            Part::Bool(value) => (*value).into(),
            Part::Small(number) | Part::Fixed32(number) => (*number).into(),
            Part::Int(number) => number.to_string().into(),
            Part::Fixed(number) => number.to_string().into(),
            Part::Double(number) => json!(number),
            Part::Fixeds(numbers) => numbers.iter().map(u64::to_string).collect(),
            Part::Doubles(numbers) => json!(numbers),
            Part::Message(message) => message.json(),
            Part::Messages(messages) => messages.iter().map(Message::json).collect(),
        }
    }

    /// Appends the field: its key, which is number and wire type, and its value
    /// (<https://protobuf.dev/programming-guides/encoding>).
    fn write(&self, number: u32, out: &mut Vec<u8>) {
        let key = |wire_type: u32, out: &mut Vec<u8>| varint(u64::from(number << 3 | wire_type), out);
        let delimited = |bytes: &[u8], out: &mut Vec<u8>| {
            key(2, out);
            varint(bytes.len() as u64, out);
            out.extend_from_slice(bytes);
        };
        match self {
            Part::Id(bytes) => delimited(bytes, out),
            Part::Text(text) => delimited(text.as_bytes(), out),
            Part::Bool(value) => Part::Small(u32::from(*value)).write(number, out),
            Part::Small(value) => Part::Int(i64::from(*value)).write(number, out),
            Part::Int(value) => {
                key(0, out);
                varint(value.cast_unsigned(), out);
            }
            Part::Fixed(value) => {
                key(1, out);
                out.extend_from_slice(&value.to_le_bytes());
            }
            Part::Fixed32(value) => {
                key(5, out);
                out.extend_from_slice(&value.to_le_bytes());
            }
            Part::Double(value) => Part::Fixed(value.to_bits()).write(number, out),
            Part::Fixeds(values) => {
                let packed: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                delimited(&packed, out);
            }
            Part::Doubles(values) => {
                Part::Fixeds(values.iter().map(|value| value.to_bits()).collect()).write(number, out);
            }
            Part::Message(message) => delimited(&message.protobuf(), out),
            Part::Messages(messages) => messages.iter().for_each(|one| delimited(&one.protobuf(), out)),
        }
    }
}

/// Appends a number in groups of seven bits, the lowest first.
fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// An attribute (`KeyValue`).
pub(super) fn attribute(key: &str, value: impl Into<Json>) -> Message {
    let any = match value.into() {
        Json::String(text) => Message::default().text(1, "stringValue", text),
        Json::Bool(value) => Message::default().bool(2, "boolValue", value),
        // Attributes are texts, truth values and numbers from 0 on.
        number => Message::default().int(3, "intValue", number.as_i64().unwrap_or(i64::MAX)),
    };
    Message::default().text(1, "key", key.to_owned()).message(2, "value", any)
}

/// A request that exports these items of a resource. `names`: of the list of resources, of the list of scopes, and of
/// the items.
pub(super) fn request(names: [&'static str; 3], resource: &Message, items: Vec<Message>) -> Message {
    let [resources, scopes, name] = names;
    let ptc = Message::default().text(1, "name", "ptc".to_owned());
    let ptc = ptc.text(2, "version", env!("CARGO_PKG_VERSION").to_owned());
    let scope = Message::default().message(1, "scope", ptc).messages(2, name, items);
    let resource = Message::default().message(1, "resource", resource.clone());
    Message::default().messages(1, resources, vec![resource.messages(2, scopes, vec![scope])])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One field of each type.
    fn example() -> Message {
        Message::default()
            .id(1, "id", vec![0x0a, 0xff])
            .text(2, "text", "é".to_owned())
            .bool(3, "bool", true)
            .small(4, "small", 300)
            .int(5, "int", -1)
            .fixed(6, "fixed", 1 << 60)
            .fixed32(7, "fixed32", 257)
            .double(8, "double", 0.5)
            .fixeds(9, "fixeds", vec![1, 2])
            .doubles(10, "doubles", vec![0.5])
            .message(11, "message", Message::default())
            .messages(16, "messages", vec![attribute("k", true), attribute("n", 7)])
    }

    #[test]
    fn json_has_ids_in_hexadecimal_and_long_numbers_as_texts() {
        let body = String::from_utf8(example().encoded(Encoding::Json)).unwrap();
        assert_eq!(
            body,
            concat!(
                r#"{"id":"0aff","text":"é","bool":true,"small":300,"int":"-1","fixed":"1152921504606846976","#,
                r#""fixed32":257,"double":0.5,"fixeds":["1","2"],"doubles":[0.5],"message":{},"messages":["#,
                r#"{"key":"k","value":{"boolValue":true}},{"key":"n","value":{"intValue":"7"}}]}"#
            )
        );
    }

    #[test]
    fn protobuf_has_the_bytes_of_the_encoding() {
        assert_eq!(
            hex(&example().encoded(Encoding::Protobuf)),
            concat!(
                "0a020aff",
                "1202c3a9",
                "1801",
                "20ac02",
                "28ffffffffffffffffff01",
                "310000000000000010",
                "3d01010000",
                "41000000000000e03f",
                "4a1001000000000000000200000000000000",
                "5208000000000000e03f",
                "5a00",
                "8201070a016b12021001",
                "8201070a016e12021807",
            )
        );
    }
}
