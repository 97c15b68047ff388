//! Media types of bodies and results: which of them are JSON, and how headers name them.

/// The media type of JSON.
pub(super) const JSON: &str = "application/json";

/// Limit of media types in the header `Accept`.
const MOST_ACCEPTED: usize = 5;

/// True for media types with JSON content that a header can name, and for wildcards that JSON is among.
pub(super) fn is_json(media: &str) -> bool {
    let is_plain = media.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_named = media == JSON || media.ends_with("+json") || media == "text/json";
    is_plain && (is_named || is_wildcard(&media))
}

fn is_wildcard(media: &str) -> bool {
    matches!(media, "*/*" | "application/*")
}

/// A media type that a header can name for this one of the document.
pub(super) fn concrete(media: &str) -> &str {
    let media = media.trim();
    if is_wildcard(media.split(';').next().unwrap_or_default().trim()) { JSON } else { media }
}

/// The header `Accept` for these media types: JSON is always among them.
pub(super) fn accept(mut media: Vec<String>) -> String {
    media.truncate(MOST_ACCEPTED);
    if media.is_empty() {
        media.push(JSON.to_owned());
    } else if !media.iter().any(|known| known == JSON) {
        media.push(format!("{JSON};q=0.9"));
    }
    media.join(", ")
}
