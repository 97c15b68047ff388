# A trace, as `ptc serve --trace-dir` writes it.
mkdir traces
{
  echo '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}}'
  echo '{"jsonrpc": "2.0", "method": "notifications/initialized"}'
  echo '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "lisp_eval", "arguments": {"program": "(+ 1 2)"}}}'
} | ptc serve --trace-dir traces
