//! Turns the `operationId` of an OpenAPI operation into a valid tool name (`listTraces` becomes `list-traces`).

/// The name of the tool for an operation: `listTraces`, `list_traces` and `List Traces` become `list-traces`;
/// characters that are not allowed in `server/tool` become `-`. Empty when nothing is left.
pub(super) fn tool_name(id: &str) -> String {
    let mut name = String::with_capacity(id.len() + 4);
    let mut before = ' ';
    let mut rest = id.trim().chars().peekable();
    while let Some(c) = rest.next() {
        // A word begins at a capital after a small letter, and at the last of several capitals:
        // `getHTTPCode`.
        let next_is_lower = rest.peek().is_some_and(|next| next.is_lowercase());
        let begins = c.is_uppercase()
            && (before.is_lowercase() || before.is_ascii_digit() || (before.is_uppercase() && next_is_lower));
        let stays = c.is_alphanumeric() || c == '.';
        if (begins || !stays) && !name.ends_with('-') && !name.is_empty() {
            name.push('-');
        }
        if stays {
            name.extend(c.to_lowercase());
        }
        before = c;
    }
    name.trim_end_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name() {
        let cases = [
            ("list_traces", "list-traces"),
            ("listTraces", "list-traces"),
            (" List Traces ", "list-traces"),
            ("getHTTPCode", "get-http-code"),
            ("get2Fast4U", "get2-fast4-u"),
            ("repos/list-for-org", "repos-list-for-org"),
            ("v1.users_get", "v1.users-get"),
            ("__x__", "x"),
            ("read_item_items__item_id__get", "read-item-items-item-id-get"),
            ("GET /pets/{id}", "get-pets-id"),
            ("…", ""),
        ];
        for (id, name) in cases {
            assert_eq!(tool_name(id), name, "{id}");
        }
    }
}
