//! The tool `filesystemQuery`: reads, lists, searches and describes files.

use super::folders::{FolderEntry, Walk};
use super::roots::{FileRoots, Opened, open};
use super::server::FileFault;
use super::text::TextWriter;
use cap_std::fs::{Dir, File, Metadata, MetadataExt};
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ptc_base::spill::linear_matcher;
use ptc_base::tasks::StopFlag;
use ptc_upstream::AnswerWriter;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

/// Default and largest number of entries or matches.
const LIMIT: usize = 10_000;
const MOST: usize = 100_000;

/// Bytes of a file that are read at once.
const PIECE: usize = 64 << 10;
const LONGEST_LINE: usize = 4 << 20;

/// Most characters of a matching line that are shown.
const SHOWN: usize = 500;

/// Operation of a call.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum QueryOperation {
    Read,
    List,
    Search,
    Info,
}

/// Arguments of the tool.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FilesystemQuery {
    operation: Option<QueryOperation>,
    path: Option<String>,
    recursive: Option<bool>,
    include_hidden: Option<bool>,
    pattern: Option<String>,
    from_line: Option<u64>,
    to_line: Option<u64>,
    limit: Option<usize>,
}

impl FilesystemQuery {
    /// Answers, and fails when the answer gets too large.
    pub(super) fn answer(
        self,
        roots: &FileRoots,
        answer: &mut AnswerWriter,
        stop: &StopFlag,
    ) -> Result<(), FileFault> {
        let path = self.path.as_deref().unwrap_or(".");
        let opened = roots.existing(path).map_err(|why| format!("path {path:?} cannot be used: {why}"))?;
        let usual = match &opened {
            Opened::File(..) => QueryOperation::Read,
            Opened::Folder(_) => QueryOperation::List,
        };
        let operation = self.operation.unwrap_or(usual);
        self.check(operation)?;
        let walk = Walk {
            roots,
            recursive: self.recursive.unwrap_or(operation == QueryOperation::Search),
            include_hidden: self.include_hidden.unwrap_or(false),
            stop,
        };
        let pattern = self.pattern.as_deref().map(matcher).transpose()?;
        let limit = self.limit.unwrap_or(LIMIT).min(MOST);
        match (operation, opened) {
            (QueryOperation::Info, Opened::File(_, found)) => structured(answer, &described(path, &found)),
            (QueryOperation::Info, Opened::Folder(folder)) => {
                structured(answer, &described(path, &folder.dir_metadata()?))
            }
            (QueryOperation::Read, Opened::File(file, found)) => self.read(file, &found, answer, stop),
            (QueryOperation::Read, Opened::Folder(_)) => {
                Err(format!("path {path:?} is a folder: list shows what is in it").into())
            }
            (QueryOperation::List, Opened::Folder(folder)) => {
                list(folder, path, &walk, pattern.as_ref(), limit, answer)
            }
            (QueryOperation::List, Opened::File(..)) => {
                Err(format!("path {path:?} is a file: read shows what is in it").into())
            }
            (QueryOperation::Search, opened) => {
                let Some(matcher) = pattern else { return Err("search needs a `pattern`".to_owned().into()) };
                let mut searching =
                    Searching { matcher, answer, limit, stop, found: FoundCounts::default(), fault: None };
                searching.run(opened, path, &walk)
            }
        }
    }

    /// Refuses arguments that the operation does not take.
    fn check(&self, operation: QueryOperation) -> Result<(), FileFault> {
        use QueryOperation::{List, Read, Search};
        let fields: [(&str, bool, &[QueryOperation]); 6] = [
            ("pattern", self.pattern.is_some(), &[Search, List]),
            ("recursive", self.recursive.is_some(), &[Search, List]),
            ("includeHidden", self.include_hidden.is_some(), &[Search, List]),
            ("limit", self.limit.is_some(), &[Search, List]),
            ("fromLine", self.from_line.is_some(), &[Read]),
            ("toLine", self.to_line.is_some(), &[Read]),
        ];
        let wrong = fields.iter().find(|(_, is_given, takers)| *is_given && !takers.contains(&operation));
        match wrong {
            None => Ok(()),
            Some((name, _, takers)) => {
                let takers: Vec<String> =
                    takers.iter().map(|taker| format!("{taker:?}").to_lowercase()).collect();
                let operation = format!("{operation:?}").to_lowercase();
                Err(format!("`{name}` belongs to {}, not to {operation}", takers.join(" and ")).into())
            }
        }
    }

    fn read(
        &self,
        mut file: File,
        found: &Metadata,
        answer: &mut AnswerWriter,
        stop: &StopFlag,
    ) -> Result<(), FileFault> {
        let (from, to) = (self.from_line.unwrap_or(1).max(1), self.to_line.unwrap_or(u64::MAX));
        if (from, to) == (1, u64::MAX) {
            answer.expect_bytes(found.len())?;
        }
        answer.push(br#"{"content":[{"type":"text","text":""#)?;
        let mut text = TextWriter::new(answer);
        let (mut piece, mut line) = (vec![0; PIECE], 1);
        while line <= to {
            stop.check()?;
            let read = file.read(&mut piece)?;
            if read == 0 {
                break;
            }
            let part = select_lines(&piece[..read], &mut line, from, to);
            text.push(part)?;
        }
        text.finish()?;
        Ok(answer.push(br#""}]}"#)?)
    }
}

/// The part of a piece that lies within these lines. `line` is the number of the line that the piece begins in.
fn select_lines<'p>(piece: &'p [u8], line: &mut u64, from: u64, to: u64) -> &'p [u8] {
    if (from, to) == (1, u64::MAX) {
        return piece;
    }
    let mut begin = if *line >= from { 0 } else { piece.len() };
    for end in memchr::memchr_iter(b'\n', piece) {
        *line += 1;
        if *line == from {
            begin = end + 1;
        }
        if *line > to {
            return piece.get(begin..=end).unwrap_or_default();
        }
    }
    &piece[begin..]
}

fn matcher(pattern: &str) -> Result<RegexMatcher, FileFault> {
    linear_matcher(pattern).map_err(|error| error.to_string().into())
}

/// Numbers of files, folders and others.
#[derive(Default)]
struct FoundCounts {
    files: u64,
    folders: u64,
    others: u64,
    bytes: u64,
    matches: u64,
}

impl FoundCounts {
    fn count(&mut self, found: &Metadata) {
        match (found.is_file(), found.is_dir()) {
            (true, _) => {
                self.files += 1;
                self.bytes += found.len();
            }
            (_, true) => self.folders += 1,
            _ => self.others += 1,
        }
    }
}

fn list(
    folder: Dir,
    path: &str,
    walk: &Walk<'_>,
    pattern: Option<&RegexMatcher>,
    limit: usize,
    answer: &mut AnswerWriter,
) -> Result<(), FileFault> {
    use grep_matcher::Matcher as _;
    answer.push(br#"{"content":[],"structuredContent":{"files":["#)?;
    let (mut tally, mut shown) = (FoundCounts::default(), 0);
    let is_whole = walk.visit(folder, |entry| -> Result<ControlFlow<()>, FileFault> {
        let name = entry.name.as_encoded_bytes();
        if pattern.is_some_and(|pattern| !pattern.is_match(name).unwrap_or(false)) {
            return Ok(ControlFlow::Continue(()));
        }
        if shown == limit {
            return Ok(ControlFlow::Break(()));
        }
        if shown > 0 {
            answer.push(b",")?;
        }
        shown += 1;
        tally.count(entry.found);
        answer.push(listed(entry.path, entry.found).to_string().as_bytes())?;
        Ok(ControlFlow::Continue(()))
    })?;
    let FoundCounts { files, folders, others, bytes, .. } = tally;
    let others = if others > 0 { format!(", {others} links and others") } else { String::new() };
    let summary = format!("{files} files of {bytes} bytes, {folders} folders{others}");
    end(answer, path, is_whole, &summary)
}

/// Closes the list and adds a summary.
fn end(answer: &mut AnswerWriter, path: &str, is_whole: bool, summary: &str) -> Result<(), FileFault> {
    let metadata = json!({ "path": path, "truncated": !is_whole });
    let end = format!("],\"metadata\":{metadata},\"summary\":{}}}}}", Value::from(summary));
    Ok(answer.push(end.as_bytes())?)
}

/// The description of a file or folder in a list.
fn listed(path: &str, found: &Metadata) -> Value {
    match found.is_file() {
        true => json!({ "name": path, "size": found.len() }),
        false => json!({ "name": path, "type": kind(found) }),
    }
}

/// The full description of a file or folder.
fn described(path: &str, found: &Metadata) -> Value {
    let mut entry = listed(path, found);
    entry["type"] = kind(found).into();
    if let Ok(modified) = jiff::Timestamp::from_second(found.mtime()) {
        entry["modified"] = modified.to_string().into();
    }
    entry
}

fn kind(found: &Metadata) -> &'static str {
    match () {
        () if found.is_file() => "file",
        () if found.is_dir() => "folder",
        () if found.is_symlink() => "link",
        () => "other",
    }
}

/// Writes an answer with structured content.
pub(super) fn structured(answer: &mut AnswerWriter, data: &Value) -> Result<(), FileFault> {
    let text = json!({ "content": [], "structuredContent": data }).to_string();
    Ok(answer.push(text.as_bytes())?)
}

struct Searching<'s> {
    matcher: RegexMatcher,
    answer: &'s mut AnswerWriter,
    limit: usize,
    stop: &'s StopFlag,
    found: FoundCounts,
    fault: Option<FileFault>,
}

impl Searching<'_> {
    fn run(&mut self, opened: Opened, path: &str, walk: &Walk<'_>) -> Result<(), FileFault> {
        self.answer.push(br#"{"content":[],"structuredContent":{"matches":["#)?;
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .bom_sniffing(false)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(LONGEST_LINE))
            .build();
        let is_whole = match opened {
            Opened::File(file, found) => self.file(&mut searcher, file, &found, path)?.is_continue(),
            Opened::Folder(folder) => walk.visit(folder, |entry: &FolderEntry<'_>| {
                // The entry may have been replaced meanwhile; whatever is opened is still within the folder.
                match open(entry.folder, Path::new(entry.name)) {
                    Ok(Opened::File(file, found)) if entry.found.is_file() => {
                        self.file(&mut searcher, file, &found, entry.path)
                    }
                    _ => Ok(ControlFlow::Continue(())),
                }
            })?,
        };
        let FoundCounts { files, matches, .. } = self.found;
        end(self.answer, path, is_whole, &format!("{matches} matches in {files} files"))
    }

    fn file(
        &mut self,
        searcher: &mut Searcher,
        file: File,
        found: &Metadata,
        path: &str,
    ) -> Result<ControlFlow<()>, FileFault> {
        self.found.count(found);
        let matcher = self.matcher.clone();
        let reader = Stopping { file, stop: self.stop };
        // A file that cannot be searched (unreadable, or with too long lines) has no matches.
        let _ = searcher.search_reader(&matcher, reader, FileSink { search: self, path });
        self.stop.check()?;
        match self.fault.take() {
            Some(fault) => Err(fault),
            None if self.found.matches as usize >= self.limit => Ok(ControlFlow::Break(())),
            None => Ok(ControlFlow::Continue(())),
        }
    }
}

/// A reader that ends when the call is stopped.
struct Stopping<'s> {
    file: File,
    stop: &'s StopFlag,
}

impl Read for Stopping<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stop.check()?;
        self.file.read(buffer)
    }
}

struct FileSink<'f, 's> {
    search: &'f mut Searching<'s>,
    path: &'f str,
}

impl Sink for FileSink<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        for (line, number) in found.lines().zip(found.line_number().unwrap_or(0)..) {
            if self.search.found.matches as usize >= self.search.limit {
                return Ok(false);
            }
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end_matches(['\n', '\r']);
            let end = line.char_indices().nth(SHOWN).map_or(line.len(), |(end, _)| end);
            let entry = json!({ "file": self.path, "line": number, "text": &line[..end] }).to_string();
            let comma: &[u8] = if self.search.found.matches > 0 { b"," } else { b"" };
            let pushed =
                self.search.answer.push(comma).and_then(|()| self.search.answer.push(entry.as_bytes()));
            if let Err(fault) = pushed {
                self.search.fault = Some(fault.into());
                return Ok(false);
            }
            self.search.found.matches += 1;
        }
        Ok(true)
    }
}
