//! Shows, for `ptc call`, the content of a tool's result other than its value: texts, links, resources, and binary data
//! such as images, which can be saved to files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ptc_base::files::{self, FileAccess, LinkRule};
use ptc_server::console::exit::Abort;
use serde_json::Value;
use std::path::Path;

/// The lines for the content blocks of a result. With a folder, images, sounds and other binary data are written there.
///
/// # Errors
/// A file could not be written.
pub(super) fn lines(blocks: &[Value], save: Option<&Path>) -> Result<Vec<String>, Abort> {
    blocks.iter().enumerate().map(|(at, block)| line(at + 1, block, save)).collect()
}

fn line(number: usize, block: &Value, save: Option<&Path>) -> Result<String, Abort> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = block["type"].as_str().unwrap_or_default();
    Ok(match kind {
        "text" => text(&block["text"]),
        "image" | "audio" => binary(number, kind, &block["mimeType"], &block["data"], save)?,
        "resource_link" => format!("[link {} {}]", text(&block["uri"]), text(&block["name"])),
        "resource" => {
            let resource = &block["resource"];
            match resource["text"].as_str() {
                Some(content) => format!("[resource {}]\n{content}", text(&resource["uri"])),
                None => {
                    let title = format!("resource {}", text(&resource["uri"]));
                    binary(number, &title, &resource["mimeType"], &resource["blob"], save)?
                }
            }
        }
        _ => block.to_string(),
    })
}

/// One line about binary data, which is written to `N.EXTENSION` in the folder.
fn binary(
    number: usize,
    title: &str,
    mime: &Value,
    data: &Value,
    save: Option<&Path>,
) -> Result<String, Abort> {
    let mime = mime.as_str().unwrap_or("application/octet-stream");
    let data = data.as_str().unwrap_or_default();
    let Ok(bytes) = STANDARD.decode(data) else {
        return Ok(format!("[{title} {mime}: its base64 is broken, {} characters]", data.len()));
    };
    let about = format!("{title} {mime} {} bytes", bytes.len());
    let Some(folder) = save else { return Ok(format!("[{about}; --save DIR writes it]")) };
    let path = folder.join(format!("{number}.{}", extension(mime)));
    files::replace(&path, &bytes, LinkRule::Replace, FileAccess::Private)?;
    Ok(format!("[{about}: {}]", path.display()))
}

/// The usual extension of files of this type.
fn extension(mime: &str) -> &str {
    let subtype = mime.split_once('/').map_or("", |(_, subtype)| subtype);
    let subtype = subtype.split([';', '+']).next().unwrap_or_default();
    match subtype {
        "jpeg" => "jpg",
        "mpeg" => "mp3",
        "plain" => "txt",
        // A name from the server goes into a path only if it is a plain word.
        word if !word.is_empty() && word.len() < 12 && word.chars().all(|c| c.is_ascii_alphanumeric()) => {
            word
        }
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_kind_of_content_has_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let blocks = [
            json!({"type": "text", "text": "a"}),
            json!({"type": "image", "mimeType": "image/png", "data": "AAEC"}),
            json!({"type": "audio", "mimeType": "audio/../x", "data": "AA=="}),
            json!({"type": "resource_link", "uri": "file:///x", "name": "x"}),
            json!({"type": "resource", "resource": {"uri": "file:///y", "text": "inside"}}),
            json!({"type": "resource", "resource": {"uri": "file:///z", "blob": "AA=="}}),
            json!({"type": "new", "of": 1}),
        ];
        let plain = lines(&blocks, None).unwrap();
        assert_eq!(plain[1], "[image image/png 3 bytes; --save DIR writes it]");
        assert_eq!(plain[3..5], ["[link file:///x x]", "[resource file:///y]\ninside"]);
        assert_eq!(plain[6], json!({"type": "new", "of": 1}).to_string());
        let saved = lines(&blocks, Some(folder.path())).unwrap();
        assert!(saved[1].ends_with("/2.png]") && saved[2].ends_with("/3.bin]"), "{saved:?}");
        assert_eq!(files::read(&folder.path().join("2.png")).unwrap(), [0, 1, 2]);
        assert!(saved[5].ends_with("/6.bin]"), "{saved:?}");
    }
}
