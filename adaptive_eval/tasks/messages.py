"""Messages as datasets and configs write them: checked, with their images and sounds as data."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from adaptive_eval.options.task_options import Medium
from adaptive_eval.tasks.template import PromptTemplate
from adaptive_eval.trial import Message

LARGEST = 20 * 2**20
"""Bytes of one image or sound; servers take no larger ones."""

_IMAGES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"BM": "bmp"}
_SOUNDS = {b"ID3": "mp3", b"\xff\xfb": "mp3", b"\xff\xf3": "mp3", b"fLaC": "flac", b"OggS": "ogg"}
_IN_RIFF = {b"WEBP": "webp", b"WAVE": "wav"}


class Unreadable(Exception):
    """A value of a row cannot be used; the message says why."""


def media_parts(value: Any, kind: Medium, folder: Path | None) -> list[dict[str, Any]]:
    """Return the parts for one value, or a list of values, of an image's or sound's column; None is none."""
    values = value
    if not isinstance(value, list | tuple):
        values = [value]
    return [media_part(one, kind, folder) for one in values if one not in (None, "")]


def media_part(value: Any, kind: Medium, folder: Path | None) -> dict[str, Any]:
    """Return an image or a sound as a part of a message; files are looked for in `folder`, None for nowhere.

    Examples
    --------
    >>> media_part("https://example.org/a.png", "image", None)
    {'type': 'image_url', 'image_url': {'url': 'https://example.org/a.png'}}
    """
    options: dict[str, Any] = {}
    if isinstance(value, Mapping) and isinstance(value.get("url"), str):
        options = {name: found for name, found in value.items() if name != "url"}  # such as detail
        value = value["url"]
    if isinstance(value, str) and value.lower().startswith("file:"):
        value = _file_of(value)
    if isinstance(value, str) and value.startswith(("http://", "https://")):
        if kind == "audio":
            raise Unreadable(f"{value[:80]!r} is a URL; a sound is sent as data, so give its file")
        return {"type": "image_url", "image_url": {"url": value, **options}}
    data, named = _data(value, kind, folder)
    if kind == "audio":
        return {"type": "input_audio", "input_audio": {"data": data, "format": named}}
    return {"type": "image_url", "image_url": {"url": f"data:image/{named};base64,{data}", **options}}


def _data(value: Any, kind: Medium, folder: Path | None) -> tuple[str, str]:
    """Return the base64 text of an image or sound, and its format by its first bytes."""
    if isinstance(value, str) and value.startswith("data:"):
        data = _decoded(value.partition(";base64,")[2])
        place = "the data URI"
    elif isinstance(value, str):
        data = _file(value, kind, folder)
        place = value
    else:
        raise Unreadable(f"{value!r:.60} is no {kind}: give a file, a URL or a data URI")
    known = _SOUNDS
    if kind == "image":
        known = _IMAGES
    named = next((name for start, name in known.items() if data.startswith(start)), None)
    if data[:4] == b"RIFF" and (data[8:12] == b"WAVE") == (kind == "audio"):
        named = _IN_RIFF.get(data[8:12])
    if named is None:
        more = "wav"
        if kind == "image":
            more = "webp"
        formats = [*dict.fromkeys(known.values()), more]
        raise Unreadable(f"{place} holds no {kind}; known formats are {', '.join(formats)}")
    if len(data) > LARGEST:
        raise Unreadable(f"{place} has {len(data):,} bytes; servers take at most {LARGEST:,}")
    return b64encode(data).decode(), named


def _file_of(uri: str) -> str:
    """Return the path that a file URI names.

    Examples
    --------
    >>> _file_of("file:///data/a%20b.png"), _file_of("file://localhost/a.png"), _file_of("file:a.png")
    ('/data/a b.png', '/a.png', 'a.png')
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        parts = None
    if parts is None or parts.netloc not in ("", "localhost") or not parts.path:
        raise Unreadable(f"{uri[:80]!r} names no file here; write file:///absolute/path, or the path alone")
    return unquote(parts.path)


def _file(name: str, kind: Medium, folder: Path | None) -> bytes:
    if folder is None:
        raise Unreadable(f"{name[:80]!r} names a file; only a dataset that is a file itself can name files")
    path = folder / Path(name).expanduser()
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Unreadable(f"the {kind} {str(path)[:200]} cannot be read: {why}") from None


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Error, ValueError):
        raise Unreadable("the data URI holds no base64; write data:image/png;base64,…") from None


def read_messages(value: Any, folder: Path | None) -> list[dict[str, Any]]:
    """Return a conversation as it is sent; it ends with the user, or with the answer of a tool."""
    if not isinstance(value, list | tuple) or not value:
        raise Unreadable("is not a list of messages, each with role and content")
    messages = [read_message(message, folder) for message in value]
    last = messages[-1]["role"]
    if last not in ("user", "tool"):
        raise Unreadable(f"ends with a message of {last!r}, not of the user or a tool")
    return messages


def read_message(message: Any, folder: Path | None) -> dict[str, Any]:
    """Return a message as it is sent.

    Examples
    --------
    >>> call = {"name": "add", "arguments": {"a": 2}}
    >>> read_message({"role": "assistant", "content": None, "tool_calls": [call]}, None)["tool_calls"]
    [{'id': 'call_0', 'type': 'function', 'function': {'name': 'add', 'arguments': '{"a": 2}'}}]
    """
    given = message
    if not isinstance(message, Mapping):
        given = {}
    role = given.get("role")
    content = given.get("content")
    calls = given.get("tool_calls")
    if not isinstance(role, str) or (content is None and not calls):
        raise Unreadable("is not a list of messages, each with role and content")
    read: dict[str, Any] = {"role": role, "content": content}
    if calls:
        if not isinstance(calls, list | tuple):
            raise Unreadable(f"has tool_calls that are no list: {calls!r:.60}")
        read["tool_calls"] = [_call(call, number) for number, call in enumerate(calls)]
    if role == "tool":
        if not isinstance(given.get("tool_call_id"), str):
            raise Unreadable("has a message of a tool without tool_call_id")
        read["tool_call_id"] = given["tool_call_id"]
    if isinstance(content, list | tuple):
        read["content"] = [_part(part, folder) for part in content]
    elif not isinstance(content, str | None):
        raise Unreadable("has a message whose content is neither text nor a list of parts")
    return read


def _part(part: Any, folder: Path | None) -> dict[str, Any]:
    kind = None
    if isinstance(part, Mapping):
        kind = part.get("type")
    if kind == "text" and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if kind in ("image", "image_url"):
        return media_part(part.get(kind), "image", folder)
    sound = None
    if kind == "input_audio":
        sound = part.get("input_audio")
    if isinstance(sound, Mapping) and isinstance(sound.get("data"), str):
        named = sound["data"]
        is_data = isinstance(sound.get("format"), str) and not named.startswith("data:")
        uri = named
        if is_data:
            uri = f"data:audio/{sound.get('format')};base64,{named}"
        return media_part(uri, "audio", folder)
    if kind == "audio":
        return media_part(part.get("audio"), "audio", folder)
    raise Unreadable(
        f"has a part of type {kind!r:.40}; known are text, image_url with a url, and input_audio with data"
    )


def _call(call: Any, number: int) -> dict[str, Any]:
    function = _function(call, "a call of a tool")
    arguments = function.get("arguments", {})
    text = arguments
    if not isinstance(arguments, str):
        text = json.dumps(arguments, ensure_ascii=False)
    named = call.get("id")
    call_id = named
    if not isinstance(named, str):
        call_id = f"call_{number}"
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": function["name"], "arguments": text},
    }


def _function(value: Any, what: str) -> Mapping[str, Any]:
    """Return the function of a tool or a call, in its frame or bare."""
    function = None
    if isinstance(value, Mapping):
        function = value.get("function", value)
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise Unreadable(f"has {what} without a name: {value!r:.60}")
    return function


def read_tools(value: Any) -> list[dict[str, Any]]:
    """Return definitions of tools as they are sent; a bare function is put into its frame.

    Examples
    --------
    >>> read_tools([{"name": "now", "description": "The time."}])
    [{'type': 'function', 'function': {'name': 'now', 'description': 'The time.'}}]
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, list | tuple):
        raise Unreadable("is not a list of tools")
    tools = []
    for tool in value:
        function = _function(tool, "a tool")
        tools.append(json.loads(json.dumps({"type": "function", "function": dict(function)})))
    return tools


@dataclass(frozen=True, slots=True)
class MessagesTemplate:
    """A prompt of several messages, or with images and sounds; ``{name}`` stands for a field in every text.

    Examples
    --------
    >>> template = MessagesTemplate.parse("Look: {chart} {input}", ("chart",))
    >>> chart = [media_part("https://example.org/a.png", "image", None)]
    >>> [part["type"] for part in template.conversation({"chart": chart, "input": "Why?"})[0].sent["content"]]
    ['text', 'image_url', 'text']
    """

    messages: tuple[Mapping[str, Any], ...]  # with a PromptTemplate in place of every text
    media: tuple[str, ...] = ()  # fields that are lists of parts

    @classmethod
    def parse(
        cls, prompt: str | Sequence[Any], media: tuple[str, ...] = (), folder: Path | None = None
    ) -> MessagesTemplate:
        """Read a prompt; Unreadable if it is none. Media that it does not name come before its text."""
        given = prompt
        if isinstance(prompt, str):
            given = [{"role": "user", "content": prompt}]
        messages = [_mapped(message, _parsed) for message in read_messages(given, folder)]
        named = {field for message in messages for text in _texts(message) for field in text.fields}
        first = "".join(f"{{{name}}}" for name in media if name not in named)
        if first:
            content = messages[-1]["content"]
            before = [{"type": "text", "text": PromptTemplate.parse(first)}]
            after = content
            if not isinstance(content, list):
                after = [{"type": "text", "text": content}]
            messages[-1] = {**messages[-1], "content": before + after}
        return cls(tuple(messages), media)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields it asks for, each once, in order."""
        texts = (text for message in self.messages for text in _texts(message))
        return tuple(dict.fromkeys(field for text in texts for field in text.fields))

    def conversation(self, values: Mapping[str, Any]) -> tuple[Message, ...]:
        """Return the messages with every field replaced."""
        return tuple(Message.from_mapping(self._rendered(message, values)) for message in self.messages)

    def _rendered(self, message: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        content = message["content"]
        if content is not None:
            given = content
            if not isinstance(content, list):
                given = [{"type": "text", "text": content}]
            parts = [one for part in given for one in self._parts(part, values)]
            plain = given is not content and all(part["type"] == "text" for part in parts)
            content = parts
            if plain:
                content = "".join(part["text"] for part in parts)

        def filled(text: Any) -> Any:
            if not isinstance(text, PromptTemplate):
                return text
            return text.render({name: str(values[name]) for name in text.fields})

        rest = {name: value for name, value in message.items() if name != "content"}
        return {"role": message["role"], "content": content, **_mapped(rest, filled)}

    def _parts(self, part: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the parts that a part becomes: a text is cut where an image or sound is."""
        if part["type"] != "text":
            yield dict(part)
            return
        text = ""
        for number, piece in enumerate(part["text"].parts):
            if number % 2 and piece in self.media:
                if text.strip():
                    yield {"type": "text", "text": text}
                text = ""
                yield from values[piece]
            else:
                if number % 2:
                    text += str(values[piece])
                else:
                    text += piece
        if text.strip():
            yield {"type": "text", "text": text}


_FIXED = ("role", "type", "id", "tool_call_id", "url", "data", "format")
"""Fields of a message that are no texts."""


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a message, or a part of one, with each of its texts changed."""
    if isinstance(value, Mapping):
        changed = {name: _mapped(one, change) for name, one in value.items() if name not in _FIXED}
        return {**value, **changed}
    if isinstance(value, list):
        return [_mapped(one, change) for one in value]
    return change(value)


def _parsed(value: Any) -> Any:
    if isinstance(value, str):
        return PromptTemplate.parse(value)
    return value


def _texts(message: Mapping[str, Any]) -> list[PromptTemplate]:
    found: list[Any] = []
    _mapped(message, found.append)
    return [text for text in found if isinstance(text, PromptTemplate)]
