"""An agent: the model may call the tool `add` until it gives an answer."""

import json


def add(a, b):
    """The tool: yours may search, run code, or call another service."""
    return a + b


async def solve(model, messages):
    """Answer one question by as many calls of the model as it takes."""
    while True:
        reply = await model(messages)  # reply.text, reply.tool_calls, reply.reasoning, reply.usage
        if not reply.tool_calls:
            return reply.text
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in reply.tool_calls
        ]
        messages = [*messages, {"role": "assistant", "content": reply.text or None, "tool_calls": calls}]
        for call in reply.tool_calls:
            result = str(add(**json.loads(call["arguments"])))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
