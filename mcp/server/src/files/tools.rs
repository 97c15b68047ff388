//! Defines the MCP tools that read, search and write local files: their entries in `tools/list`, and the dispatch of a
//! call to the code that runs it.

use super::modify::FilesystemModify;
use super::query::{FilesystemQuery, structured};
use super::roots::FileRoots;
use super::server::FileFault;
use ptc_base::tasks::StopFlag;
use ptc_upstream::AnswerWriter;
use serde_json::{Value, json};

/// The entries of `tools/list`.
pub(super) fn list(writes: bool) -> Vec<Value> {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let flag = |about: &str| json!({ "type": "boolean", "description": about });
    let number = |about: &str| json!({ "type": "integer", "minimum": 1, "description": about });
    let query = json!({
        "name": "filesystemQuery",
        "description": "Reads files, lists folders, searches in files, describes either, in the folders that `init` names.",
        "inputSchema": { "type": "object", "additionalProperties": false, "properties": {
            "operation": { "type": "string", "enum": ["read", "list", "search", "info"],
                "description": "Default: read for a file, list for a folder" },
            "path": text("Relative to the folder, or absolute (default: the folder itself)"),
            "recursive": flag("With folders below (default: search true, list false)"),
            "includeHidden": flag("With names that begin with a dot (default false)"),
            "pattern": text("Regular expression, case does not count: of search for lines, of list for names"),
            "limit": number("Most entries or matches (default 10000, at most 100000)"),
            "fromLine": number("Of read: the first line"),
            "toLine": number("Of read: the last line, included"),
        } },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    });
    let modify = json!({
        "name": "filesystemModify",
        "description": "Writes files, makes folders, removes files and empty folders.",
        "inputSchema": { "type": "object", "additionalProperties": false, "required": ["path"], "properties": {
            "operation": { "type": "string", "enum": ["write", "append", "mkdir", "delete"],
                "description": "Default: write" },
            "path": text("Relative to the folder, or absolute; its last step may be no link"),
            "content": text("Text to write or append"),
            "createMissingDirs": flag("Make the folders of the path (default false)"),
        } },
        "annotations": { "readOnlyHint": false, "destructiveHint": true, "openWorldHint": false },
    });
    let init = json!({
        "name": "init",
        "description": "Says which folders paths may lie in, and whether files may be written.",
        "inputSchema": { "type": "object", "additionalProperties": false, "properties": {} },
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false },
    });
    let modify = Some(modify).filter(|_| writes);
    [Some(query), modify, Some(init)].into_iter().flatten().collect()
}

/// Runs a tool.
pub(super) fn call(
    (roots, writes): (&FileRoots, bool),
    tool: &str,
    arguments: &str,
    answer: &mut AnswerWriter,
    stop: &StopFlag,
) -> Result<(), FileFault> {
    let wrong = |error: serde_json::Error| format!("{tool}: {error}");
    match tool {
        "filesystemQuery" => {
            serde_json::from_str::<FilesystemQuery>(arguments).map_err(wrong)?.answer(roots, answer, stop)
        }
        "filesystemModify" if writes => {
            serde_json::from_str::<FilesystemModify>(arguments).map_err(wrong)?.answer(roots, answer)
        }
        "init" => {
            let folders: Vec<_> = roots.paths().map(|path| path.display().to_string()).collect();
            structured(answer, &json!({ "folders": folders, "readOnly": !writes }))
        }
        _ => Err(format!("there is no tool {tool:?}").into()),
    }
}
