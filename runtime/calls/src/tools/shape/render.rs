//! Renders the observed shape of a tool's results as text, in the notation of signatures: `[{:id int :note string?}]`.

use super::{Items, Learned, Lengths, MapShape, Scalars, Shape};
use crate::tools::key::key;
use std::fmt::Write as _;

/// Length limit of a rendered shape, in bytes. A longer one is shown with fewer levels.
const LONGEST: usize = 2_000;

const SCALARS: [(Scalars, &str); 5] = [
    (Scalars::BOOLEAN, "boolean"),
    (Scalars::INTEGER, "int"),
    (Scalars::FLOAT, "float"),
    (Scalars::STRING, "string"),
    (Scalars::NIL, "nil"),
];

impl Learned {
    /// The shape of the results, `[{:id int :note string?}]`. `None` when nothing was seen.
    pub(crate) fn rendered(&self) -> Option<String> {
        if self.shape == Shape::default() {
            return None;
        }
        let tables: Vec<String> =
            self.tables.iter().map(|(form, rows)| format!("{} {}", form.name(), fitting(rows))).collect();
        let shape = fitting(&self.shape);
        Some(match (&tables[..], self.other_texts) {
            ([], _) => shape,
            (tables, true) => format!("{shape}, sometimes a text that is {}", tables.join(" or ")),
            (tables, false) => {
                let rest = Shape {
                    scalars: Scalars(self.shape.scalars.0 & !Scalars::STRING.0),
                    ..self.shape.clone()
                };
                let rest =
                    if rest == Shape::default() { String::new() } else { format!("{}|", fitting(&rest)) };
                format!("{rest}string that is {}", tables.join(" or "))
            }
        })
    }

    /// How many items lists have, or how long texts are: `4 to 63 items`.
    pub(crate) fn size(&self) -> Option<String> {
        match (&self.shape.list, self.text) {
            (Some(list), _) => Some(format!("{} items", range(list.lengths))),
            (None, Some(lengths)) if lengths.1 > 10 => Some(format!("{} characters", range(lengths))),
            (None, _) => None,
        }
    }
}

/// Lengths are known up to a factor of two.
fn range(Lengths(least, most): Lengths) -> String {
    let from = if least == 0 { 0 } else { 1u64 << (least - 1).min(62) };
    let to = (1u64 << most.min(62)) - 1;
    if from == to { from.to_string() } else { format!("{from} to {to}") }
}

/// The shape with as many levels as fit.
fn fitting(shape: &Shape) -> String {
    let mut text = String::new();
    for levels in (0..=super::DEEPEST).rev() {
        text.clear();
        write(shape, levels, &mut text);
        if text.len() <= LONGEST {
            break;
        }
    }
    text
}

fn write(shape: &Shape, levels: usize, out: &mut String) {
    let start = out.len();
    let bar = |out: &mut String| {
        if out.len() > start {
            out.push('|');
        }
    };
    if let Some(list) = &shape.list {
        match &list.items {
            Items::Of(items) if *items == Shape::default() => out.push_str("[]"),
            Items::Of(items) if levels > 0 => {
                out.push('[');
                write(items, levels - 1, out);
                out.push(']');
            }
            Items::Of(_) | Items::Any => out.push_str("[any]"),
        }
    }
    if let Some(map) = shape.map.as_deref() {
        bar(out);
        write_map(map, levels, out);
    }
    let is_number = shape.scalars.contains(Scalars(Scalars::INTEGER.0 | Scalars::FLOAT.0));
    for (scalar, name) in SCALARS {
        match (scalar, is_number) {
            _ if !shape.scalars.contains(scalar) => continue,
            (Scalars::INTEGER, true) => continue,
            (Scalars::FLOAT, true) => {
                bar(out);
                out.push_str("number");
            }
            _ => {
                bar(out);
                out.push_str(name);
            }
        }
    }
    if out.len() == start {
        out.push_str("any");
    }
}

fn write_map(map: &MapShape, levels: usize, out: &mut String) {
    match map {
        MapShape::Record(members) if levels > 0 => {
            out.push('{');
            for (at, (name, member)) in members.iter().enumerate() {
                let _ = write!(out, "{}{} ", if at > 0 { " " } else { "" }, key(name));
                write(&member.shape, levels - 1, out);
                if member.is_optional {
                    out.push('?');
                }
            }
            out.push('}');
        }
        MapShape::Dictionary(values) if levels > 0 => {
            out.push_str("{string ");
            write(values, levels - 1, out);
            out.push('}');
        }
        MapShape::Record(_) | MapShape::Dictionary(_) | MapShape::Unknown | MapShape::Any => {
            out.push_str("object");
        }
    }
}
