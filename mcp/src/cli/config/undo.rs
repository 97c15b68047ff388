//! `ptc install CLIENT --undo`: takes `ptc` out of the configuration of a client, and gives the client back the servers
//! that `--replace` has moved.

use super::client_text::{NAME, entries, with, with_all, without, without_all};
use super::file::{BACKUP, ConfigFile, EditRight, beside};
use super::install::InstallArgs;
use super::moved::{Moved, missing};
use crate::import::hosts::Host;
use crate::import::own::starts_ptc;
use ptc_server::console::{self, Abort, Exit};
use serde_json::{Map, Value};
use std::path::Path;

/// Takes the entry out of the client's file, and the servers that `--replace` moved out of the configuration of `ptc`.
/// Both are computed before one is written, and no server leaves the configuration that the client has not got back.
/// When the second write fails, the client's file is as before.
pub(super) fn undo(
    args: &InstallArgs,
    right: &EditRight,
    file: &ConfigFile,
    now: Option<String>,
) -> Result<Exit, Abort> {
    let (path, label) = (&file.path, args.client.label());
    // Nothing of a project is moved, and a project must not have anything removed.
    let moved = if args.project { None } else { Moved::read(path)? };
    let now = match now {
        None if moved.is_some() => String::new(),
        now => now.ok_or_else(|| no_entry(path))?,
    };
    let Undone { text, is_backup, said } = undone(args.client, file, &now, moved.as_ref().map(Moved::own))?;
    let after = entries(args.client, &text).unwrap_or_default();
    let lost: Vec<String> =
        moved.iter().flat_map(|moved| missing(moved.own(), &after)).map(|(name, _)| name).collect();
    if !lost.is_empty() {
        let (path, names) = (path.display(), lost.join(", "));
        return Err(Abort::usage(format!("{path} cannot get {names} back; nothing is changed")));
    }
    let back =
        moved.as_ref().map(|moved| Ok::<_, Abort>((moved, moved.taken_back(right, &after)?))).transpose()?;
    file.must_be_writable()?;
    if let Some((moved, back)) = &back {
        back.prepare(moved)?;
    }
    file.write(&text)?;
    if let Some((moved, back)) = &back {
        back.write().inspect_err(|_| drop(file.write(&now)))?;
        Moved::forget(path)?;
        let is_back = |(name, entry): &(&String, &Value)| after.get(*name) == Some(*entry);
        let own: Vec<&str> = moved.own().iter().filter(is_back).map(|(name, _)| name.as_str()).collect();
        if !own.is_empty() {
            console::write_line(&format!("{label} starts these itself again: {}", own.join(", ")))?;
        }
        back.said(args.client).iter().try_for_each(|line| console::write_line(line))?;
    }
    if is_backup {
        file.remove_backup()?;
    }
    console::write_line(&said)?;
    Ok(Exit::Ok)
}

fn no_entry(path: &Path) -> Abort {
    Abort::usage(format!("{} has no entry {NAME}", path.display()))
}

/// The client's file without `ptc`.
struct Undone {
    text: String,
    /// It is the backup, which is not needed any more.
    is_backup: bool,
    /// What the user reads.
    said: String,
}

/// The backup if the file has not changed since, or cannot be read any more. Otherwise the present text without the
/// entry. Both with the servers that have `moved`.
fn undone(
    client: Host,
    file: &ConfigFile,
    now: &str,
    moved: Option<&Map<String, Value>>,
) -> Result<Undone, Abort> {
    let path = &file.path;
    let before = file.backup();
    let there = match entries(client, now) {
        Ok(there) => there,
        Err(error) => return undone_unreadable(client, file, before, moved, &error),
    };
    let current = match there.get(NAME) {
        None if moved.is_none() => return Err(no_entry(path)),
        Some(current) if !starts_ptc(current, None) => {
            let path = path.display();
            return Err(Abort::usage(format!(
                "the entry {NAME} of {path} starts something else; it is left as it is"
            )));
        }
        current => current,
    };
    let of_backup = before.as_deref().and_then(|before| entries(client, before).ok()).unwrap_or_default();
    let lacking = missing(&of_backup, &there);
    // Without a record the backup says what has moved.
    let taken = moved.map_or(lacking.clone(), |moved| missing(moved, &there));
    let is_in_backup = |(name, entry): (&String, &Value)| of_backup.get(name) == Some(entry);
    let replaced = |before: &str| {
        let text = current.map_or(Ok(before.to_owned()), |current| with(client, before, current))?;
        if taken.is_empty() { Ok(text) } else { without_all(client, &text, &taken) }
    };
    let is_same =
        |before: &String| taken.iter().all(is_in_backup) && replaced(before).is_ok_and(|text| text == now);
    let mut said = format!("{} does not start ptc any more: {}", client.label(), path.display());
    if let Some(text) = before.clone().filter(is_same) {
        return Ok(Undone { text, is_backup: true, said });
    }
    let mut text = without(client, now, current, before.as_deref()).map_err(Abort::usage)?;
    match moved {
        Some(_) => text = with_all(client, &text, &taken).map_err(Abort::usage)?,
        None if !lacking.is_empty() => {
            let names = lacking.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let backup = beside(path, BACKUP);
            said += &format!("\n{} has servers that it lacks now: {names}", backup.display());
        }
        None => {}
    }
    Ok(Undone { text, is_backup: false, said })
}

/// For a file that cannot be read: its backup, if that is well.
fn undone_unreadable(
    client: Host,
    file: &ConfigFile,
    before: Option<String>,
    moved: Option<&Map<String, Value>>,
    error: &str,
) -> Result<Undone, Abort> {
    let path = &file.path;
    let well = before.and_then(|before| Some((entries(client, &before).ok()?, before)));
    let Some((there, mut text)) = well else {
        return Err(Abort::usage(format!("{}: {error}; it is left as it is", path.display())));
    };
    let taken = moved.map(|moved| missing(moved, &there)).unwrap_or_default();
    if !taken.is_empty() {
        text = with_all(client, &text, &taken).map_err(Abort::usage)?;
    }
    let aside = file.keep(".ptc-unreadable")?.unwrap_or_else(|| path.clone());
    let said = format!(
        "{} was not readable ({error}): it is as it was before ptc was installed; what it held is in {}",
        path.display(),
        aside.display()
    );
    Ok(Undone { text, is_backup: true, said })
}
