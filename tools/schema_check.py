#!/usr/bin/env python3
"""schema_check.py FOLDER FILE...: is each file what the schema says that it names ("$schema", in FOLDER)?"""

import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    sys.exit("schema_check.py: no jsonschema: install python3-jsonschema")

folder = pathlib.Path(sys.argv[1])
for path in sys.argv[2:]:
    document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    schema = json.loads((folder / document["$schema"]).read_text(encoding="utf-8"))
    problems = sorted(jsonschema.Draft202012Validator(schema).iter_errors(document), key=str)
    if problems:
        sys.exit(f"schema_check.py: {path}: {problems[0].json_path}: {problems[0].message[:300]}")
