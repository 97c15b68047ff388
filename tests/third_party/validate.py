"""Validates values against JSON Schemas: JSON Lines of {"name", "schema", "value"} in, a line for each misfit out."""
import json
import sys

import jsonschema

for line in sys.stdin:
    case = json.loads(line)
    validator = jsonschema.validators.validator_for(case["schema"], jsonschema.Draft202012Validator)
    for error in validator(case["schema"], format_checker=jsonschema.FormatChecker()).iter_errors(case["value"]):
        print(case["name"], error.json_path, error.message, json.dumps(case["value"]))
