//! Shows, for `ptc call`, the content of a tool's result other than its value: texts, links, resources, and binary data
//! such as images, which can be saved to files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ptc_base::files;
use ptc_server::console::{Abort, Exit};
use serde_json::Value;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

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

/// One line about binary data, which is written to `N.EXTENSION` in the folder, or to `N-2.EXTENSION` where there is such a
/// file already: of the user, or of an earlier call.
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
    let path = saved(folder, number, extension(mime), &bytes)?;
    Ok(format!("[{about}: {}]", path.display()))
}

/// Writes a new file, and says where.
fn saved(folder: &Path, number: usize, extension: &str, bytes: &[u8]) -> Result<PathBuf, Abort> {
    let failed = |path: &Path, error: io::Error| Abort {
        exit: Exit::Io,
        message: format!("{}: {error}", path.display()),
    };
    files::make_folder(folder).map_err(|error| failed(folder, error))?;
    let names = std::iter::once(format!("{number}.{extension}"));
    let names = names.chain((2..).map(|more: u32| format!("{number}-{more}.{extension}")));
    for path in names.map(|name| folder.join(name)) {
        let mut file = match files::create_new(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(failed(&path, error)),
        };
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(|error| {
            let _ = std::fs::remove_file(&path);
            failed(&path, error)
        })?;
        return Ok(path);
    }
    Err(failed(folder, ErrorKind::AlreadyExists.into()))
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
        // What is there stays.
        let again =
            lines(&[json!({"type": "text"}), blocks[4].clone(), blocks[1].clone()], Some(folder.path()))
                .unwrap();
        assert!(again[2].ends_with("/3.png]"), "{again:?}");
        let other =
            [json!({"type": "text"}), json!({"type": "image", "mimeType": "image/png", "data": "AA=="})];
        for name in ["/2-2.png]", "/2-3.png]"] {
            assert!(lines(&other, Some(folder.path())).unwrap()[1].ends_with(name), "{name}");
        }
        assert_eq!(files::read(&folder.path().join("2.png")).unwrap(), [0, 1, 2]);
    }
}
