//! Makes and reads the header of a journal, the log from which a run is replayed: the program, its limits, and the tool
//! lists of the servers that it could call.

use ptc_calls::journal::{Header, Language, Recorder, ServerRecord};
use ptc_calls::run::limits::{LimitTable, Limits};
use ptc_calls::tools::{Catalog, CatalogServer, Listed, ToolList};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The header of a program that begins now, without context and preludes.
pub(crate) fn begun(
    language: Language,
    program: &str,
    limits: &Limits,
    servers: Vec<ServerRecord>,
) -> Header {
    let limits = Limits::TABLE.iter().map(|row| (row.flag.to_owned(), (row.get)(limits)));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Header {
        format: Header::FORMAT,
        ptc: env!("CARGO_PKG_VERSION").to_owned(),
        language,
        program: program.to_owned(),
        source_name: String::new(),
        context: None,
        strict_data: false,
        now_ms: None,
        limits: limits.collect(),
        rendering: BTreeMap::new(),
        begun_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        owner: None,
        scopes: Vec::new(),
        under_policy: false,
        servers,
        preludes: Vec::new(),
    }
}

/// The limits of the run.
pub(crate) fn limits(header: &Header) -> Limits {
    let mut limits = Limits::default();
    for row in Limits::TABLE {
        if let Some(value) = header.limits.get(row.flag) {
            (row.set)(&mut limits, *value);
        }
    }
    limits
}

/// The servers of a catalog with their tool lists, which are stored if runs are recorded: a run that goes on has the lists
/// of the present.
pub(crate) fn servers(recorder: Option<&Recorder>, catalog: &Catalog) -> Vec<ServerRecord> {
    let record = |server: &CatalogServer| ServerRecord {
        server: server.name.to_string(),
        description: server.description.as_deref().map(str::to_owned),
        tools: server.proven().map(|list| match recorder {
            Some(recorder) => recorder.share(list, || stored_list(list)),
            None => String::new(),
        }),
    };
    catalog.servers().map(record).collect()
}

/// A tool list as recordings store it.
fn stored_list(list: &ToolList) -> Vec<u8> {
    // A list is plain data.
    serde_json::to_vec(&list.whole()).unwrap_or_default()
}

/// A tool list from the text that is stored.
pub(crate) fn list_from(text: &str) -> Option<ToolList> {
    serde_json::from_str::<Listed>(text).ok().map(ToolList::new)
}
