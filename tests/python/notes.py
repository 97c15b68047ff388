# A stdio MCP server for the tests with three tools, one of which has a recursive filter, as servers of databases have it.

import json
import sys

FILTER = {"type": "object", "properties": {
  "and": {"type": "array", "items": {"$ref": "#/$defs/Filter"}, "description": "All of these must match"},
  "or": {"type": "array", "items": {"$ref": "#/$defs/Filter"}, "description": "Any of these must match"},
  "not": {"$ref": "#/$defs/Filter", "description": "This must not match"},
  "property": {"type": "string", "description": "Name of the property to compare"},
  "text": {"anyOf": [{"$ref": "#/$defs/TextCondition"}, {"type": "null"}], "description": "Condition on a text property"},
  "number": {"anyOf": [{"$ref": "#/$defs/NumberCondition"}, {"type": "null"}], "description": "Condition on a number property"},
  "date": {"anyOf": [{"$ref": "#/$defs/DateCondition"}, {"type": "null"}], "description": "Condition on a date property"},
  "checkbox": {"type": ["boolean", "null"], "description": "Value of a checkbox"}}}
TEXT = {"type": "object", "properties": {k: {"type": ["string", "null"]} for k in ["equals", "does_not_equal", "contains", "starts_with", "ends_with"]}}
NUM = {"type": "object", "properties": {k: {"type": ["number", "null"]} for k in ["equals", "greater_than", "less_than"]}}
DATE = {"type": "object", "properties": {k: {"type": ["string", "null"], "format": "date"} for k in ["equals", "before", "after", "on_or_before", "on_or_after"]}}
ROW = {"type": "object", "required": ["id", "title", "properties"], "properties": {"id": {"type": "string"}, "title": {"type": "string"}, "url": {"type": ["string", "null"]}, "properties": {"type": "object", "additionalProperties": True}}}
TOOLS = [
 {"name": "query_database", "description": "Query the rows of a database.\n\nReturns at most `page_size` rows; pass `cursor` to get the next ones.\n\n:param database_id: The database to query.\n:param filter: Only rows that match are returned.\n:param page_size: How many rows to return.",
  "inputSchema": {"type": "object", "required": ["database_id"], "properties": {
   "database_id": {"type": "string", "description": "The database to query."},
   "filter": {"anyOf": [{"$ref": "#/$defs/Filter"}, {"type": "null"}], "default": None, "description": "Only rows that match are returned."},
   "sorts": {"type": "array", "items": {"type": "object", "required": ["property"], "properties": {"property": {"type": "string"}, "direction": {"enum": ["ascending", "descending"], "default": "ascending"}}}},
   "page_size": {"type": "integer", "minimum": 1, "maximum": 100, "default": 50, "description": "How many rows to return."},
   "cursor": {"type": ["string", "null"]}},
   "$defs": {"Filter": FILTER, "TextCondition": TEXT, "NumberCondition": NUM, "DateCondition": DATE}},
  "outputSchema": {"type": "object", "required": ["rows"], "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}}, "next_cursor": {"type": ["string", "null"]}}, "$defs": {"Row": ROW}}},
 {"name": "create_page", "description": "Create a page in a database.\n\nArgs:\n    database_id: The database.\n    title: Title of the page.\n    properties: Values of its properties.",
  "inputSchema": {"type": "object", "required": ["database_id", "title"], "properties": {"database_id": {"type": "string"}, "title": {"type": "string"}, "properties": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}}},
  "outputSchema": {"type": "object", "properties": {"result": {"$ref": "#/$defs/Row"}}, "required": ["result"], "$defs": {"Row": ROW}}},
 {"name": "send_message", "description": "Send a message to a channel. The channel must exist.", "inputSchema": {"type": "object", "required": ["channel", "text"], "properties": {"channel": {"type": "string", "description": "Name without #"}, "text": {"type": "string", "maxLength": 4000}, "thread": {"type": ["string", "null"], "description": "Reply in this thread"}}},
  "outputSchema": {"type": "object", "properties": {"result": {"type": "string"}}}},
]
for line in sys.stdin:
    r = json.loads(line)
    if "id" not in r:
        continue
    m, a = r["method"], {"jsonrpc": "2.0", "id": r["id"]}
    if m == "initialize":
        a["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
    elif m == "tools/list":
        a["result"] = {"tools": TOOLS}
    else:
        a["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(a), flush=True)
