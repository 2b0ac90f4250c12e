"""One module per family of formats; each is imported only when a file of its family is judged.

Every module offers ``inspect(subject) -> None``: open the file with its format's library, put what was measured
into ``subject.facts`` (and ``subject.columns``), raise ``Problem`` if the file has not its extension's format
or fails a check that only its content can answer. Any other exception is taken as 'could not be opened'.
"""
