//! Writes the result of a tool call as one JSON-RPC message; the parts that all results share are serialized only once.

use crate::answer::{Content, ToolAnswer};
use crate::protocol::{Era, Id, ServerMessage};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Bytes that all answers share: what surrounds id and result, and the end of the line.
const FRAME_BYTES: usize = br#"{"jsonrpc":"2.0","id":,"result":{"resultType":"complete",}}"#.len() + 1;

/// The parts that all results share.
#[derive(Debug)]
pub(super) struct ResultWriter {
    /// `_meta` of stateless results.
    meta: Box<RawValue>,
    /// Ends of results, behind their content, by era and by `isError`.
    ends: [[String; 2]; 2],
}

impl ResultWriter {
    pub(super) fn new(meta: &RawValue) -> ResultWriter {
        let metas = [String::new(), format!(",\"_meta\":{}", meta.get())];
        let ends =
            metas.map(|meta| [false, true].map(|is_error| format!(",\"isError\":{is_error}{meta}}}}}")));
        ResultWriter { meta: meta.to_owned(), ends }
    }

    /// Most bytes around the content of an answer to this request.
    pub(super) fn frame_bytes(&self, id: &Id<'_>) -> usize {
        let [[handshake, _], [stateless, _]] = &self.ends;
        FRAME_BYTES + id.as_json().len() + stateless.len() - handshake.len()
    }

    /// Appends the answer to a call as a message.
    pub(super) fn write(&self, id: &Id<'_>, era: Era, answer: &ToolAnswer<'_>, out: &mut Vec<u8>) {
        let end = &self.ends[era as usize][usize::from(answer.is_error)];
        ServerMessage::begin_result(id, out);
        if let Content::InputRequired { requests, state } = &answer.content {
            return self.write_input_required(requests, state.as_deref(), out);
        }
        out.extend_from_slice(match era {
            Era::Handshake => br#"{"content":"#,
            Era::Stateless => br#"{"resultType":"complete","content":"#,
        });
        let end_of_content: &[u8] = match &answer.content {
            Content::Text(text) => {
                out.extend_from_slice(br#"[{"type":"text","text":"#);
                write_json(text, out);
                b"}]"
            }
            Content::Blocks(blocks) | Content::Extended { blocks, .. } => blocks.get().as_bytes(),
            // Written above.
            Content::InputRequired { .. } => b"[]",
        };
        out.extend_from_slice(end_of_content);
        if let Content::Extended { members, .. } = &answer.content {
            for (name, value) in members {
                out.push(b',');
                write_json(name, out);
                out.push(b':');
                write_json(value, out);
            }
        }
        if let Some(structured) = &answer.structured {
            out.extend_from_slice(br#","structuredContent":"#);
            write_json(structured, out);
        }
        out.extend_from_slice(end.as_bytes());
    }

    fn write_input_required(&self, requests: &Map<String, Value>, state: Option<&str>, out: &mut Vec<u8>) {
        let mut result = json!({
            "resultType": "input_required", "inputRequests": requests, "_meta": self.meta,
        });
        if let Some(state) = state {
            result["requestState"] = state.into();
        }
        write_json(&result, out);
        out.push(b'}');
    }
}

fn write_json(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    // Writing a string or a tree to memory cannot fail.
    let _ = serde_json::to_writer(out, value);
}
