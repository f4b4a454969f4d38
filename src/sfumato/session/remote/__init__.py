"""A session over HTTP: questions to a console that others run, by the standard library alone.

`transport` speaks HTTP, `remote_session` is what `sfumato.connect` returns for an address, and
`remote_answer` what that returns. Nothing here sees a private row: what comes was charged and released there.
"""
