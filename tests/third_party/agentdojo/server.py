"""One suite of AgentDojo as an MCP server over standard input and output.

usage: server.py SUITE [--task user_task_N] [--injections FILE] [--state FILE]

--injections is a JSON object of texts for AgentDojo's injection vectors. After each call, --state gets the
environment, before and now, and the calls; `dojo.World.restore` reads them, for AgentDojo's checkers.
"""

import argparse
import json
import pathlib
import sys

import dojo

# Annotations: what a tool does beyond reading. All other tools only read.
#                              destroys or overwrites, reaches people or hosts outside
WRITES = {
    "banking": {
        "send_money": (True, True), "schedule_transaction": (True, True),
        "update_scheduled_transaction": (True, True), "update_password": (True, False),
        "update_user_info": (True, False),
    },
    "slack": {
        "add_user_to_channel": (False, False), "send_direct_message": (False, False),
        "send_channel_message": (False, False), "invite_user_to_slack": (False, True),
        "remove_user_from_slack": (True, False), "post_webpage": (True, True),
    },
    "travel": {
        "create_calendar_event": (False, True), "cancel_calendar_event": (True, True),
        "reserve_hotel": (False, True), "reserve_car_rental": (False, True),
        "reserve_restaurant": (False, True), "send_email": (False, True),
    },
    "workspace": {
        "send_email": (False, True), "delete_email": (True, False), "get_unread_emails": (False, False),
        "create_calendar_event": (False, True), "cancel_calendar_event": (True, True),
        "reschedule_calendar_event": (True, True), "add_calendar_event_participants": (False, True),
        "append_to_file": (False, False), "create_file": (False, False), "delete_file": (True, False),
        "share_file": (False, True),
    },
}
# Tools that only read, from hosts outside.
READS_OUTSIDE = {"slack": {"get_webpage"}}


def annotations(suite, tool):
    is_writing = tool in WRITES[suite]
    destroys, reaches_out = WRITES[suite].get(tool, (False, tool in READS_OUTSIDE.get(suite, ())))
    return {"readOnlyHint": not is_writing, "destructiveHint": destroys, "openWorldHint": reaches_out}


def tools(suite):
    """The tools of a suite, as MCP lists them."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.parameters.model_json_schema(),
            "annotations": annotations(suite, tool.name),
        }
        for tool in dojo.suite(suite).tools
    ]


class Server:
    """Answers messages of one connection.

    `answer(tool, arguments, result)` may change what a call returns: the attacker of run.py does.
    """

    def __init__(self, suite, world, answer=lambda _tool, _arguments, result: result, after_call=lambda: None):
        self.suite = suite
        self.world = world
        self.answer = answer
        self.after_call = after_call

    def handle(self, message):
        """The response of a request, None for other messages."""
        if "id" not in message or "method" not in message:
            return None
        response = {"jsonrpc": "2.0", "id": message["id"]}
        match message["method"]:
            case "initialize":
                version = message["params"].get("protocolVersion", "2025-06-18")
                info = {"name": self.suite, "version": dojo.VERSION}
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": tools(self.suite)}
            case "tools/call":
                result = self.call(message["params"])
            case "ping":
                result = {}
            case other:
                return response | {"error": {"code": -32601, "message": f"unknown method {other}"}}
        return response | {"result": result}

    def call(self, parameters):
        tool, arguments = parameters["name"], parameters.get("arguments") or {}
        result, error = self.world.call(tool, arguments)
        self.after_call()
        if error:
            return {"content": [{"type": "text", "text": error}], "isError": True}
        result = self.answer(tool, arguments, result)
        text = result if isinstance(result, str) else json.dumps(result)
        return {"content": [{"type": "text", "text": text}], "isError": False}

    def serve(self, read, write):
        """Answers until the input ends."""
        for line in read:
            response = self.handle(json.loads(line))
            if response is not None:
                write.write(json.dumps(response) + "\n")
                write.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=dojo.SUITES)
    parser.add_argument("--task")
    parser.add_argument("--injections", type=pathlib.Path)
    parser.add_argument("--state", type=pathlib.Path)
    flags = parser.parse_args()
    injections = json.loads(flags.injections.read_text()) if flags.injections else {}
    world = dojo.World(flags.suite, flags.task, injections)

    def save():
        if flags.state:
            world.save(flags.state)

    save()
    Server(flags.suite, world, after_call=save).serve(sys.stdin, sys.stdout)


if __name__ == "__main__":
    main()
