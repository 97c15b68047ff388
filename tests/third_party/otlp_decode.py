"""Reads a body of OTLP/HTTP from standard input with the messages that OpenTelemetry publishes, and prints it as JSON.

    python otlp_decode.py traces|metrics

A field that the messages do not have is an error.
"""

import gzip
import sys

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

REQUESTS = {"traces": ExportTraceServiceRequest, "metrics": ExportMetricsServiceRequest}


def check(message):
    if len(UnknownFieldSet(message)):
        sys.exit(f"{type(message).__name__} has unknown fields")
    for _, value in message.ListFields():
        parts = value if hasattr(value, "__len__") and not isinstance(value, (str, bytes)) else [value]
        for part in parts:
            if isinstance(part, Message):
                check(part)


request = REQUESTS[sys.argv[1]]()
request.ParseFromString(gzip.decompress(sys.stdin.buffer.read()))
check(request)
print(MessageToJson(request))
