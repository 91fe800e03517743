"""Converts samples between JSON and bytes with the classes that protoc makes.

Called with the folder of those classes, a file of samples and the file to write answers to; one JSON object a line.
A sample has a name, a message, its JSON as text, and bytes (base64). Its answer has the name, the fields in which the
message read from the bytes differs from the JSON, the bytes written from the JSON, and the same with fields that no message
knows in it and in every message within it.
"""

import base64
import importlib
import json
import sys

from google.protobuf import json_format

FILES = ["values", "uploads", "changes", "ordered", "dead_letters", "control", "storage"]

# Field 1000 in each wire type that the contract allows.
UNKNOWN = (
    b"\xc0\x3e\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    + b"\xc1\x3e12345678"
    + b"\xc2\x3e\x03abc"
    + b"\xc5\x3e1234"
)


def add_unknown(message):
    # Values never has other fields: its bytes are kept as they are.
    if message.DESCRIPTOR.name == "Values":
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for inner in value if field.label == field.LABEL_REPEATED else [value]:
            add_unknown(inner)
    message.MergeFromString(UNKNOWN)


def differences(found, expected, place):
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in sorted(found.keys() | expected.keys()):
            yield from differences(found.get(name), expected.get(name), f"{place}.{name}")
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        for index, pair in enumerate(zip(found, expected)):
            yield from differences(*pair, f"{place}[{index}]")
    elif type(found) is not type(expected) or found != expected:
        yield f"{place} is {found!r}, expected {expected!r}"


def convert(sample, classes):
    kind = classes[sample["message"]]
    expected = json.loads(sample["json"])
    read = kind.FromString(base64.b64decode(sample["bytes"]))
    found = json_format.MessageToDict(read, preserving_proto_field_name=True)
    written = json_format.ParseDict(expected, kind())
    plain = written.SerializeToString(deterministic=True)
    add_unknown(written)
    return {
        "name": sample["name"],
        "differences": list(differences(found, expected, sample["message"])),
        "bytes": base64.b64encode(plain).decode(),
        "bytesWithUnknownFields": base64.b64encode(written.SerializeToString()).decode(),
    }


def main(generated, samples, answers):
    sys.path.insert(0, generated)
    classes = {}
    for file in FILES:
        module = importlib.import_module(file + "_pb2")
        for name in module.DESCRIPTOR.message_types_by_name:
            classes[name] = getattr(module, name)
    with open(samples, encoding="utf-8") as lines, open(answers, "w", encoding="utf-8") as output:
        for line in lines:
            print(json.dumps(convert(json.loads(line), classes)), file=output)


main(*sys.argv[1:])
