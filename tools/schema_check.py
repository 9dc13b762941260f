#!/usr/bin/env python3
"""schema_check.py FOLDER FILE...: is each file what the schema says that it names ("$schema", in FOLDER)?

Without Python's jsonschema (Debian: python3-jsonschema) only whether it is JSON and names one.
"""

import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    jsonschema = None

folder = pathlib.Path(sys.argv[1])
for path in sys.argv[2:]:
    document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    schema = json.loads((folder / document["$schema"]).read_text(encoding="utf-8"))
    if jsonschema is None:
        continue
    problems = sorted(jsonschema.Draft202012Validator(schema).iter_errors(document), key=str)
    if problems:
        sys.exit(f"schema_check.py: {path}: {problems[0].json_path}: {problems[0].message[:300]}")
