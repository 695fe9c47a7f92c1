"""A model server under test control: real sockets, OpenAI's wire format, scripted behaviour.

It answers ``POST /v1/chat/completions`` (plain and as server-sent events) and ``GET /v1/models``,
misbehaves exactly as its script says, and counts. It uses gevent's own sockets, so it needs no
monkey patching, neither on import nor as a command. It is for tests and demos: whoever reaches it
may change its script.
"""
