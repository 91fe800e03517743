"""The contract of faces for schemathesis: docs/openapi.json, with the tables of deploy/schemathesis-faces.yaml.

The document describes rows of any table. Here every path that names a table is one path for each table besides, whose rows have
exactly the table's columns, in requests and in responses; and ids, devices and positions are often those that exist.
"""

import copy
import pathlib

import schemathesis
import yaml

TABLES = yaml.safe_load(pathlib.Path(__file__).with_name("schemathesis-faces.yaml").read_text())["tables"]
# What all rows of another owner say; deploy/test-long uploads them.
ANOTHER_OWNER = "of-another-owner"
IDS = ["a", "b", "c"]
DEVICES = ["phone", "laptop"]
MAXIMUM = 2**53 - 1

DAY = {"type": "string", "pattern": r"^20[0-9]{2}-0[1-9]-[12][0-9]$"}
TYPES = {
    "text": {"type": "string"},
    # Beyond 2^53 an integer is text.
    "integer": {
        "anyOf": [
            {"type": "integer", "minimum": 1 - 2**53, "maximum": 2**53 - 1},
            {"type": "string", "pattern": r"^-?[1-9][0-9]{15,18}$"},
        ]
    },
    "real": {"type": "number"},
    "boolean": {"type": "boolean"},
    "decimal": {"type": "string", "pattern": r"^-?[0-9]{1,4}(\.[0-9]{1,2})?$"},
    "uuid": {"type": "string", "format": "uuid"},
    "timestamp": {"type": "string", "format": "date-time"},
    "date": DAY,
    "bytes": {"type": "string", "pattern": r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"},
    "json": {},
}


def columns(table):
    """The columns of a table, each with its JSON schema."""
    properties = {}
    for name, column in TABLES[table]["columns"].items():
        column = column if isinstance(column, dict) else {"type": column}
        schema = dict(TYPES[column["type"].split("(")[0]])
        if column["type"] == "text" and "length" in column:
            schema["maxLength"] = column["length"]
        if column.get("nullable", True) and schema:
            schema = {"anyOf": [schema, {"type": "null"}]}
        properties[name] = schema
    return properties


def required(table):
    """The columns that a new row must have."""
    return [
        name
        for name, column in TABLES[table]["columns"].items()
        if isinstance(column, dict) and not column.get("nullable", True) and "default" not in column
    ]


def targets(table):
    """The body of a delete: where rows go that reference the deleted one."""
    properties = {
        "reassign_" + name: {"enum": IDS}
        for other in TABLES.values()
        for name, column in other["columns"].items()
        if isinstance(column, dict) and column.get("references") == table
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def often(values, schema):
    return {"anyOf": [values, schema]}


def with_existing(schema, name=None, in_query=False):
    """A part of a request in which ids and positions are often those that exist.

    The server's clock is a sequence, so that positions are small.
    """
    if isinstance(schema, list):
        return [with_existing(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "properties" not in schema and name in ("id", "pk", "serverId"):
        return often({"enum": IDS}, schema)
    if schema.get("maximum") == MAXIMUM:
        return often({"type": "integer", "minimum": 0, "maximum": 300}, schema)
    if in_query and schema.get("format") == "date-time":
        return often({"type": "string", "pattern": r"^1970-01-01T00:00:00\.000[0-2][0-9]{2}Z$"}, schema)
    changed = {key: with_existing(value) for key, value in schema.items()}
    if "properties" in schema:
        changed["properties"] = {key: with_existing(value, key) for key, value in schema["properties"].items()}
    return changed


class Contract:
    def __init__(self, document):
        self.schemas = document["components"]["schemas"]
        self.device = {**document["components"]["parameters"]["DeviceHeader"], "schema": {"enum": DEVICES}}

    def of_table(self, part, table, needed):
        """A part of the document whose rows are those of one table, and have these columns at least."""
        if isinstance(part, list):
            return [self.of_table(item, table, needed) for item in part]
        if not isinstance(part, dict):
            return part
        reference = part.get("$ref", "")
        if reference.startswith("#/components/schemas/"):
            row = self.schemas[reference.rsplit("/", 1)[1]]
            return self.row(row, table, needed) if row.get("additionalProperties") is True else part
        return {key: self.of_table(value, table, needed) for key, value in part.items()}

    def row(self, schema, table, needed):
        schema = copy.deepcopy(schema)
        schema["properties"].update(columns(table))
        schema["additionalProperties"] = False
        schema["required"] = schema.get("required", []) + needed
        return schema

    def operation(self, method, operation, table):
        """An operation on one table instead of the table that the path names."""
        operation = copy.deepcopy(operation)
        operation["operationId"] += "-" + table
        operation["parameters"] = [
            self.device if part.get("$ref", "").endswith("/DeviceHeader") else part
            for part in operation["parameters"]
            if part.get("name") != "table"
        ]
        of_request = required(table) if method == "post" else []
        for part, needed in [(operation.get("requestBody"), of_request), (operation["responses"], list(columns(table)))]:
            # Examples are of other tables.
            for content in self.contents(part):
                content.pop("example", None)
                content.pop("examples", None)
                content["schema"] = self.of_table(content["schema"], table, needed)
        if method == "delete" and "requestBody" in operation:
            for content in self.contents(operation["requestBody"]):
                content["schema"] = targets(table)
        return operation

    @staticmethod
    def contents(part):
        bodies = [part] if part and "content" in part else (part or {}).values()
        return [content for body in bodies for content in body.get("content", {}).values()]

    def paths(self, paths):
        changed = {}
        for path, item in paths.items():
            item = {method: operation for method, operation in item.items() if "faces" in operation.get("tags", [])}
            if not item:
                continue
            changed[path] = item
            if "{table}" in path:
                for table in TABLES:
                    changed[path.replace("{table}", table)] = {
                        method: self.operation(method, operation, table)
                        for method, operation in item.items()
                    }
        return changed

    def sqlite_now(self):
        """Changes and pages of SQLiteNow name the table of each row."""
        change = self.schemas["SQLiteNowUpload"]["properties"]["changes"]
        change["items"] = {
            "anyOf": [change["items"]] + [self.change(change["items"], table) for table in TABLES]
        }
        page = self.schemas["SQLiteNowPage"]["properties"]["changes"]["items"]["properties"]
        page["payload"] = {"anyOf": [{"type": "null"}] + [self.payload(table, False) for table in TABLES]}

    def change(self, schema, table):
        schema = copy.deepcopy(schema)
        schema["required"] = ["sourceChangeId", "table", "op", "pk", "payload"]
        schema["properties"]["table"] = {"const": table}
        schema["properties"]["payload"] = self.payload(table, True)
        return schema

    def payload(self, table, is_request):
        properties = columns(table)
        if not is_request:
            properties["id"] = {"type": "string"}
        needed = required(table) if is_request else list(properties)
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


@schemathesis.hook
def before_load_schema(context, raw_schema):
    contract = Contract(raw_schema)
    contract.sqlite_now()
    raw_schema["paths"] = contract.paths(raw_schema["paths"])
    for item in raw_schema["paths"].values():
        for operation in item.values():
            for parameter in operation["parameters"]:
                if "schema" in parameter:
                    parameter["schema"] = with_existing(
                        parameter["schema"], parameter["name"], parameter["in"] == "query"
                    )
            for content in contract.contents(operation.get("requestBody")):
                content["schema"] = with_existing(content["schema"])
    for name in ("RestSentRecord", "TrackerSentDocument", "SQLiteNowUpload"):
        contract.schemas[name] = with_existing(contract.schemas[name])
    device = raw_schema["components"]["parameters"]["DeviceHeader"]
    device["schema"] = often({"enum": DEVICES}, device["schema"])


@schemathesis.check
def no_rows_of_another_owner(context, response, case):
    """The same ids exist for another owner, whose rows no response may have."""
    assert ANOTHER_OWNER.encode() not in response.content, "the response has a row of another owner"


@schemathesis.check
class EveryOperationSucceeds:
    """Operations on the tables that exist must have been performed, not only refused."""

    def __init__(self):
        self.tested = set()
        self.succeeded = set()

    def after_response(self, context, response, case):
        label = case.operation.label
        if "{table}" in label:
            return
        self.tested.add(label)
        if 200 <= response.status_code < 300:
            self.succeeded.add(label)

    def after_run(self, context):
        missing = sorted(self.tested - self.succeeded)
        assert not missing, f"never performed: {missing}"
