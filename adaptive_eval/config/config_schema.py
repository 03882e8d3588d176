"""The JSON schema of a config file, for editors and for the reference of the config."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from adaptive_eval.config.run_config import RunConfig
from adaptive_eval.options.section import Record, Section, described

_VARIANTS = {
    "type": "object",
    "description": "A grid of variants of a model: the model's label, and lists of values of its keys.",
    "required": ["variants"],
    "additionalProperties": False,
    "properties": {"variants": {"type": "object", "required": ["of"]}},
}


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a config file.

    Keys that several sections inherit stand once, in a definition that these refer to.

    Examples
    --------
    >>> json_schema()["properties"]["seed"]["type"]
    'integer'
    """
    schema = RunConfig.model_json_schema(by_alias=True, mode="validation")
    known: list[Any] = [*_all_under(Section), *_all_under(Record)]
    sections = {one.__name__: one for one in known}
    parts = {name: part for name, part in schema["$defs"].items() if name in sections}
    for name, part in {**parts, RunConfig.__name__: schema}.items():
        for key, words in described(sections[name]).items():
            part["properties"][key]["description"] = words
    schema["$defs"] |= _share({sections[name]: part for name, part in parts.items()})
    models = schema["properties"]["models"]
    models["items"] = {"anyOf": [models["items"], _VARIANTS]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "adaptive-eval config",
    }


def _all_under(base: type) -> Iterator[type]:
    under: list[type] = base.__subclasses__()
    for one in under:
        yield one
        yield from _all_under(one)


def _share(parts: Mapping[Any, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Move the keys that sections inherit to a definition of the class that declares them; return these."""
    owners = {section: _owners(section) for section in parts}
    inherited = {owner for section in parts for owner in owners[section].values() if owner is not section}
    shared: dict[str, dict[str, Any]] = {}
    for section, part in parts.items():
        keys = part["properties"]
        referred: dict[str, None] = {}
        for key, owner in owners[section].items():
            if owner in inherited:
                name = f"{owner.__name__.strip('_')}Keys"
                words = inspect.getdoc(owner)
                of_owner = shared.setdefault(name, {"type": "object", "description": words, "properties": {}})
                of_owner["properties"][key] = keys[key]
                referred[name] = None
        if referred:
            # `additionalProperties` would refuse the keys of other definitions, and not every editor knows
            # `unevaluatedProperties`.
            del part["additionalProperties"]
            part["propertyNames"] = {"enum": list(keys)}
            part["allOf"] = [{"$ref": f"#/$defs/{name}"} for name in referred]
            part["properties"] = {
                key: value for key, value in keys.items() if owners[section][key] not in inherited
            }
    return shared


def _owners(section: Any) -> dict[str, type]:
    """Return the class that declares each key of a section: itself or one that it inherits from."""
    owners = {}
    for name, field in section.__pydantic_fields__.items():
        declaring = (one for one in section.__mro__ if name in inspect.get_annotations(one))
        owners[field.alias or name] = next(declaring)
    return owners
