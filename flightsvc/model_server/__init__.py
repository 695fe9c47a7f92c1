"""A model server under test control: real sockets, scripted behaviour.

It speaks OpenAI's wire format (``POST /v1/chat/completions``, ``GET /v1/models``) and XingChen's
(``POST /workflow/v1/chat/completions`` and ``…/upload_file``), answers plain and as server-sent
events, misbehaves exactly as its script says, and counts. It uses gevent's own sockets, so it
needs no monkey patching, neither on import nor as a command. It is for tests and demos: whoever
reaches it may change its script.
"""
